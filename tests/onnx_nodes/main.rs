//! The node tests of onnx: each model is imported as it is given, evaluated by the reference, compiled, and run.
//!
//! They come out of the onnx wheel (`scripts/setup-python.sh --models`); where that was not run they count as
//! ignored. A trial holds the cases of one operator, so that the plugins and LLVM are loaded once for them. What a case
//! that does not pass needs stands in `unsupported.txt`, and how many there are of each kind.

use tenon_operators as _;
mod case;
mod compare;
#[path = "../support/compiled.rs"]
mod compiled;
mod unsupported;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::{env, fs};

use libtest_mimic::{Arguments, Failed, Trial};

use case::Outcome;
use unsupported::UnsupportedCases;

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = root.join(".cache/onnx-nodes");
    let trials = match folder.exists() {
        true => trials(&folder, root.join("tests/onnx_nodes/unsupported.txt")),
        false => vec![missing(root)],
    };
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// What stands for all cases where they are not there.
fn missing(root: &Path) -> Trial {
    let reason = fs::read_to_string(root.join(".cache/models-unavailable"))
        .unwrap_or_else(|_| "scripts/setup-python.sh --models was not run".into());
    let reason = format!("the node tests of onnx are skipped: {}", reason.trim());
    if !env::args().any(|arg| arg == "--list") {
        eprintln!("{reason}");
    }
    Trial::test("all_cases", move || Err(reason.into())).with_ignored_flag(true)
}

fn trials(folder: &Path, list: PathBuf) -> Vec<Trial> {
    let listed = Arc::new(UnsupportedCases::read(&list));
    let names = case::names(folder);
    let mut groups: BTreeMap<String, Vec<(String, PathBuf)>> = BTreeMap::new();
    for name in &names {
        groups.entry(group(name)).or_default().push((name.clone(), folder.join(name)));
    }
    let trial = |(group, cases): (String, Vec<(String, PathBuf)>)| {
        let listed = Arc::clone(&listed);
        Trial::test(format!("cases::{group}"), move || check(&cases, &listed))
    };
    let mut trials: Vec<Trial> = groups.into_iter().map(trial).collect();
    let folder = folder.to_owned();
    trials.push(Trial::test("list_is_complete", move || match env::var_os("TENON_BLESS") {
        Some(_) => Ok(fs::write(list, found(&folder, &names).text(names.len()))?),
        None => check_list(&list, &names),
    }));
    trials
}

/// The first word of a case's name, which most often is the operator.
fn group(name: &str) -> String {
    let name = name.strip_prefix("test_").unwrap_or(name);
    name.split('_').next().unwrap_or(name).to_owned()
}

/// Whether each case does what is listed, or passes.
fn check(cases: &[(String, PathBuf)], listed: &UnsupportedCases) -> Result<(), Failed> {
    let mut problems = Vec::new();
    for (name, folder) in cases {
        // Shown when code that was compiled ends the process.
        eprintln!("{name}");
        let problem = match (case::run(folder), listed.get(name)) {
            (Outcome::Passed, None) => continue,
            (Outcome::Unsupported(found), Some(lack)) if found == *lack => continue,
            (Outcome::Failed(problem), _) => problem,
            (Outcome::Passed, Some(_)) => "it passes, and unsupported.txt lists it".to_owned(),
            (Outcome::Unsupported(found), None) => format!("it does not pass: {found}"),
            (Outcome::Unsupported(found), Some(lack)) => {
                format!("unsupported.txt says {lack}; it is {found}")
            }
        };
        problems.push(format!("{name}: {problem}"));
    }
    match problems.is_empty() {
        true => Ok(()),
        false => Err(problems.join("\n").into()),
    }
}

/// Whether the list has its own form, counts included, and names cases that there are.
fn check_list(list: &Path, names: &[String]) -> Result<(), Failed> {
    let listed = UnsupportedCases::read(list);
    if let Some(name) = listed.names().find(|name| !names.iter().any(|other| other == name)) {
        return Err(format!("unsupported.txt lists {name}, and there is no such case").into());
    }
    match fs::read_to_string(list)? == listed.text(names.len()) {
        true => Ok(()),
        false => Err("unsupported.txt is not as TENON_BLESS=1 writes it".into()),
    }
}

/// The cases that lack something today.
fn found(folder: &Path, names: &[String]) -> UnsupportedCases {
    let lack = |name: &String| match case::run(&folder.join(name)) {
        Outcome::Unsupported(lack) => Some((name.clone(), lack)),
        Outcome::Passed => None,
        Outcome::Failed(problem) => {
            eprintln!("{name}: {problem}");
            None
        }
    };
    names.iter().filter_map(lack).collect()
}
