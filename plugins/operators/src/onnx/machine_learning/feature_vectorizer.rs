//! Columns of several tensors beside each other: `FeatureVectorizer`.
//!
//! ```text
//! FeatureVectorizer(a: f32[n, 2], b: f32[n, 3]) { inputdimensions = [2, 4] }
//!     =>  f32[n, 6]: those of a, those of b, and a column of zeros
//! ```
//!
//! Columns above those that are asked for are left out.

use tenon_plugin_api::rule::prelude::*;

use crate::onnx::steps::{cast_to, extent_of, joined, product, reshape_to, sliced};

/// `FeatureVectorizer`.
#[rule(import.onnx, domain = "ai.onnx.ml", key = "FeatureVectorizer", since = 1)]
fn feature_vectorizer(node: &mut Node<'_>) -> Outputs {
    let (inputs, wanted) = (node.all_inputs()?, node.ints("inputdimensions")?.unwrap_or_default());
    if inputs.len() != wanted.len() {
        return invalid(format!("it has {} sizes for {} inputs", wanted.len(), inputs.len()));
    }
    let mut parts = Vec::with_capacity(inputs.len());
    for (input, wanted) in inputs.into_iter().zip(wanted) {
        parts.push(columns(node, input, wanted)?);
    }
    Ok(vec![joined(node, &parts, 1)?])
}

/// So many columns of a tensor; a vector is one row.
fn columns(node: &mut Node<'_>, x: Value, wanted: i64) -> Result<Value, Problem> {
    if wanted < 0 {
        return invalid(format!("{wanted} columns are asked for"));
    }
    let dims = node.dims(x)?;
    let (rows, rest) = match dims.as_slice() {
        [_] => (node.cx().dim(1), dims.as_slice()),
        [rows, rest @ ..] => (*rows, rest),
        [] => return invalid("one of its inputs has no dimensions"),
    };
    let rest = product(node, rest);
    let found = extent_of(node, rest, "number of columns")?;
    let x = reshape_to(node, x, &[rows, rest])?;
    let x = cast_to(node, x, DType::F32)?;
    if found == wanted {
        return Ok(x);
    }
    if found > wanted {
        return sliced(node, x, 1, [0, wanted]);
    }
    let shape = node.shape(&[rows, node.cx().dim(wanted - found)])?;
    let attrs = [("value", 0.0.into()), ("dtype", "f32".into())];
    let zeros = node.call("full", &[shape], &attrs)?;
    joined(node, &[x, zeros], 1)
}
