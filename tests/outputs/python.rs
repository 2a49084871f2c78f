//! The package for Python, as it is built, with the tests that stand beside it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The interpreter of the models' environment; none where it could not be made, which is said.
fn interpreter() -> Option<PathBuf> {
    let python = root().join(".cache/venv/bin/python");
    if python.exists() {
        return Some(python);
    }
    let reason = fs::read_to_string(root().join(".cache/models-unavailable"));
    let reason = reason.unwrap_or_else(|_| "make models was not run".to_owned());
    eprintln!("skipped: {}", reason.trim());
    None
}

/// The package in a folder.
fn package(python: &Path) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let build = root().join("python/tenon_build.py");
    succeeds(Command::new(python).arg(build).arg(folder.path()));
    folder
}

/// What a command says that succeeds.
fn succeeds(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{command:?}: {printed}\n{said}");
    printed.into_owned() + &said
}

/// Runs the tests of a file of `python/tests`, with warnings as Python's own developers have them.
fn test(file: &str) {
    let Some(python) = interpreter() else { return };
    let folder = package(&python);
    let mut command = Command::new(&python);
    command.args(["-X", "dev"]).arg(root().join("python/tests").join(file));
    let said = succeeds(command.env("PYTHONPATH", folder.path()));
    // The last line says how many were skipped, and why stands above.
    eprintln!("{}", said.lines().last().unwrap_or_default());
}

#[test]
fn models_in_python() {
    test("test_models.py");
}

#[test]
fn passes_in_python() {
    test("test_passes.py");
}

#[test]
fn dropped_files_of_python() {
    test("test_dropped.py");
}

#[test]
fn clusters_in_python() {
    test("test_cluster.py");
}

#[test]
fn nodes_and_the_examples_of_tvm_in_python() {
    test("test_tvm.py");
}

#[test]
fn operators_rules_and_schedules_in_python() {
    test("test_extensions.py");
}

#[test]
fn torch_in_python() {
    test("test_torch.py");
}

#[test]
fn examples_of_the_page_on_python_run() {
    test("test_examples.py");
}

#[test]
fn notebooks_run() {
    test("test_notebooks.py");
}

#[test]
fn pages_of_the_api_are_those_of_the_sources() {
    let Some(python) = interpreter() else { return };
    let (made, kept) = (tempfile::tempdir().unwrap(), root().join("docs/python"));
    let is_blessed = std::env::var_os("TENON_BLESS").is_some();
    let folder: &Path = if is_blessed { &kept } else { made.path() };
    succeeds(Command::new(&python).arg(root().join("python/make_api.py")).arg(folder));
    let pages = |folder: &Path| -> BTreeMap<OsString, String> {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
        entries.map(|it| (it.file_name(), fs::read_to_string(it.path()).unwrap())).collect()
    };
    assert!(pages(folder) == pages(&kept), "docs/python is stale: TENON_BLESS=1");
}

#[test]
fn interpreters_without_a_lock_are_refused() {
    let Some(python) = interpreter() else { return };
    let asked = "import tenon_build; print(tenon_build.refusal(False), tenon_build.refusal(True))";
    let mut command = Command::new(python);
    let said = succeeds(command.args(["-c", asked]).current_dir(root().join("python")));
    assert!(said.starts_with("None tenon has no package for interpreters without"), "{said}");
}

#[test]
fn types_in_python() {
    let Some(python) = interpreter() else { return };
    let folder = package(&python);
    let mut stubs = Command::new(&python);
    stubs.arg(root().join("python/make_stubs.py")).env("PYTHONPATH", folder.path());
    let made = String::from_utf8(stubs.output().unwrap().stdout).unwrap();
    let file = root().join("python/src-py/tenon/transform.pyi");
    if std::env::var_os("TENON_BLESS").is_some() {
        fs::write(&file, &made).unwrap();
    }
    assert!(fs::read_to_string(&file).unwrap() == made, "transform.pyi is stale: TENON_BLESS=1");

    let settings = root().join("python/pyproject.toml");
    for words in [
        ["mypy", "--config-file", "-p", "tenon"],
        ["mypy.stubtest", "--mypy-config-file", "", "tenon._core"],
    ] {
        let mut check = Command::new(&python);
        check.arg("-m").current_dir(folder.path());
        for word in words {
            check.args((!word.is_empty()).then_some(word));
            if word.ends_with("config-file") {
                check.arg(&settings);
            }
        }
        succeeds(&mut check);
    }
}

#[test]
fn the_package_has_a_command() {
    let Some(python) = interpreter() else { return };
    let folder = package(&python);
    let mut command = Command::new(&python);
    command.args(["-m", "tenon", "passes", "show", "FoldConstant"]);
    let said = succeeds(command.env("PYTHONPATH", folder.path()).current_dir(folder.path()));
    assert!(said.contains("relax.FoldConstant"), "{said}");
}
