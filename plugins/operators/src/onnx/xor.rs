//! One of two, and not both.

use tenon_plugin_api::rule::prelude::*;

/// `Xor`.
#[rule(import.onnx, key = "Xor", since = 7)]
fn xor(node: &mut Node<'_>) -> Outputs {
    let (a, b) = (node.input(0)?, node.input(1)?);
    match node.dtype(a)?.is_bool() {
        true => Ok(vec![node.apply("not_equal", &[a, b])?]),
        false => invalid("it takes truth values"),
    }
}
