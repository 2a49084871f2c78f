use super::{How, Reference};
use crate::diagnostics::Source;
use crate::infer::infer_module;
use crate::ir::{Cx, Module};
use crate::text::{NoWeights, parse_module};

fn module(cx: &Cx, text: &str) -> Module {
    let module = parse_module(cx, &Source::new("test", text), &mut NoWeights)
        .unwrap_or_else(|errors| panic!("{errors}"));
    infer_module(&module).unwrap()
}

/// What is different about `after`, or that it computes the same.
fn difference(before: &str, after: &str) -> String {
    let cx = Cx::new();
    let reference = Reference::new(&module(&cx, before), 1);
    assert!(!reference.is_empty());
    match reference.advance(&module(&cx, after)) {
        Ok(_) => "none".to_owned(),
        Err(difference) => difference.how.to_string(),
    }
}

#[test]
fn what_is_only_written_in_another_way_is_the_same() {
    let before = "fn @f(%x: f32[n, 4], %y: (f32[4], i64[n])) { %a = add(%x, %y.0) ret (%a, %y.1) }";
    let after = "fn @f(%x: f32[n, 4], %y: (f32[4], i64[n])) { ret (add(%y.0, %x), %y.1) }";
    assert_eq!(difference(before, after), "none");
}

#[test]
fn another_result_is_found() {
    let found = difference(
        "fn @f(%x: f32[2, 3]) { ret (%x, add(%x, %x)) }",
        "fn @f(%x: f32[2, 3]) { ret (%x, add(%x, multiply(%x, const(f32[3], [1, 1, 1.5])))) }",
    );
    assert!(found.starts_with("tensor 1 of the result: element 2 was"), "{found}");
    assert!(found.ends_with("2 of 6 differ"), "{found}");
    let found = difference(
        "fn @f(%x: i64[4]) { ret %x }",
        "fn @f(%x: i64[4]) { ret add(%x, const(i64[], 1)) }",
    );
    assert!(found.ends_with("4 of 4 differ"), "{found}");
}

#[test]
fn rounding_is_no_difference() {
    let sum = |order: &str| format!("fn @f(%x: f32[64]) {{ ret {order} }}");
    let found = difference(
        &sum("divide(%x, const(f32[], 3))"),
        &sum("multiply(%x, const(f32[], 0.33333334))"),
    );
    assert_eq!(found, "none");
}

#[test]
fn tensor_programs_are_compared() {
    let program = |value: &str| {
        format!("prim @f(%A: f32[8], out %B: f32[8]) {{ for %i in 0..8 {{ %B[%i] = {value} }} }}")
    };
    assert_eq!(difference(&program("%A[%i] * 2.0"), &program("%A[%i] + %A[%i]")), "none");
    assert_ne!(difference(&program("%A[%i] * 2.0"), &program("%A[%i] * 2.5")), "none");
}

#[test]
fn what_fails_now_is_a_difference() {
    let cx = Cx::new();
    let reference = Reference::new(&module(&cx, "fn @f(%x: f32[4]) { ret %x }"), 1);
    let after = module(&cx, "fn @f(%x: f32[4]) -> f32[4] { %y: f32[4] = extern \"g\"(%x) ret %y }");
    let Err(difference) = reference.advance(&after) else { panic!("it cannot be evaluated") };
    assert!(matches!(difference.how, How::Fails(_)), "{}", difference.how);
}

#[test]
fn what_cannot_be_evaluated_is_not_compared() {
    let cx = Cx::new();
    let text = "fn @f(%x: f32[4]) -> f32[4] { %y: f32[4] = extern \"g\"(%x) ret %y }
                fn @g(%h: fn(f32[4]) -> f32[4]) { ret const(f32[], 1) }";
    assert!(Reference::new(&module(&cx, text), 1).is_empty());
}
