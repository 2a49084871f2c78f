//! Numbers of other origin and size: `Scaler`.
//!
//! ```text
//! y[n, f] = (x[n, f] - offset[f]) * scale[f]
//! ```

use tenon_plugin_api::rule::prelude::*;

use crate::onnx::steps::{cast_to, wide};

use super::attributes::{floats, table};

/// `Scaler`: one number for each column, or one for all of them.
#[rule(import.onnx, domain = "ai.onnx.ml", key = "Scaler", since = 1)]
fn scaler(node: &mut Node<'_>) -> Outputs {
    let x = node.input(0)?;
    let dtype = wide(node.dtype(x)?);
    let rank = node.dims(x)?.len();
    if rank > 2 {
        return invalid(format!("its input has {rank} dimensions"));
    }
    let mut y = cast_to(node, x, dtype)?;
    for (name, op) in [("offset", "subtract"), ("scale", "multiply")] {
        let numbers = floats(node, name)?;
        if !numbers.is_empty() {
            let numbers = per_column(node, name, &numbers, dtype)?;
            y = node.apply(op, &[y, numbers])?;
        }
    }
    Ok(vec![cast_to(node, y, DType::F32)?])
}

/// Numbers of an attribute, which are one, or as many as the first input has columns.
pub(super) fn per_column(
    node: &mut Node<'_>,
    name: &str,
    numbers: &[f64],
    dtype: DType,
) -> Result<Value, Problem> {
    let x = node.input(0)?;
    let columns = node.dims(x)?.last().and_then(|&dim| node.terms().dim_value(dim));
    let count = numbers.len() as i64;
    if columns.is_some_and(|columns| count != 1 && count != columns) {
        return invalid(format!("its attribute `{name}` has {count} numbers"));
    }
    table(node, numbers, &[count], dtype)
}
