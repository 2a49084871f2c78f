//! What becomes of scores in the end: `post_transform`.
//!
//! ```text
//! LOGISTIC        1 / (1 + exp(-s))
//! SOFTMAX         exp(s - max) / sum of these, along each row
//! SOFTMAX_ZERO    the same, where scores of zero stay out of the sum and stay zero
//! PROBIT          sqrt(2) * erfinv(2 s - 1)
//! ```
//!
//! Where two classes have one score, that is the second one's, and the first one gets what is left beside it.

use tenon_plugin_api::rule::prelude::*;

use crate::onnx::steps::{joined, not_among, scaled, shifted};

pub(super) const TRANSFORMS: [&str; 5] = ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"];

/// The attribute, which is one of the transforms.
pub(super) fn post_transform(node: &Node<'_>) -> Result<&'static str, Problem> {
    let found = node.text("post_transform", "NONE")?;
    match TRANSFORMS.iter().find(|&&known| known == found) {
        Some(known) => Ok(known),
        None => not_among("post_transform", &found, &TRANSFORMS),
    }
}

/// A matrix of scores behind a transform. One score alone is no distribution: ONNX Runtime applies nothing but PROBIT to it.
pub(super) fn transformed(
    node: &mut Node<'_>,
    scores: Value,
    transform: &str,
) -> Result<Value, Problem> {
    let is_alone = node.terms().dim_value(node.dims(scores)?[1]) == Some(1);
    match transform {
        "PROBIT" => probit(node, scores),
        _ if is_alone => Ok(scores),
        "SOFTMAX" => node.call("nn.softmax", &[scores], &[("axis", (-1).into())]),
        "LOGISTIC" => node.apply("sigmoid", &[scores]),
        "SOFTMAX_ZERO" => softmax_zero(node, scores),
        _ => Ok(scores),
    }
}

fn softmax_zero(node: &mut Node<'_>, scores: Value) -> Result<Value, Problem> {
    let along = [("axis", vec![1].into()), ("keepdims", true.into())];
    let top = node.call("max", &[scores], &along)?;
    let (size, least) = (node.apply("abs", &[scores])?, node.scalar_like(scores, 1e-7)?);
    let counts = node.apply("greater", &[size, least])?;
    let lowered = node.apply("subtract", &[scores, top])?;
    let exp = node.apply("exp", &[lowered])?;
    let zero = node.scalar_like(scores, 0.0)?;
    let exp = node.apply("where", &[counts, exp, zero])?;
    let sum = node.call("sum", &[exp], &along)?;
    node.apply("divide", &[exp, sum])
}

/// The inverse of the error function is the approximation by S. Winitzki, as it is in ONNX Runtime:
/// `±sqrt(sqrt(v² - l / a) - v)` with `l = ln(1 - x²)`, `v = 2 / (π a) + l / 2` and `a = 0.147`.
fn probit(node: &mut Node<'_>, scores: Value) -> Result<Value, Problem> {
    const A: f64 = 0.147;
    let x = scaled(node, scores, 2.0)?;
    let x = shifted(node, x, -1.0)?;
    let (one, zero) = (node.scalar_like(x, 1.0)?, node.scalar_like(x, 0.0)?);
    let (below, above) = (node.apply("subtract", &[one, x])?, node.apply("add", &[one, x])?);
    let inner = node.apply("multiply", &[below, above])?;
    let log = node.apply("log", &[inner])?;
    let half = scaled(node, log, 0.5)?;
    let v = shifted(node, half, 2.0 / (std::f64::consts::PI * A))?;
    let square = node.apply("multiply", &[v, v])?;
    let part = scaled(node, log, 1.0 / A)?;
    let inner = node.apply("subtract", &[square, part])?;
    let root = node.apply("sqrt", &[inner])?;
    let inner = node.apply("subtract", &[root, v])?;
    let root = node.apply("sqrt", &[inner])?;
    let root = scaled(node, root, std::f64::consts::SQRT_2)?;
    let is_below = node.apply("less", &[x, zero])?;
    let negative = node.apply("negative", &[root])?;
    node.apply("where", &[is_below, negative, root])
}

/// What the score of the second of two classes means where there is no other.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Single {
    /// The first class has the rest to one.
    Probability,
    /// The first class has the opposite.
    Difference,
}

/// The scores of two classes, of a column that is the second one's.
pub(super) fn of_two(
    node: &mut Node<'_>,
    score: Value,
    single: Single,
    transform: &str,
) -> Result<Value, Problem> {
    let opposite = node.apply("negative", &[score])?;
    let pair = match (transform, single) {
        ("PROBIT", _) => return unsupported("the transform PROBIT of one score for two classes"),
        ("LOGISTIC", _) => [node.apply("sigmoid", &[opposite])?, node.apply("sigmoid", &[score])?],
        (_, Single::Probability) => [shifted(node, opposite, 1.0)?, score],
        (_, Single::Difference) => [opposite, score],
    };
    joined(node, &pair, 1)
}

/// Whether elements are above a number.
pub(super) fn is_above(node: &mut Node<'_>, x: Value, limit: f64) -> Result<Value, Problem> {
    let limit = node.scalar_like(x, limit)?;
    node.apply("greater", &[x, limit])
}
