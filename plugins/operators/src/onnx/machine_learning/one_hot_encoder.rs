//! Categories as vectors: `OneHotEncoder`.
//!
//! ```text
//! y[..., c] = x[...] == cats_int64s[c] ? 1 : 0
//! ```
//!
//! What is no category is zeros: a compiled model does not stop at a value, as the attribute `zeros` may ask for.

use tenon_plugin_api::rule::prelude::*;

use crate::onnx::steps::cast_to;

use super::attributes::{constant, no_strings};

/// `OneHotEncoder`.
#[rule(import.onnx, domain = "ai.onnx.ml", key = "OneHotEncoder", since = 1)]
fn one_hot_encoder(node: &mut Node<'_>) -> Outputs {
    node.ignore("zeros");
    no_strings(node, "cats_strings", "encode categories as whole numbers before the model")?;
    let categories = node.ints("cats_int64s")?.unwrap_or_default();
    if categories.is_empty() {
        return invalid("it has no attribute `cats_int64s`");
    }
    let x = node.input(0)?;
    let rank = node.dims(x)?.len();
    let x = cast_to(node, x, DType::I64)?;
    let x = node.call("expand_dims", &[x], &[("axis", vec![rank as i64].into())])?;
    let categories = constant(node, &categories, &[categories.len() as i64])?;
    let is_one = node.apply("equal", &[x, categories])?;
    Ok(vec![cast_to(node, is_one, DType::F32)?])
}
