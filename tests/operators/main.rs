//! The operator suite: every case of `cases/` on every target, and what inference says.
//!
//! A case is a function with one call, and its expected results, which `make_suite.py` wrote from NumPy
//! and ONNX Runtime. A target takes the case and its inputs and gives results; a case that it cannot do is
//! skipped by a line in its list of skips, with the reason.

mod case;
#[path = "../models/fill.rs"]
mod fill;
mod inference;
mod targets;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Trial};

fn main() -> ExitCode {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/operators");
    let mut trials = inference::trials(&folder);
    for case in case::all(&folder.join("cases")) {
        let case = Arc::new(case);
        for target in targets::ALL {
            if target.skips.iter().any(|(name, _)| *name == case.name) || !(target.takes)(&case) {
                continue;
            }
            let case = case.clone();
            trials.push(Trial::test(format!("{}::{}", target.name, case.name), move || {
                let found = (target.run)(&case)?;
                Ok(case.check(&found, target.tolerance)?)
            }));
        }
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
