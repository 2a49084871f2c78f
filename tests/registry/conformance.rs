//! The conformance kit, on plugins that do well and on plugins that do not.

use std::path::Path;
use std::process::Output;

use libtest_mimic::{Failed, Trial};

use crate::harm::{House, complaints};
use crate::program::{profile, run, tenon};

/// Harm that a pass of tests/registry/harmful.c does, with the check that finds it and a part of what it says.
const WRONG: &[(&str, &str, &str)] = &[
    ("SEGFAULT", "runs", "elementwise: it ended the process (signal: 11 (SIGSEGV))"),
    ("EXIT", "runs", "elementwise: it ended the process (exit status: 0)"),
    ("SILENT", "runs", "elementwise: the pass returned nothing and does not say why"),
    ("RANDOM", "deterministic", "elementwise: a second time it gives something else"),
    ("FORGET_REFUSALS", "errors", "after 0 edits: the pass returned nothing and does not say why"),
    ("DEAF", "cancellation", "it did not stop when it was told to"),
];

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials: Vec<Trial> = WRONG
        .iter()
        .map(|&(harm, check, said)| {
            let name = format!("conformance::{}", harm.to_lowercase());
            Trial::test(name, move || finds(harm, check, said))
        })
        .collect();
    trials.push(Trial::test("conformance::opening", harmful_opening));
    trials.push(Trial::test("conformance::options", wrong_options));
    trials.push(Trial::test("conformance::miscompiles", miscompiles));
    for plugin in ["graph", "tensor", "memory", "fusion", "operators"] {
        let name = format!("conformance::our_own::{plugin}");
        trials.push(Trial::test(name, move || passes(&format!("libtenon_{plugin}.so"))));
    }
    trials
}

/// A report as JSON: `[pass, check, outcome, details]` of each check.
fn report(output: &Output) -> Result<Vec<(String, String, String, String)>, Failed> {
    let report: serde_json::Value = serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("{error}: {}", complaints(output)))?;
    let checks = report["checks"].as_array().ok_or("a report has checks")?;
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let row = |check: &serde_json::Value| {
        let details = check["details"].as_array().into_iter().flatten();
        let details: Vec<String> = details.map(text).collect();
        (text(&check["pass"]), text(&check["check"]), text(&check["outcome"]), details.join("\n"))
    };
    Ok(checks.iter().map(row).collect())
}

/// The checks that failed are these, and the command failed.
fn failed(output: &Output) -> Result<Vec<(String, String, String, String)>, Failed> {
    let mut rows = report(output)?;
    rows.retain(|(_, _, outcome, _)| outcome == "failed");
    match (output.status.code(), rows.is_empty()) {
        (Some(1), false) | (Some(0), true) => Ok(rows),
        _ => Err(format!("{}: {rows:?}", output.status).into()),
    }
}

fn finds(harm: &str, check: &str, said: &str) -> Result<(), Failed> {
    let house = House::new("RUNNING", harm)?;
    let arguments = ["plugins", "test", "plugins/libharmful.so", "--json", "--modules", "0"];
    let rows = failed(&house.tenon(&arguments)?)?;
    let is_found = |(pass, found, _, details): &(String, String, String, String)| {
        pass == "test.Harm" && found == check && details.contains(said)
    };
    if rows.iter().any(is_found) { Ok(()) } else { Err(format!("{rows:?}").into()) }
}

fn harmful_opening() -> Result<(), Failed> {
    let house = House::new("OPENING", "ABORT")?;
    let output = house.tenon(&["plugins", "test", "plugins/libharmful.so", "--json"])?;
    let rows = failed(&output)?;
    match rows.as_slice() {
        [(_, check, _, details)] if check == "opening" && details.contains("SIGABRT") => Ok(()),
        _ => Err(format!("{rows:?}").into()),
    }
}

/// The pass panics at any value of its option.
fn wrong_options() -> Result<(), Failed> {
    let rows = failed(&test(&profile().join("examples/libfaulty.so"))?)?;
    let of = |pass: &str, check: &str| {
        let row = rows.iter().find(|row| row.0 == pass && row.1 == check);
        row.map_or("", |row| row.3.as_str())
    };
    let has = |pass: &str, check: &str, said: &str| match of(pass, check).contains(said) {
        true => Ok(()),
        false => Err(Failed::from(format!("{pass}: {check}: {:?}", of(pass, check)))),
    };
    has("test.Panic", "runs", "index out of bounds")?;
    has("test.Panic", "options", "at = 0: panic at")?;
    has("test.Untyped", "runs", "left something wrong in function")?;
    has("test.op.PanicsInInfer", "inference", "panic at")?;
    has("test.op.NoType", "inference", "which is no type")?;
    has("test.op.Fickle", "sizes", "symbols give")?;
    has("test.op.Fickle", "evaluation", "the second evaluation gives another result")?;
    has("test.op.WrongValue", "evaluation", "is too hard")?;
    has("test.op.Endless", "evaluation", "it does not end within 3 seconds")?;
    has("compute of test.op.NoProgram", "same results", "relax.LegalizeOps fails on all of")?;
    has("compute of test.op.NoProgram", "same results", "this on any day of the week")?;
    match rows.iter().find(|row| row.0 == "test.NoOp") {
        None => Ok(()),
        Some(row) => Err(format!("{row:?}").into()),
    }
}

fn miscompiles() -> Result<(), Failed> {
    let rows = failed(&test(&profile().join("examples/libwrong.so"))?)?;
    let wrong: Vec<(&str, &str)> =
        rows.iter().map(|row| (row.0.as_str(), row.1.as_str())).collect();
    match wrong.as_slice() {
        [("test.Miscompile", "same results")] => Ok(()),
        _ => Err(format!("{rows:?}").into()),
    }
}

fn passes(library: &str) -> Result<(), Failed> {
    let rows = failed(&test(&profile().join(library))?)?;
    if rows.is_empty() { Ok(()) } else { Err(format!("{rows:#?}").into()) }
}

fn test(library: &Path) -> Result<Output, Failed> {
    run(tenon()
        .args(["plugins", "test", "--json", "--modules", "4", "--time-limit", "3"])
        .arg(library))
}
