//! Instruments of plugins: told what instruments of the host are told, and survived.

use std::fs;
use std::process::Command;

/// Runs `tenon opt` over a module with the example plugins; the exit code and what it said on the side.
fn opt(module: &str, args: &[&str]) -> (Option<i32>, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let program = std::env::current_exe().expect("this test's file");
    let profile = program.ancestors().nth(2).expect("target/<profile>/deps/<test>");
    fs::create_dir(folder.path().join("plugins")).expect("a folder in it");
    for library in ["libfaulty.so", "libwrong.so", "libwatching.so"] {
        let copy = folder.path().join("plugins").join(library);
        fs::copy(profile.join("examples").join(library), copy).expect("cargo builds examples");
    }
    let registry = "schema = 1\n[[plugins.dir]]\npath = \"plugins\"\nenable = \"all\"\n";
    fs::write(folder.path().join("registry.toml"), registry).expect("written");
    fs::write(folder.path().join("m.ir"), module).expect("written");
    let output = Command::new(env!("CARGO_BIN_EXE_tenon"))
        .args(["opt", "m.ir"])
        .args(args)
        .env("TENON_REGISTRY", folder.path().join("registry.toml"))
        .current_dir(folder.path())
        .output()
        .expect("the program runs");
    (output.status.code(), String::from_utf8(output.stderr).expect("it says text"))
}

const ONE: &str = "fn @main(%x: f32[4]) -> f32[4] {\n  %a = exp(%x)\n  ret %a\n}\n";

#[test]
fn it_sees_the_modules_before_and_after_each_pass() {
    let passes = "test.NoOp, test.Miscompile, test.NoOp";
    let (code, said) = opt(ONE, &["-p", passes, "--instrument", "test.Count"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("test.Count: test.NoOp ran 2 times and changed something 0 times"),
        "{said}"
    );
    assert!(said.contains("test.Count: test.Miscompile ran 1 times and changed something 1 times"));
}

#[test]
fn it_refuses_passes_and_fails_with_an_error() {
    let two = ONE.to_owned() + &ONE.replace("@main", "@other");
    let args = ["-p", "test.Fail", "--instrument", "test.OnlySmall,test.Count"];
    // A pass that fails is refused.
    let (code, said) = opt(&two, &args);
    assert_eq!(code, Some(0), "{said}");
    let (code, said) = opt(ONE, &args);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("pass `test.Fail` in function @main"), "{said}");
    let (code, said) = opt("", &args);
    assert_eq!(code, Some(1), "{said}");
    let error = "at pass `test.Fail`: instrument `test.OnlySmall`: there is nothing to run it over";
    assert!(said.contains(error), "{said}");
}

#[test]
fn one_that_panics_is_an_error_with_its_place() {
    let (code, said) = opt(ONE, &["-p", "test.NoOp", "--instrument", "test.Clumsy"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("at pass `test.NoOp`: instrument `test.Clumsy`: panic at "), "{said}");
    assert!(said.contains("watching.rs:") && said.contains("dropped test.NoOp"), "{said}");
}

#[test]
fn its_reproducer_fails_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let again = folder.path().join("again.ir");
    let args = ["-p", "test.NoOp", "--instrument", "test.Clumsy", "--reproducer"];
    let (code, said) = opt(ONE, &[&args[..], &[again.to_str().expect("a path")]].concat());
    assert_eq!(code, Some(1), "{said}");
    let (code, said) = opt(&fs::read_to_string(again).expect("it is written"), &[]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("at pass `test.NoOp`: instrument `test.Clumsy`: panic at "), "{said}");
}

#[test]
fn one_that_refuses_the_module_at_the_start_has_a_reproducer() {
    let folder = tempfile::tempdir().expect("a folder");
    let again = folder.path().join("again.ir");
    let args = ["-p", "test.NoOp", "--instrument", "test.OnlySmall", "--reproducer"];
    let (code, said) = opt("", &[&args[..], &[again.to_str().expect("a path")]].concat());
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("to see it again: tenon opt "), "{said}");
    let (code, said) = opt(&fs::read_to_string(again).expect("it is written"), &[]);
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains("instrument `test.OnlySmall`: there is nothing to run it over"),
        "{said}"
    );
}

#[test]
fn a_name_that_is_nobodys_is_an_error_with_the_nearest() {
    let (code, said) = opt(ONE, &["-p", "test.NoOp", "--instrument", "test.Cuont"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains("no instrument is called `test.Cuont`: did you mean `test.Count`?"),
        "{said}"
    );
}
