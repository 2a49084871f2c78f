//! Parts of a tensor at indices.
//!
//! ```ir
//! %y = take(%x, %i)    f32[9, 3], i64[n]  =>  f32[n, 3]
//! ```
//!
//! An index below zero counts from the end; one outside of the axis has no value.

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;
use tenon_plugin_api::with_bits;

use super::places::{around, places_of, taken};
use crate::kernel::moves::wrap_axis;
use crate::precision::follows_precision;

/// Parts of the first argument along an axis, at the indices in the second
#[op(name = "take", args = 2, pattern = "injective")]
pub struct Take {
    /// the axis that is indexed
    #[attr(default = 0)]
    axis: i64,
}

impl Operator for Take {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        taken(cx, self.axis)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        let (tensor, indices) = (cx.arg(0)?, cx.arg(1)?);
        let (dtype, shape) = cx.out()?;
        let axis = wrap_axis(self.axis, tensor.shape().len());
        let (outer, extent, inner) = around(tensor.shape(), axis);
        let places = places_of(indices, axis, extent)?;
        with_bits!(dtype, T => {
            let elements = tensor.elements::<T>();
            let mut out: Vec<T> = Vec::with_capacity(shape.iter().product());
            for row in 0..outer {
                for place in &places {
                    let start = (row * extent + place) * inner;
                    out.extend_from_slice(&elements[start..start + inner]);
                }
            }
            Ok(vec![Tensor::from_vec_as(dtype, shape.to_vec(), out)])
        })
    }
}

follows_precision!(Take);

/// `g` added to zeros at the indices.
#[rule(gradient)]
fn gradient(op: &Take, at: &mut Adjoint<'_>) -> Result<Grads> {
    let axis = at.axis(at.arg(0), op.axis)?;
    let zeros = at.zeros_like(at.arg(0))?;
    let args = [zeros, at.arg(1), at.grad()];
    let g = at.apply_with("index_add", &args, &[("axis", axis.into())]);
    Ok([Grad::Of(g), Grad::Zero].into())
}
