//! Without axes of extent 1.
//!
//! ```ir
//! %y = squeeze(%x) { axis = [1] }    f32[n, 1, 3]  =>  f32[n, 3]
//! ```

use tenon_plugin_api::op::prelude::*;

use super::same_elements::same_elements;

/// Without axes of extent 1
#[op(name = "squeeze", pattern = "injective")]
pub struct Squeeze {
    /// the axes; all of extent 1 when not given
    axis: Option<Vec<i64>>,
}

impl Operator for Squeeze {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        let tensor = cx.tensor(0)?;
        let Some(dims) = tensor.dims else { return cx.arg(0) };
        let is_one = |axis: usize| cx.value(dims[axis]) == Some(1);
        let axes: Vec<usize> = match &self.axis {
            Some(axes) => cx.axes("axis", axes, dims.len())?,
            None => (0..dims.len()).filter(|&axis| is_one(axis)).collect(),
        };
        if let Some(&axis) =
            axes.iter().find(|&&axis| cx.value(dims[axis]).is_some_and(|value| value != 1))
        {
            let reason = format!("that dimension is {}", cx.terms().dim_text(dims[axis]));
            return cx.bad_attr("axis", axis, reason);
        }
        let dims: Vec<Dim> = dims
            .iter()
            .enumerate()
            .filter(|(axis, _)| !axes.contains(axis))
            .map(|(_, &dim)| dim)
            .collect();
        Ok(cx.tensor_type(tensor.dtype, Some(&dims)))
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        same_elements(cx)
    }
}
