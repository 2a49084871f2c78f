use std::sync::Arc;

use tenon_ir::Function;
use tenon_ir::diagnostics::Source;
use tenon_ir::normalize;
use tenon_ir::text::{NoWeights, WeightsPolicy, parse_module, print_function};

fn function(text: &str) -> Arc<Function> {
    let module =
        parse_module(&tenon_compiler::testing::cx(), &Source::new("test", text), &mut NoWeights)
            .unwrap_or_else(|errors| panic!("{errors}"));
    module.get_str("f").unwrap().clone()
}

#[track_caller]
fn assert_normal_form(before: &str, after: &str) {
    let (before, after) = (normalize(&function(before)), function(after));
    let print = |function| print_function("f", function, &mut WeightsPolicy::inline());
    assert!(before.is_structurally_equal(&after), "{}", print(&before));
    assert!(Arc::ptr_eq(&normalize(&before), &before), "{}", print(&before));
}

#[test]
fn nested_calls_become_bindings() {
    assert_normal_form(
        "fn @f(%x) { %a = test.double(test.total(%x, test.square(%x))) ret neg(%a) }",
        "fn @f(%x) { %t = test.square(%x) %u = test.total(%x, %t) %a = test.double(%u) %v = neg(%a) ret %v }",
    );
}

#[test]
fn graphs_are_left_alone() {
    let graph = function("fn @f(%x) { ret test.double(test.total(%x, %x)) }");
    assert!(Arc::ptr_eq(&normalize(&graph), &graph));
}

#[test]
fn what_two_scopes_share_is_bound_around_both() {
    assert_normal_form(
        "fn @f(%x, %c) {
           ^0 = test.double(%x)
           %a = if %c { %b = test.square(^0) ret %b } else { ret ^0 }
           ret %a
         }",
        "fn @f(%x, %c) {
           %t = test.double(%x)
           %a = if %c { %b = test.square(%t) ret %b } else { ret %t }
           ret %a
         }",
    );
}

#[test]
fn what_the_result_needs_stands_behind_a_dataflow_block() {
    assert_normal_form(
        "fn @f(%x, %c) {
           dataflow { %a = test.double(%x) }
           ret test.square(if %c { ret %a } else { ret %x })
         }",
        "fn @f(%x, %c) {
           dataflow { %a = test.double(%x) }
           %t = if %c { ret %a } else { ret %x }
           %u = test.square(%t)
           ret %u
         }",
    );
}

#[test]
fn the_value_of_two_bindings_is_bound_once() {
    assert_normal_form(
        "fn @f(%x) { ^0 = test.double(%x) %a = ^0 %b = ^0 ret (%a, %b) }",
        "fn @f(%x) { %t = test.double(%x) %a = %t %b = %t ret (%a, %b) }",
    );
}

#[test]
fn what_uses_a_parameter_stays_in_its_function() {
    let closure = "fn @f(%x, %c) {
      %g = fn (%y) {
        ^0 = test.double(%y)
        ^1 = if %c { %a = test.square(^0) ret %a } else { ret ^0 }
        ret ^1
      }
      ret %g
    }";
    assert_normal_form(closure, closure);
}
