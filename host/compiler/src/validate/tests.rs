use super::{Reference, Tolerance};
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
    difference_but_for(before, after, Tolerance::default())
}

fn difference_but_for(before: &str, after: &str, tolerance: Tolerance) -> String {
    let cx = crate::testing::cx();
    let reference = Reference::new(&module(&cx, before), 1).with_tolerance(tolerance);
    assert!(!reference.is_empty());
    match reference.advance(&module(&cx, after)) {
        Ok(_) => "none".to_owned(),
        Err(difference) => difference.how.to_string(),
    }
}

#[test]
fn what_is_only_written_in_another_way_is_the_same() {
    let before =
        "fn @f(%x: f32[n, 4], %y: (f32[4], i64[n])) { %a = test.total(%x, %y.0) ret (%a, %y.1) }";
    let after = "fn @f(%x: f32[n, 4], %y: (f32[4], i64[n])) { ret (test.total(%y.0, %x), %y.1) }";
    assert_eq!(difference(before, after), "none");
}

#[test]
fn another_result_is_found() {
    let found = difference(
        "fn @f(%x: f32[2, 3]) { ret (%x, test.total(%x, %x)) }",
        "fn @f(%x: f32[2, 3]) { ret (%x, test.total(%x, test.times(%x, const(f32[3], [1, 1, 1.5])))) }",
    );
    assert!(found.starts_with("tensor 1 of the result: element 2 was"), "{found}");
    assert!(found.ends_with("2 of 6 differ"), "{found}");
    let found = difference(
        "fn @f(%x: i64[4]) { ret %x }",
        "fn @f(%x: i64[4]) { ret test.total(%x, const(i64[], 1)) }",
    );
    assert!(found.ends_with("4 of 4 differ"), "{found}");
}

#[test]
fn what_differs_at_infinities_is_found() {
    let f = |body: &str| format!("fn @f(%x: f32[64]) {{ ret {body} }}");
    let found = difference(&f("%x"), &f("test.lowest(%x, const(f32[], 3.4e38))"));
    assert!(found.contains("was inf, and is 3"), "{found}");
    let found = difference(&f("%x"), &f("test.opposite(test.opposite(%x))"));
    assert_eq!(found, "none");
}

#[test]
fn sums_of_infinities_may_change_their_order() {
    let f = |body: &str| format!("fn @f(%x: f32[64], %y: f32[64], %z: f32[64]) {{ ret {body} }}");
    let apart = f("test.times(%x, test.total(%y, %z))");
    let together = f("test.total(test.times(%x, %y), test.times(%x, %z))");
    assert_eq!(difference(&apart, &together), "none");
}

#[test]
fn an_infinity_spreads_where_that_is_allowed() {
    let f = |body: &str| format!("fn @f(%x: f32[64], %y: f32[64]) {{ ret {body} }}");
    // What is taken from itself is zero, and no number where it is infinite.
    let nothing = "test.total(%x, test.opposite(%x))";
    let (before, after) = (f("%y"), f(&format!("test.total(%y, {nothing})")));
    assert!(difference(&before, &after).contains("and is NaN"), "{}", difference(&before, &after));
    assert_eq!(difference_but_for(&before, &after, Tolerance::part(1e-4)), "none");
    let found = difference_but_for(&before, &f("test.total(%y, %x)"), Tolerance::part(1e-4));
    assert!(found.contains("was"), "{found}");
}

#[test]
fn rounding_is_no_difference() {
    let sum = |order: &str| format!("fn @f(%x: f32[64]) {{ ret {order} }}");
    let found = difference(
        &sum("test.parts(%x, const(f32[], 3))"),
        &sum("test.times(%x, const(f32[], 0.33333334))"),
    );
    assert_eq!(found, "none");
}

#[test]
fn what_differs_at_the_extremes_is_found() {
    for (before, after) in [
        (
            "fn @f(%x: f32[64]) { ret test.highest(%x, const(f32[], 0)) }",
            "fn @f(%x: f32[64]) { ret test.positive(%x) }",
        ),
        (
            "fn @f(%x: u8[64]) { ret test.distance(test.opposite(%x)) }",
            "fn @f(%x: u8[64]) { ret test.distance(%x) }",
        ),
        (
            "fn @f(%x: i8[64]) { ret test.ramp(test.distance(%x)) }",
            "fn @f(%x: i8[64]) { ret test.distance(%x) }",
        ),
    ] {
        assert_ne!(difference(before, after), "none", "{before}");
    }
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
    let found = difference(
        "prim @f(%A: f32[4], out %B: f32[4]) { for %i in 0..4 { %B[%i] = %A[%i] } }",
        "prim @f(%A: f32[4], out %B: f32[4]) { for %i in 0..5 { %B[%i] = %A[%i] } }",
    );
    assert!(found.starts_with("it could be evaluated before, and now: index [4]"), "{found}");
}

/// The functions that are compared, and what is said of the others.
fn notes(reference: &Reference) -> (usize, Vec<String>) {
    let notes = reference.notes().map(|(name, why)| format!("@{name}: {why}"));
    (reference.len(), notes.collect())
}

