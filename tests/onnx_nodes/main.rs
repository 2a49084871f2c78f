//! The node tests of onnx, each a test of its own: the model is imported, evaluated by the reference and
//! compared.
//!
//! They come out of the onnx wheel (`scripts/setup-python.sh --models`); where that was not run they count as
//! ignored. So do the cases of `unsupported.txt`, which `unsupported_cases_are_listed` compares with what the
//! importer says; `TENON_BLESS=1` makes that test rewrite the list.

mod compare;
mod suite;
mod unsupported;

use std::path::Path;
use std::process::ExitCode;
use std::{env, fs};

use libtest_mimic::{Arguments, Completion, Failed, Trial};

use suite::{Outcome, run};
use unsupported::UnsupportedCases;

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = root.join(".cache/onnx-nodes");
    let trials = match folder.exists() {
        true => trials(&folder, &root.join("tests/onnx_nodes/unsupported.txt")),
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

fn trials(folder: &Path, list: &Path) -> Vec<Trial> {
    let listed = UnsupportedCases::read(list);
    let names = suite::names(folder);
    let mut trials: Vec<Trial> = names
        .iter()
        .map(|name| {
            let case = folder.join(name);
            match listed.reason(name).map(str::to_owned) {
                Some(reason) => {
                    let ignored = move || Ok(Completion::ignored_with(reason));
                    Trial::ignorable_test(name, ignored).with_ignored_flag(true)
                }
                None => Trial::test(name, move || check(&case)),
            }
        })
        .collect();
    let (folder, list) = (folder.to_owned(), list.to_owned());
    trials.push(Trial::test("unsupported_cases_are_listed", move || {
        match env::var_os("TENON_BLESS") {
            Some(_) => Ok(fs::write(list, unsupported(&folder, &names).to_string())?),
            None => check_listed(&folder, &names, &listed),
        }
    }));
    trials
}

fn check(case: &Path) -> Result<(), Failed> {
    match run(case) {
        Outcome::Passed => Ok(()),
        Outcome::Unsupported(reason) => Err(format!("it is not supported: {reason}").into()),
        Outcome::Failed(problem) => Err(problem.into()),
    }
}

/// Whether each listed case is there, and is not supported for its reason.
fn check_listed(folder: &Path, names: &[String], listed: &UnsupportedCases) -> Result<(), Failed> {
    let mut problems = Vec::new();
    for (name, reason) in listed.iter() {
        let problem = match names.iter().any(|other| other == name) {
            false => "there is no such case".to_owned(),
            true => match suite::run_caught(&folder.join(name)) {
                Outcome::Unsupported(found) if found == reason => continue,
                Outcome::Unsupported(found) => format!("the reason is {found}, not {reason}"),
                Outcome::Passed => "it passes".to_owned(),
                Outcome::Failed(problem) => format!("it is supported, but fails: {problem}"),
            },
        };
        problems.push(format!("{name}: {problem}"));
    }
    match problems.is_empty() {
        true => Ok(()),
        false => {
            let problems = problems.join("\n");
            Err(format!("TENON_BLESS=1 rewrites unsupported.txt, where\n{problems}").into())
        }
    }
}

/// The cases that cannot be imported today.
fn unsupported(folder: &Path, names: &[String]) -> UnsupportedCases {
    let reason = |name: &String| match suite::run_caught(&folder.join(name)) {
        Outcome::Unsupported(reason) => Some((name.clone(), reason)),
        Outcome::Passed | Outcome::Failed(_) => None,
    };
    names.iter().filter_map(reason).collect()
}
