use crate::diagnostics::Source;
use crate::text::{NoWeights, parse_module};
use crate::{Cx, Module};

fn module(text: &str) -> Module {
    parse_module(&Cx::new(), &Source::new("test", text), &mut NoWeights)
        .unwrap_or_else(|errors| panic!("{errors}"))
}

#[track_caller]
fn assert_same(a: &str, b: &str) {
    let (a, b) = (module(a), module(b));
    assert!(a.is_structurally_equal(&b));
    assert_eq!(a.structural_hash(), b.structural_hash());
}

#[track_caller]
fn assert_different(a: &str, b: &str) {
    let (a, b) = (module(a), module(b));
    assert!(!a.is_structurally_equal(&b));
    assert_ne!(a.structural_hash(), b.structural_hash());
}

#[test]
fn names_of_variables_do_not_count_but_which_is_used_does() {
    assert_same("fn @f(%x, %y) { ret %x }", "fn @f(%a, %b) { ret %a }");
    assert_different("fn @f(%x, %y) { ret %x }", "fn @f(%x, %y) { ret %y }");
    assert_different("fn @f(%x) { ret %x }", "fn @g(%x) { ret %x }");
}

#[test]
fn sharing_a_leaf_does_not_count() {
    let one = "fn @f() { ret (const(f32[], 1), const(f32[], 1), const(f32[], 2), exp, exp) }";
    assert_same(one, one);
    assert_same(
        "prim @p(out %C: f32[4]) { %C[0] = %C[1 + 2] + %C[1 + 2] }",
        "prim @p(out %C: f32[4]) { ^0 = %C[1 + 2] %C[0] = ^0 + ^0 }",
    );
}

#[test]
fn sharing_a_call_counts() {
    assert_different(
        "fn @f(%x) { ^0 = rand(%x) ret test.total(^0, ^0) }",
        "fn @f(%x) { ret test.total(rand(%x), rand(%x)) }",
    );
}

#[test]
fn constants_count_by_type_and_bytes() {
    assert_same(
        "fn @f() { ret const(f32[2], [1, 2], \"a\") }",
        "fn @f() { ret const(f32[2], [1.0, 2.0], \"b\") }",
    );
    assert_different("fn @f() { ret const(f32[2], 1) }", "fn @f() { ret const(f32[2], 2) }");
    assert_different("fn @f() { ret const(i32[2], 0) }", "fn @f() { ret const(f32[2], 0) }");
    assert_different("fn @f() { ret const(f32[2], 0) }", "fn @f() { ret const(f32[1, 2], 0) }");
}

#[test]
fn types_and_attributes_count() {
    assert_different("fn @f(%x: f32[n]) { ret %x }", "fn @f(%x: f32[m]) { ret %x }");
    assert_different("fn @f(%x) { ret g(%x) { a = 1 } }", "fn @f(%x) { ret g(%x) { a = 1.0 } }");
    assert_same(
        "module { a = [1, { b = \"c\" }] } fn @f(%x) { ret g(%x) { a = 1, b = 2 } }",
        "module { a = [1, { b = \"c\" }] } fn @f(%x) { ret g(%x) { b = 2, a = 1 } }",
    );
    assert_different("module { a = 1 }", "module { a = 2 }");
}

#[test]
fn the_order_of_functions_does_not_count() {
    assert_same(
        "fn @f(%x) { ret %x } fn @g(%x) { ret @f(%x) }",
        "fn @g(%x) { ret @f(%x) } fn @f(%x) { ret %x }",
    );
}

#[test]
fn blocks_of_bindings_count() {
    assert_different(
        "fn @f(%x) { dataflow { %a = test.double(%x) } ret %a }",
        "fn @f(%x) { %a = test.double(%x) ret %a }",
    );
}