#[test]
fn what_cannot_be_evaluated_is_said() {
    let cx = crate::testing::cx();
    let text = "fn @f(%x: f32[4]) -> f32[4] { %y: f32[4] = extern \"g\"(%x) ret %y }
                fn @g(%h: fn(f32[4]) -> f32[4]) { ret const(f32[], 1) }
                fn @h(%x: f32[4]) -> f32[4] { %y = @h(%x) ret %y }
                fn @i(%x: f32[1099511627776]) { ret %x }";
    let (count, said) = notes(&Reference::new(&module(&cx, text), 1));
    assert_eq!(count, 0);
    assert_eq!(
        said[0],
        "@f: not compared: in `@f`: `g` is outside of the module and cannot be evaluated"
    );
    assert!(said[1].starts_with("@g: not compared: no argument of type fn(f32[4])"), "{}", said[1]);
    assert!(said[2].contains("the recursion may have no end"), "{}", said[2]);
    assert!(said[3].ends_with("it is no data, or too large"), "{}", said[3]);
}

#[test]
fn what_cannot_be_evaluated_any_more_is_no_difference_and_is_said() {
    let cx = crate::testing::cx();
    let reference = Reference::new(&module(&cx, "fn @f(%x: f32[4]) { ret %x }"), 1);
    let after = module(&cx, "fn @f(%x: f32[4]) -> f32[4] { %y: f32[4] = extern \"g\"(%x) ret %y }");
    let Ok(next) = reference.advance(&after) else { panic!("it says nothing of the result") };
    let (count, said) = notes(&next);
    assert_eq!((count, said.len()), (0, 1));
    assert!(
        said[0].starts_with("@f: not compared any more: in `@f`: `g` is outside"),
        "{}",
        said[0]
    );
}

#[test]
fn parameters_of_other_names_are_given_in_another_way() {
    let before = "fn @f(%x: f32[4], %w: f32[4]) { %t = test.opposite(%w) ret test.total(%x, %t) }";
    let lifted = |name: &str| {
        format!("fn @f(%x: f32[4], %{name}: f32[4]) {{ ret test.total(%x, %{name}) }}")
    };
    assert_eq!(difference(before, &lifted("t")), "none");
    assert_ne!(difference(before, &lifted("w")), "none");
}

#[test]
fn what_a_program_leaves_unwritten_is_not_compared() {
    let program = |first: &str, written: &str| {
        format!(
            "prim @f(%A: f32[8], out %B: f32[8]) {{ {first} for %i in 0..{written} {{ %B[%i] = %A[%i] }} }}"
        )
    };
    let all = "for %i in 0..8 { %B[%i] = 7.0 }";
    assert_eq!(difference(&program("", "4"), &program(all, "4")), "none");
    assert_eq!(difference(&program("", "4"), &program(all, "5")), "none");
    // What was written must be.
    assert!(difference(&program("", "4"), &program("", "3")).ends_with("1 of 8 differ"));
    assert!(difference(&program(all, "4"), &program("", "4")).ends_with("4 of 8 differ"));
}

#[test]
fn inputs_are_found_for_linear_forms() {
    for param in ["f32[2*n]", "f32[n + 1]", "f32[3*n + 2, n - 4]", "(f32[n - 70], i64[2*n])"] {
        let gives = |number| format!("fn @f(%x: {param}) {{ ret (%x, const(f32[], {number})) }}");
        assert_eq!(difference(&gives(1), &gives(1)), "none", "{param}");
        assert_ne!(difference(&gives(1), &gives(2)), "none", "{param}");
    }
    // Sizes that do not go together are not the only ones.
    let text = "fn @f(%x: f32[n], %y: f32[m]) { ret test.total(%x, %y) }";
    assert_eq!(difference(text, text), "none");
}

#[cfg(feature = "llvm")]
#[test]
fn compiled_code_is_compared() {
    use super::compare_compiled;
    use crate::target::Target;

    let cx = crate::testing::cx();
    let graph = "fn @main(%x: f32[4], %y: (f32[4], i64[2])) { ret (test.total(%x, %y.0), %y.1) }";
    let lowered = |op: &str| {
        format!(
            "fn @main(%x: f32[4], %y: f32[4], %z: i64[2]) -> (f32[4], i64[2]) {{
           %s = memory.alloc_storage() {{ size = 16 }}
           %r = memory.alloc_tensor(%s) {{ ty = f32[4] }}
           %d = @add(%x, %y, %r)
           ret (%r, %z)
         }}
         prim @add(%A: f32[4], %B: f32[4], out %C: f32[4]) {{
           for %i in 0..4 {{ %C[%i] = %A[%i] {op} %B[%i] }}
         }}"
        )
    };
    let reference = Reference::new(&module(&cx, graph), 1);
    let target = Target::native().unwrap();
    let compare = |text: &str| compare_compiled(&reference, &module(&cx, text), &target, "main");
    compare(&lowered("+")).unwrap();
    let error = compare(&lowered("*")).unwrap_err().to_string();
    assert!(error.starts_with("what was compiled of @main computes something else"), "{error}");
    assert!(error.ends_with("of 4 differ"), "{error}");
    let error = compare("fn @main(%x: f32[4]) { ret %x }").unwrap_err().to_string();
    assert!(error.contains("the model has 1 inputs"), "{error}");
    let error = compare(
        "fn @main(%x: f32[4], %y: f32[4], %z: i64[2]) { %a = test.total(%x, %y) ret (%a, %z) }",
    );
    assert!(error.unwrap_err().to_string().contains("the operator `test.total` is left over"));
}
