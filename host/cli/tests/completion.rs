//! What a shell is offered at the tabulator.

use std::fs;
use std::process::Command;

/// What bash is offered behind some words.
fn offered(words: &[&str]) -> Vec<String> {
    let folder = tempfile::tempdir().expect("a folder");
    let program = std::env::current_exe().expect("this test's file");
    let library = program.ancestors().nth(2).expect("a profile").join("examples/libfaulty.so");
    fs::copy(library, folder.path().join("libfaulty.so")).expect("cargo builds examples");
    let registry = "schema = 1\n[[plugins.dir]]\npath = \".\"\nenable = \"all\"\n\
                    [pipelines.tidy]\npasses = [\"NoOp\"]\n";
    fs::write(folder.path().join("registry.toml"), registry).expect("written");
    let output = Command::new(env!("CARGO_BIN_EXE_tenon"))
        .args(["--", "tenon"])
        .args(words)
        .env("TENON_REGISTRY", folder.path().join("registry.toml"))
        .env("COMPLETE", "bash")
        .env("_CLAP_COMPLETE_INDEX", words.len().to_string())
        .env("_CLAP_COMPLETE_COMP_TYPE", "9")
        .env("_CLAP_COMPLETE_SPACE", "true")
        .env("_CLAP_IFS", "\n")
        .output()
        .expect("the program runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("it says text");
    text.lines().map(|line| line.trim_end().to_owned()).collect()
}

#[test]
fn subcommands_and_arguments_are_offered() {
    let commands = offered(&["pi"]);
    assert_eq!(commands, ["pipeline"]);
    assert!(offered(&["opt", "--print-a"]).iter().any(|word| word.starts_with("--print-after")));
}

#[test]
fn passes_are_offered_by_full_name_and_by_their_last_part() {
    assert_eq!(offered(&["passes", "show", "test.Opt"]), ["test.Options"]);
    assert_eq!(offered(&["opt", "-p", "test.Opt"]), ["test.Options"]);
    assert_eq!(offered(&["opt", "-p", "NoOp,Opt"]), ["NoOp,Options"]);
    assert_eq!(
        offered(&["opt", "-p", "func(NoOp, Ring"]),
        ["func(NoOp, RingA", "func(NoOp, RingB"]
    );
    assert_eq!(offered(&["opt", "--disable", "NoOp,test.Pla"]), ["NoOp,test.Placed"]);
}

#[test]
fn pipelines_groups_and_phases_are_offered() {
    assert_eq!(offered(&["opt", "-p", "ti"]), ["tidy"]);
    assert_eq!(offered(&["opt", "-p", "NoOp,fix"]), ["NoOp,fixpoint("]);
    assert_eq!(offered(&["opt", "-p", "phase(le"]), ["phase(legalize)"]);
}

#[test]
fn options_and_their_values_are_offered() {
    assert_eq!(offered(&["opt", "-p", "NoOp,Options{co"]), ["NoOp,Options{count="]);
    assert_eq!(offered(&["opt", "-p", "Options{count=1,mode=s"]), ["Options{count=1,mode=small"]);
    assert_eq!(offered(&["opt", "-p", "Options{on="]), ["Options{on=true", "Options{on=false"]);
    assert_eq!(offered(&["opt", "--config", "test.Options.sc"]), ["test.Options.scale="]);
    assert_eq!(offered(&["opt", "--config", "print."]), ["print.elements="]);
}

#[test]
fn a_shell_is_told_how_to_ask() {
    let output = Command::new(env!("CARGO_BIN_EXE_tenon")).env("COMPLETE", "bash").output();
    let script = String::from_utf8(output.expect("the program runs").stdout).expect("text");
    assert!(script.contains("complete ") && script.contains("tenon"), "{script}");
}
