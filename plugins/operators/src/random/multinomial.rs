//! Classes drawn by their probabilities.

use tenon_plugin_api::rule::prelude::*;

use super::uniform::unit;
use crate::onnx::steps::{cast_to, wide};

/// `Multinomial`: the class where the logarithm of the probability is largest after `-ln(-ln u)` of a number of its own is added, which
/// chooses each class as likely as it is to be (E. J. Gumbel). A factor of all probabilities changes nothing.
#[rule(import.onnx, key = "Multinomial", since = 7)]
fn multinomial(node: &mut Node<'_>) -> Outputs {
    let x = node.input(0)?;
    let (own, dims) = (wide(node.dtype(x)?), node.dims(x)?);
    let &[batch, classes] = dims.as_slice() else { return invalid("its input is no matrix") };
    let samples = node.int_or("sample_size", 1)?;
    if samples < 1 {
        return invalid("its `sample_size` is below 1");
    }
    let dtype = match node.element_type("dtype")? {
        None => DType::I32,
        Some(dtype @ (DType::I32 | DType::I64)) => dtype,
        Some(dtype) => return invalid(format!("its `dtype` is {dtype}, not i32 or i64")),
    };
    let x = cast_to(node, x, own)?;
    let x = node.call("expand_dims", &[x], &[("axis", 1.into())])?;
    let samples = node.cx().dim(samples);
    let mut noise = unit(node, &[batch, samples, classes], own)?;
    for _ in 0..2 {
        noise = node.apply("log", &[noise])?;
        noise = node.apply("negative", &[noise])?;
    }
    let scores = node.apply("add", &[x, noise])?;
    let classes = node.call("argmax", &[scores], &[("axis", (-1).into())])?;
    Ok(vec![cast_to(node, classes, dtype)?])
}
