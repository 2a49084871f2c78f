//! Values for those that are missing: `Imputer`.
//!
//! ```text
//! y[n, f] = x[n, f] == replaced ? imputed[f] : x[n, f]
//! ```
//!
//! What is replaced may be what is no number, which equals nothing.

use tenon_plugin_api::rule::prelude::*;

use super::attributes::{constant, floats};
use super::scaler::per_column;

/// `Imputer`: of floats, or of whole numbers.
#[rule(import.onnx, domain = "ai.onnx.ml", key = "Imputer", since = 1)]
fn imputer(node: &mut Node<'_>) -> Outputs {
    let x = node.input(0)?;
    let dtype = node.dtype(x)?;
    let (floats, ints) = (
        floats(node, "imputed_value_floats")?,
        node.ints("imputed_value_int64s")?.unwrap_or_default(),
    );
    let float = node.float_or("replaced_value_float", 0.0)?;
    let int = node.int_or("replaced_value_int64", 0)?;
    let (replaced, imputed) = match dtype.is_float() {
        true if !floats.is_empty() => {
            let imputed = per_column(node, "imputed_value_floats", &floats, dtype)?;
            (node.scalar(dtype, float)?, imputed)
        }
        false if dtype == DType::I64 && !ints.is_empty() => {
            (constant(node, &[int], &[])?, constant(node, &ints, &[ints.len() as i64])?)
        }
        _ => return invalid(format!("it has no values that are imputed to {dtype}")),
    };
    let is_missing = match dtype.is_float() && float.is_nan() {
        true => node.apply("not_equal", &[x, x])?,
        false => node.apply("equal", &[x, replaced])?,
    };
    Ok(vec![node.apply("where", &[is_missing, imputed, x])?])
}
