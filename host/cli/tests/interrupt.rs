//! Ctrl-C: the program ends soon, with the exit code of shells, and leaves no part of a file.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long anything may take here before the test gives up.
const PATIENCE: Duration = Duration::from_secs(50);

/// Starts a pipeline over a small module; comes back when its first pass, `test.NoOp`, has run.
fn start(folder: &Path, pipeline: &str) -> Child {
    start_over(folder, pipeline, "fn @main(%x: f32[4]) -> f32[4] { ret %x }\n")
}

/// The same, over another module.
fn start_over(folder: &Path, pipeline: &str, module: &str) -> Child {
    let program = std::env::current_exe().expect("this test's file");
    let library = program.ancestors().nth(2).expect("a profile").join("examples/libfaulty.so");
    fs::create_dir(folder.join("plugins")).expect("a folder");
    fs::copy(library, folder.join("plugins/libfaulty.so")).expect("cargo builds examples");
    let registry = "schema = 1\n[[plugins.dir]]\npath = \"plugins\"\nenable = \"all\"\n";
    fs::write(folder.join("registry.toml"), registry).expect("written");
    fs::write(folder.join("m.ir"), module).expect("written");
    let child = Command::new(env!("CARGO_BIN_EXE_tenon"))
        .args(["opt", "m.ir", "-o", "out.ir", "--dump-dir", "dump", "-p", pipeline])
        .env("TENON_REGISTRY", folder.join("registry.toml"))
        .current_dir(folder)
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    wait_until(|| folder.join("dump/000_test.NoOp.ir").exists());
    child
}

#[track_caller]
fn wait_until(is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "this takes too long");
        sleep(Duration::from_millis(5));
    }
}

fn interrupt(child: &Child) {
    let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(kill.expect("there is kill").success());
}

/// The exit code, and what was said.
fn end(child: Child) -> (Option<i32>, String) {
    let output = child.wait_with_output().expect("it ends");
    (output.status.code(), String::from_utf8(output.stderr).expect("it says text"))
}

fn files(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn a_pass_is_asked_to_stop_and_nothing_is_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let child = start(folder.path(), "test.NoOp, test.Wait, test.NoOp");
    let start = Instant::now();
    interrupt(&child);
    let (code, said) = end(child);
    assert_eq!(code, Some(130), "{said}");
    assert!(start.elapsed() < PATIENCE, "the pass saw it");
    assert!(said.contains("pass `test.Wait` in function @main"), "{said}");
    assert!(!said.contains("to see it again"), "an interruption is nothing to reproduce: {said}");
    assert_eq!(files(folder.path()), ["dump", "m.ir", "plugins", "registry.toml"]);
    assert_eq!(files(&folder.path().join("dump")), ["000_test.NoOp.ir"]);
}

#[test]
fn a_second_one_ends_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let child = start(folder.path(), "test.NoOp, test.Deaf");
    let start = Instant::now();
    interrupt(&child);
    sleep(Duration::from_millis(200));
    interrupt(&child);
    let (code, said) = end(child);
    assert_eq!(code, Some(130), "{said}");
    assert!(start.elapsed() < PATIENCE, "it did not wait for the pass");
    let told = "interrupted: waiting for pass `test.Deaf` of libfaulty.so to stop; a second Ctrl-C ends at once\n";
    assert_eq!(said, told, "the first one says what is waited for");
    assert_eq!(files(folder.path()), ["dump", "m.ir", "plugins", "registry.toml"]);
}

#[test]
fn an_operator_that_is_waited_for_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let module = "fn @main() { %a = test.op.Endless(const(f32[2], [1.0, 2.0]))\n ret %a }\n";
    let child = start_over(folder.path(), "test.NoOp, test.Evaluate", module);
    sleep(Duration::from_millis(500));
    interrupt(&child);
    sleep(Duration::from_millis(200));
    interrupt(&child);
    let (code, said) = end(child);
    assert_eq!(code, Some(130), "{said}");
    let told = "waiting for operator `test.op.Endless` of libfaulty.so to stop; a second Ctrl-C ends at once";
    assert!(said.contains(told), "{said}");
}
