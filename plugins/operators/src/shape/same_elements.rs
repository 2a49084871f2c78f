//! The same elements in another shape.

use tenon_plugin_api::op::prelude::*;

/// The argument in the shape of the result.
pub(crate) fn same_elements(cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
    let (_, shape) = cx.out()?;
    let tensor = cx.arg(0)?;
    match tensor.len() == shape.iter().product::<usize>() {
        true => Ok(vec![tensor.reshaped(shape.to_vec())]),
        false => Err(OpError::Value(format!(
            "{:?} and {shape:?} have different numbers of elements",
            tensor.shape()
        ))),
    }
}
