//! Operators of a plugin that misbehave: each failure is an error that names the operator, and the host goes on.

use std::path::PathBuf;
use std::time::Duration;

use tenon_compiler::diagnostics::Source;
use tenon_compiler::eval::{Evaluator, Limits, Tensor, Value};
use tenon_compiler::infer::infer_module;
use tenon_compiler::ir::{Cx, Module};
use tenon_compiler::registry::{Config, Registry};
use tenon_compiler::text::{NoWeights, parse_module};

fn faulty() -> PathBuf {
    let program = std::env::current_exe().expect("this test's file");
    let profile = program.ancestors().nth(2).expect("target/<profile>/deps/<test>");
    let path = profile.join("examples/libfaulty.so");
    assert!(path.exists(), "{} is built by `cargo build --examples`", path.display());
    path
}

/// A call of an operator with attributes, as a module with types.
fn module(call: &str) -> Result<Module, String> {
    let registry = Registry::of_files(&[faulty()]).expect("it is a plugin");
    let cx = Cx::with_operators(registry.operators());
    let text = format!("fn @main(%x: f32[4]) {{\n  %y = {call}\n  ret %y\n}}\n");
    let module = parse_module(&cx, &Source::new("call", text), &mut NoWeights);
    let module = module.map_err(|errors| errors.to_string())?;
    infer_module(&module).map_err(|errors| errors[0].1.to_string())
}

fn evaluated(call: &str) -> Result<Vec<f32>, String> {
    let module = module(call)?;
    let x = Value::Tensor(Tensor::from_vec(vec![4], vec![1f32, 2.0, 3.0, 4.0]));
    let value = Evaluator::new(&module).call("main", vec![x]).map_err(|error| error.to_string())?;
    Ok(value.to_tensor().expect("a tensor").elements::<f32>().to_vec())
}

#[test]
fn a_right_one_is_evaluated() {
    assert_eq!(evaluated("test.op.Right(%x)"), Ok(vec![1.0, 2.0, 3.0, 4.0]));
}

#[test]
fn what_fails_in_inference_is_told_of_the_operator() {
    let said = |call: &str| module(call).map(|_| ()).expect_err("it is wrong");
    let panic = said("test.op.PanicsInInfer(%x)");
    assert!(panic.contains("`test.op.PanicsInInfer`: the operator is broken: panic at"), "{panic}");
    assert!(panic.contains("faulty/operators.rs"), "{panic}");
    let said_of = |name: &str| said(&format!("test.op.{name}(%x)"));
    assert!(said_of("NoType").contains("`test.op.NoType`: the operator is broken: its type is"));
    assert!(said_of("NoTerm").contains("`test.op.NoTerm`: the operator is broken: its type is"));
    for part in ["field", "dimension", "element"] {
        let found = said(&format!("test.op.NoPart(%x) {{ part = {part:?} }}"));
        assert!(found.contains("`test.op.NoPart`: the operator is broken: its type is"), "{found}");
    }
    let two = said("test.op.Right(%x, %x)");
    assert!(two.contains("`test.op.Right`: it takes 1 argument, not 2"), "{two}");
}

#[test]
fn what_fails_in_evaluation_is_told_of_the_operator() {
    let said = |mode: &str| {
        let call = format!("test.op.WrongValue(%x) {{ mode = {mode:?} }}");
        evaluated(&call).expect_err("it is wrong")
    };
    let panic = said("panics");
    assert!(panic.contains("`test.op.WrongValue`: the operator is broken: panic at"), "{panic}");
    assert!(panic.contains("the value of test.op.WrongValue is too hard"), "{panic}");
    let nothing = said("nothing");
    assert!(nothing.contains("`test.op.WrongValue`: it evaluates to , and its type is f32[4]"));
    let much = said("too much");
    assert!(much.contains("`test.op.WrongValue`: it evaluates to f32[9], and its type is f32[4]"));
    let error = said("error");
    assert!(error.contains("`test.op.WrongValue`: it does not like the values"), "{error}");
    let unknown = said("sleeps");
    assert!(unknown.contains("it is panics, nothing, too much, error or lost"), "{unknown}");
}

#[test]
fn one_that_never_has_a_value_ends_an_evaluation_with_a_limit() {
    let module = module("test.op.Endless(%x)").expect("it has a type");
    let x = Value::Tensor(Tensor::from_vec(vec![4], vec![1f32, 2.0, 3.0, 4.0]));
    let limits = Limits { patience: Some(Duration::from_secs(1)), ..Limits::default() };
    let value = Evaluator::new(&module).with_limits(limits).call("main", vec![x]);
    let error = value.expect_err("it never ends");
    assert!(error.is_no_verdict());
    let said = error.to_string();
    assert!(said.contains("`test.op.Endless` has no value after 1 seconds"), "{said}");
}

#[test]
fn one_that_a_pass_waits_for_ends_the_program_with_its_name() {
    let house = tempfile::tempdir().expect("a folder");
    let file = |name: &str, text: &str| {
        std::fs::write(house.path().join(name), text).expect("written");
    };
    std::fs::copy(faulty(), house.path().join("libfaulty.so")).expect("copied");
    file("registry.toml", "schema = 1\n[[plugins.dir]]\npath = \".\"\nenable = \"all\"\n");
    file("m.ir", "fn @main() { %a = test.op.Endless(const(f32[2], [1.0, 2.0]))\n ret %a }\n");
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_tenon"))
        .args(["opt", "m.ir", "-o", "out.ir", "-p", "test.Evaluate"])
        .args(["--config", "evaluate.patience=1"])
        .env("TENON_REGISTRY", house.path().join("registry.toml"))
        .current_dir(house.path())
        .output()
        .expect("the program runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("error: `test.op.Endless` has no value after 1 seconds"), "{said}");
    assert!(said.contains("help: `--config evaluate.patience=10` waits longer"), "{said}");
    assert!(!house.path().join("out.ir").exists(), "nothing is written");
}

#[test]
fn one_that_is_to_be_isolated_is_refused() {
    let house = tempfile::tempdir().expect("a folder");
    let plugins = house.path().join("plugins");
    std::fs::create_dir(&plugins).expect("a folder in it");
    std::fs::copy(faulty(), plugins.join("libfaulty.so")).expect("copied");
    let file = house.path().join("registry.toml");
    let text = "schema = 1\n[[plugins.dir]]\npath = \"plugins\"\nenable = \"all\"\n\
                [plugins.isolate]\n\"test.faulty\" = true\n";
    std::fs::write(&file, text).expect("written");
    let registry = Registry::from_config(Config::read(&file).expect("it reads"));
    let operators = registry.operators();
    let said = operators.get("test.op.Right").expect_err("it is kept out").to_string();
    assert!(said.contains("keeps `test.faulty` out of this process"), "{said}");
}
