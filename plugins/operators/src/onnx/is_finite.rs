//! What is no number, and what is infinite.

use tenon_plugin_api::rule::prelude::*;

/// `IsNaN`: only those differ from themselves.
#[rule(import.onnx, key = "IsNaN", since = 9)]
fn is_nan(node: &mut Node<'_>) -> Outputs {
    let x = node.input(0)?;
    Ok(vec![node.apply("not_equal", &[x, x])?])
}

/// `IsInf`, of both signs, of one, or of none.
#[rule(import.onnx, key = "IsInf", since = 10)]
fn is_infinite(node: &mut Node<'_>) -> Outputs {
    let x = node.input(0)?;
    let signs = (node.flag("detect_positive", true)?, node.flag("detect_negative", true)?);
    let (x, limit) = match signs {
        (true, true) => (node.apply("abs", &[x])?, f64::INFINITY),
        (true, false) => (x, f64::INFINITY),
        (false, true) => (x, f64::NEG_INFINITY),
        // Nothing is less than itself.
        (false, false) => return Ok(vec![node.apply("less", &[x, x])?]),
    };
    let limit = node.scalar_like(x, limit)?;
    Ok(vec![node.apply("equal", &[x, limit])?])
}
