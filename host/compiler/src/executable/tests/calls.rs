//! Calls of graph functions.

use super::run::{self, check_at, compile, module};
use crate::executable::{CompileOptions, Executable};
use crate::target::Target;

const PROGRAMS: &str = r#"
prim @twice(%x: f32[n], out %y: f32[n]) {
  for %i in 0..dim(n) {
    %y[%i] = %x[%i] + %x[%i]
  }
}

prim @sum(%x: f32[n], %y: f32[n], out %z: f32[n]) {
  for %i in 0..dim(n) {
    %z[%i] = %x[%i] + %y[%i]
  }
}

prim @fill(out %y: f32[n]) {
  for %i in 0..dim(n) {
    %y[%i] = 3.0
  }
}
"#;

fn check(functions: &str, runs: &[&[i64]]) -> Executable {
    check_at(&format!("{functions}\n{PROGRAMS}"), runs)
}

fn refuse(functions: &str, words: &[&str]) {
    let module = module(&format!("{functions}\n{PROGRAMS}"));
    let options = CompileOptions { threads: 1, ..CompileOptions::default() };
    let error = Executable::compile(&module, &Target::native().unwrap(), &options).unwrap_err();
    let text = error.to_string();
    assert!(words.iter().all(|word| text.contains(word)), "{text}");
}

#[test]
fn functions_call_each_other() {
    let executable = check(
        r#"fn @main(%x: f32[100]) {
  %a: f32[100] = @quadruple(%x)
  %b: f32[100] = @quadruple(%a)
  %c: f32[100] = call_tir(@sum, %b, %x) { out = f32[100] }
  ret (%c, %b)
}

fn @quadruple(%x: f32[100]) -> f32[100] {
  %a: f32[100] = @double(%x)
  %b: f32[100] = @double(%a)
  ret %b
}

fn @double(%x: f32[100]) -> f32[100] {
  %a: f32[100] = call_tir(@twice, %x) { out = f32[100] }
  ret %a
}"#,
        &[&[]],
    );
    // `%a` of `@main`, and behind it `%a` of `@quadruple`; all else is made where it is wanted.
    assert_eq!(executable.signature().workspace_size, Some(2 * 448));
}

/// Symbols of a callee are numbers that it is given; what it needs follows from those of the caller.
#[test]
fn sizes_of_callees_follow_from_those_of_callers() {
    check(
        r#"fn @main(%x: f32[n], %y: f32[m]) {
  %a: f32[n] = @four(%x)
  %b: f32[m] = @four(%y)
  %c: f32[n] = @four(%a)
  ret (%a, %b, %c)
}

fn @four(%x: f32[k]) -> f32[k] {
  %a: f32[k] = call_tir(@twice, %x) { out = f32[k] }
  %b: f32[k] = call_tir(@sum, %a, %a) { out = f32[k] }
  ret %b
}"#,
        &[&[3, 5], &[100, 1], &[0, 70], &[1, 1000]],
    );
}

#[test]
fn arguments_may_be_tuples_and_shapes() {
    check(
        r#"fn @main(%x: f32[n]) {
  %s: shape[n, 2] = shape(n, 2)
  %t: (f32[n], (f32[n], f32[2])) = (%x, (%x, const(f32[2], [1, 2])))
  %r: (f32[n], (f32[n], f32[2*k])) = @both(%t, shape(n, n + 1), %s)
  ret (%r.1, %r.0)
}

fn @both(%t: (f32[k], (f32[k], f32[l])), %s: shape[k, m], %u: shape[k, l]) -> (f32[k], (f32[k], f32[2*m])) {
  %a: f32[k] = call_tir(@sum, %t.0, %t.1.0) { out = f32[k] }
  %b: f32[2*m] = call_tir(@fill) { out = f32[2*m] }
  ret (%t.0, (%a, %b))
}"#
        .replace("f32[2*k])) = @both", "f32[2*n + 2])) = @both")
        .as_str(),
        &[&[1], &[5], &[0], &[64]],
    );
}

#[test]
fn closures_hold_values() {
    check(
        r#"fn @main(%x: f32[n], %y: f32[n]) {
  %f: fn(f32[n], f32[n]) -> f32[n] = make_closure(@add3, %y)
  %g: fn(f32[n]) -> f32[n] = make_closure(%f, %x)
  %a: f32[n] = %g(%y)
  %b: f32[n] = %g(%a)
  %c: f32[n] = call_pure(%f, %a, %b)
  %d: f32[n] = call_pure(@add3, %a, %b, %c)
  ret (%c, %d)
}

private fn @add3(%x: f32[n], %y: f32[n], %z: f32[n]) -> f32[n] {
  %a: f32[n] = call_tir(@sum, %x, %y) { out = f32[n] }
  %b: f32[n] = call_tir(@sum, %a, %z) { out = f32[n] }
  ret %b
}"#,
        &[&[1, 1], &[9, 9], &[0, 0]],
    );
}

