//! New axes of extent 1.
//!
//! ```ir
//! %y = expand_dims(%x) { axis = [1] }    f32[n, 3]  =>  f32[n, 1, 3]
//! ```

use tenon_plugin_api::op::prelude::*;

use super::same_elements::same_elements;

/// Axes of extent 1 at places of the result
#[op(name = "expand_dims", pattern = "broadcast")]
pub struct ExpandDims {
    /// the axes of the result that are new
    axis: Vec<i64>,
}

impl Operator for ExpandDims {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        let tensor = cx.tensor(0)?;
        let Some(dims) = tensor.dims else { return cx.arg(0) };
        let axes = cx.axes("axis", &self.axis, dims.len() + self.axis.len())?;
        let mut rest = dims.iter();
        let dims: Vec<Dim> = (0..dims.len() + axes.len())
            .map(|axis| match axes.contains(&axis) {
                true => cx.dim(1),
                false => *rest.next().expect("as many as are not new"),
            })
            .collect();
        Ok(cx.tensor_type(tensor.dtype, Some(&dims)))
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        same_elements(cx)
    }
}
