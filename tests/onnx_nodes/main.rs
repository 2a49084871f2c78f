//! The node tests of onnx: each model is imported, evaluated by the reference and compared.
//!
//! The tests come out of the onnx wheel (`scripts/setup-python.sh --models`); where that was not run this
//! says so. What cannot be imported is counted by its reason, and these counts are those of
//! `unsupported.txt`. `TENON_BLESS=1` rewrites that file. `TENON_NODES=abs` runs the tests with `abs` in
//! their names alone.

mod compare;
mod suite;

use std::collections::BTreeMap;
use std::{env, fs, path::Path};

use suite::{Outcome, Suite};

#[test]
fn every_supported_node_test_passes() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = root.join(".cache/onnx-nodes");
    if !folder.exists() {
        let reason = fs::read_to_string(root.join(".cache/models-unavailable"))
            .unwrap_or_else(|_| "scripts/setup-python.sh --models was not run".into());
        eprintln!("the node tests of onnx are skipped: {}", reason.trim());
        return;
    }
    let filter = env::var("TENON_NODES").ok();
    let suite = Suite::open(&folder, filter.as_deref());

    let (mut passed, mut failures) = (0, Vec::new());
    let mut unsupported: BTreeMap<String, usize> = BTreeMap::new();
    for (name, outcome) in suite.run() {
        match outcome {
            Outcome::Passed => passed += 1,
            Outcome::Unsupported(reason) => *unsupported.entry(reason).or_default() += 1,
            Outcome::Failed(problem) => failures.push(format!("{name}: {problem}")),
        }
    }
    println!(
        "{passed} node tests pass, {} are not supported, {} fail",
        unsupported.values().sum::<usize>(),
        failures.len()
    );
    assert!(failures.is_empty(), "{} fail:\n{}", failures.len(), failures.join("\n"));
    if filter.is_none() {
        check_list(&root.join("tests/onnx_nodes/unsupported.txt"), &unsupported);
    }
}

/// Compares what is not supported with the list of it.
fn check_list(path: &Path, found: &BTreeMap<String, usize>) {
    let header = "# What node tests of onnx are not supported for, and how many: TENON_BLESS=1 rewrites this.\n";
    let lines = found.iter().map(|(reason, count)| format!("{count:4} {reason}\n"));
    let found = header.to_owned() + &lines.collect::<String>();
    if env::var_os("TENON_BLESS").is_some() {
        fs::write(path, found).expect("the list can be written");
        return;
    }
    let expected = fs::read_to_string(path).unwrap_or_default();
    let differs = |a: &str, b: &str| {
        a.lines().filter(|line| !b.contains(*line)).map(str::to_owned).collect::<Vec<_>>()
    };
    let (more, less) = (differs(&found, &expected), differs(&expected, &found));
    assert!(
        found == expected,
        "{} differs; TENON_BLESS=1 rewrites it.\nfound:\n{}\nexpected:\n{}",
        path.display(),
        more.join("\n"),
        less.join("\n")
    );
}