#[test]
fn calls_stand_in_branches_and_callees_have_branches() {
    let text = r#"fn @main(%c: bool[], %x: f32[n]) {
  %y: f32[n] = if %c {
    %a: f32[n] = @choose(%c, %x)
    ret %a
  } else {
    %b: f32[n] = @choose(%c, %x)
    ret %b
  }
  ret %y
}

fn @choose(%c: bool[], %x: f32[n]) -> f32[n] {
  %y: f32[n] = if %c {
    %a: f32[n] = call_tir(@twice, %x) { out = f32[n] }
    %b: f32[n] = call_tir(@twice, %a) { out = f32[n] }
    ret %b
  } else {
    ret %x
  }
  ret %y
}"#;
    super::choices::check_with(&format!("{text}\n{PROGRAMS}"), 7);
}

#[test]
fn a_long_chain_of_calls_is_compiled() {
    const LENGTH: usize = 2000;
    let mut text = String::from("fn @main(%x: f32[4]) {\n  %y: f32[4] = @f0(%x)\n  ret %y\n}\n");
    for number in 0..LENGTH {
        text.push_str(&format!(
            "private fn @f{number}(%x: f32[4]) -> f32[4] {{\n  %y: f32[4] = @f{}(%x)\n  ret %y\n}}\n",
            number + 1
        ));
    }
    text.push_str(&format!("private fn @f{LENGTH}(%x: f32[4]) -> f32[4] {{\n  ret %x\n}}\n"));
    check(&text, &[&[]]);
}

#[test]
fn what_cannot_be_called_is_named() {
    refuse(
        "fn @main(%x: f32[4]) {\n  %y: f32[4] = @f(%x)\n  ret %y\n}\n\
         fn @f(%x: f32[4]) -> f32[4] {\n  %y: f32[4] = @g(%x)\n  ret %y\n}\n\
         fn @g(%x: f32[4]) -> f32[4] {\n  %z = test.ramp(%x)\n  ret %z\n}",
        &["function `main`, binding `y`", "function `g`, binding `z`", "`test.ramp`"],
    );
    refuse(
        "fn @main(%f: fn(f32[4]) -> f32[4], %x: f32[4]) {\n  %y: f32[4] = %f(%x)\n  ret %y\n}",
        &["parameter `f`", "fn(f32[4]) -> f32[4]"],
    );
    refuse(
        "fn @main(%c: bool[], %x: f32[4]) {\n  %f: fn(f32[4]) -> f32[4] = if %c {\n    ret @g\n  } else {\n    ret @h\n  }\n  %y: f32[4] = %f(%x)\n  ret %y\n}\n\
         fn @g(%x: f32[4]) -> f32[4] {\n  ret %x\n}\nfn @h(%x: f32[4]) -> f32[4] {\n  ret %x\n}",
        &["binding `f`", "fn(f32[4]) -> f32[4]"],
    );
}

/// A function that nobody can call may hold anything.
#[test]
fn what_is_not_called_is_not_compiled() {
    let other = "fn @main(%x: f32[4]) {\n  ret %x\n}\nfn @other(%x: f32[4]) {\n  %y = test.ramp(%x)\n  ret %y\n}";
    refuse(other, &["function `other`, binding `y`", "`test.ramp`"]);
    let text = format!(
        "fn @main(%x: f32[4]) {{\n  ret %x\n}}\nprivate fn @other(%x: f32[4]) {{\n  %y = test.ramp(%x)\n  ret %y\n}}\n{PROGRAMS}"
    );
    compile(&module(&text));
}

#[test]
fn a_thousand_results_are_right() {
    // So many that the function that calls for them is compiled without optimization.
    let count = 1200;
    let (mut calls, mut results) = (String::new(), Vec::new());
    for at in 0..count {
        calls += &format!(
            "  %y{at}: f32[3] = call_tir(@add, %x, const(f32[3], {at})) {{ out = f32[3] }}\n"
        );
        results.push(format!("%y{at}"));
    }
    let results = results.join(", ");
    let text = format!(
        "fn @main(%x: f32[3]) {{\n{calls}  ret ({results})\n}}\n
prim @add(%x: f32[3], %y: f32[3], out %z: f32[3]) {{
  for %i in 0..3 {{
    %z[%i] = %x[%i] + %y[%i]
  }}
}}\n"
    );
    run::check(&text);
}
