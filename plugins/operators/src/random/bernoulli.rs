//! Truth values of given probabilities.

use tenon_plugin_api::rule::prelude::*;

use super::uniform::unit;
use crate::onnx::steps::{cast_to, wide};

/// `Bernoulli`: one where a number of [0, 1) is below the probability.
#[rule(import.onnx, key = "Bernoulli", since = 15)]
fn bernoulli(node: &mut Node<'_>) -> Outputs {
    let x = node.input(0)?;
    let (own, dims) = (node.dtype(x)?, node.dims(x)?);
    let dtype = node.element_type("dtype")?.unwrap_or(own);
    let probability = cast_to(node, x, wide(own))?;
    let drawn = unit(node, &dims, wide(own))?;
    let is_one = node.apply("less", &[drawn, probability])?;
    Ok(vec![cast_to(node, is_one, dtype)?])
}
