//! Optional values of which is known whether they are there: that is all that is left of them.

use tenon_plugin_api::rule::prelude::*;

/// `Optional` of a value.
#[rule(import.onnx, key = "Optional", since = 15)]
fn optional(node: &mut Node<'_>) -> Outputs {
    node.ignore("type");
    match node.optional(0) {
        Some(value) => Ok(vec![value]),
        None => unsupported("an optional value that is not there"),
    }
}

/// `OptionalGetElement`.
#[rule(import.onnx, key = "OptionalGetElement", since = 15)]
fn element(node: &mut Node<'_>) -> Outputs {
    Ok(vec![node.input(0)?])
}

/// `OptionalHasElement`: whether it was given a value.
#[rule(import.onnx, key = "OptionalHasElement", since = 15)]
fn has_element(node: &mut Node<'_>) -> Outputs {
    let is_there = i64::from(node.optional(0).is_some());
    let is_there = Known::scalar(DType::BOOL, node.cx().dim(is_there));
    Ok(vec![node.known(&is_there)?])
}
