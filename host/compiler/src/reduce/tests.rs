use super::reduce;
use crate::diagnostics::Source;
use crate::infer::infer_module;
use crate::ir::{Kind, Module, View};
use crate::text::{NoWeights, WeightsPolicy, parse_module, print_module};

fn module(text: &str) -> Module {
    let module = parse_module(&crate::testing::cx(), &Source::new("test", text), &mut NoWeights)
        .unwrap_or_else(|errors| panic!("{errors}"));
    infer_module(&module).unwrap()
}

/// The smallest module with something, as text.
fn smallest(text: &str, has: impl Fn(&Module) -> bool) -> String {
    let reduced = reduce(&module(text), |module| has(module), |_| {});
    print_module(&reduced, &mut WeightsPolicy::inline()).trim_end().to_owned()
}

fn calls(op: &'static str) -> impl Fn(&Module) -> bool {
    move |module| {
        module.iter().any(|(_, function)| {
            let body = function.view();
            body.post_order().any(|expr| match body.view(expr) {
                View::Call { callee, .. } => body.op_name(callee) == Some(op),
                _ => false,
            })
        })
    }
}

#[test]
fn one_call_among_many_is_left() {
    let mut text = String::from("module { note = 1 }\nfn @other(%x: f32[4]) { ret %x }\n");
    text.push_str("fn @main(%x0: f32[4], %w: f32[4, 4], %u: i64[2]) { a = 1 } {\n");
    for i in 0..60 {
        let op = if i == 37 { "test.triple" } else { "test.double" };
        text.push_str(&format!("  %x{} = {op}(%x{i})\n", i + 1));
    }
    text.push_str("  %c = @other(%x60)\n  ret (%c, %w)\n}\n");
    assert_eq!(
        smallest(&text, calls("test.triple")),
        "fn @main(%x0: f32[4]) {\n  %x38: f32[4] = test.triple(%x0)\n  ret %x0\n}"
    );
}

#[test]
fn what_a_call_needs_of_another_type_becomes_a_parameter() {
    let text = "fn @main(%x: f32[2, 1], %y: f32[1, 5]) {
        %a = test.total(%x, %y)
        %b = test.ramp(%a)
        %c = test.double(%b)
        ret %c
      }";
    assert_eq!(
        smallest(text, calls("test.ramp")),
        "fn @main(%p: f32[2, 5]) {\n  %b: f32[2, 5] = test.ramp(%p)\n  ret %b\n}"
    );
}

#[test]
fn branches_fall_away() {
    let text = "fn @main(%x: f32[4], %c: bool[]) {
        %a = if %c { %b = test.double(%x) %d = test.triple(%b) ret %d } else { ret %x }
        ret %a
      }";
    let reduced = smallest(text, calls("test.triple"));
    assert!(!reduced.contains("if"), "{reduced}");
}

#[test]
fn tensor_programs_shrink() {
    let text = "prim @main(%A: f32[8, 8], %n: i64, out %B: f32[8, 8]) {
        for %i in 0..8 {
          let %k: i64 = %i * 2
          if %n > 0 {
            for %j in 0..8 { %B[%i, %j] = sqrt(%A[%i, %j]) + exp(%A[%j, %i]) }
          } else { %B[%i, %k % 8] = 1.0 }
        }
      }";
    let has_sqrt = |module: &Module| {
        module.iter().any(|(_, function)| {
            let body = function.view();
            body.post_order().any(|expr| match body.view(expr) {
                View::Intrinsic { name, .. } => body.terms().str(name) == "sqrt",
                _ => false,
            })
        })
    };
    let reduced = smallest(text, has_sqrt);
    assert!(reduced.contains("= sqrt(1.0)"), "{reduced}");
    assert_eq!(reduced.lines().count(), 3, "{reduced}");
}

#[test]
fn what_is_not_interesting_comes_back_as_it_is() {
    let module = module("fn @main(%x: f32[4]) { %y = test.double(%x) ret %y }");
    let same = reduce(&module, |_| false, |_| panic!("nothing is found"));
    assert!(same.is_identical(&module));
}

#[test]
fn a_long_function_takes_few_trials() {
    let mut text = String::from("fn @main(%x0: f32[4]) {\n");
    for i in 0..2000 {
        let op = if i == 1234 { "test.triple" } else { "test.double" };
        text.push_str(&format!("  %x{} = {op}(%x{i})\n", i + 1));
    }
    text.push_str("  ret %x2000\n}\n");
    let mut tried = 0;
    let is_interesting = |module: &Module| {
        tried += 1;
        calls("test.triple")(module)
    };
    let reduced = reduce(&module(&text), is_interesting, |_| {});
    let count = |module: &Module| {
        let body = module.iter().next().unwrap().1.view();
        body.post_order().filter(|&expr| body.kind(expr) == Kind::CALL).count()
    };
    assert_eq!(count(&reduced), 1);
    assert!(tried < 500, "{tried} modules were tried");
}
