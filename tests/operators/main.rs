//! The operator suite: every case of `cases/` on every target, and what inference says.
//!
//! A case is a function with one call, and its expected results, which `make_suite.py` wrote from NumPy
//! and ONNX Runtime. A target takes the case and its inputs and gives results; how near they must be, and which cases
//! it cannot do, stands in `targets.toml`. A trial holds the cases of one family on one target.

mod case;
#[path = "../support/compiled.rs"]
mod compiled;
#[path = "../support/emulated.rs"]
mod emulated;
#[path = "../models/fill.rs"]
mod fill;
mod inference;
mod intrinsics;
mod short_floats;
mod targets;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Failed, Trial};

use case::{Case, Family};
use targets::{Settings, Target};

fn main() -> ExitCode {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/operators");
    let settings = Arc::new(Settings::read(&folder.join("targets.toml")));
    let families: Arc<[Family]> = case::families(&folder.join("cases")).into();
    let mut trials = inference::trials(&folder);
    trials.extend(intrinsics::trials());
    trials.extend(short_floats::trials());
    for target in targets::ALL {
        let missing = target.missing();
        missing.iter().for_each(|why| eprintln!("{} is skipped: {why}", target.name));
        for (index, family) in families.iter().enumerate() {
            let (settings, families) = (Arc::clone(&settings), Arc::clone(&families));
            let trial = Trial::test(format!("{}::{}", target.name, family.name), move || {
                run(target, &families[index], &settings)
            });
            trials.push(trial.with_ignored_flag(missing.is_some()));
        }
    }
    trials.push(Trial::test("settings_name_targets_and_cases", move || {
        let cases = families.iter().flat_map(|family| &family.cases);
        let cases: Vec<&str> = cases.map(|case| case.name.as_str()).collect();
        Ok(settings.check(&cases)?)
    }));
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// Runs a family on a target.
fn run(target: &Target, family: &Family, settings: &Settings) -> Result<(), Failed> {
    let mut problems = Vec::new();
    let cases: Vec<&Case> = family.cases.iter().filter(|case| (target.takes)(case)).collect();
    for (&case, result) in cases.iter().zip(target.run(&cases)) {
        let result = result.and_then(|found| case.check(&found, settings.tolerance(target)));
        let problem = match (result, settings.skip(target, case)) {
            (Ok(()), None) | (Err(_), Some(_)) => continue,
            // Another version of the emulator may do what one does not.
            (Ok(()), Some(_)) if target.emulator().is_some() => continue,
            (Ok(()), Some(_)) => "it is right, and targets.toml skips it".to_owned(),
            (Err(problem), None) => problem,
        };
        problems.push(format!("{}: {problem}", case.name));
    }
    match problems.is_empty() {
        true => Ok(()),
        false => Err(problems.join("\n").into()),
    }
}
