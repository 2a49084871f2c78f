//! Operators on each row along an axis.

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::with_float;

use crate::kernel::moves::{permute, wrap_axis};
use crate::kernel::parallel::fill;

/// A float tensor with the axis; the result is of its type.
pub(crate) fn infer(cx: &InferCx<'_>, axis: i64) -> Result<Type> {
    cx.check_float(0)?;
    if let Some(dims) = cx.tensor(0)?.dims {
        cx.axis("axis", axis, dims.len())?;
    }
    cx.arg(0)
}

/// Puts each row along the axis through a function.
pub(crate) fn evaluate(cx: &EvalCx<'_>, axis: i64, f: fn(&mut [f64])) -> Result<Vec<Tensor>> {
    let tensor = cx.arg(0)?;
    let rank = tensor.shape().len();
    let axis = wrap_axis(axis, rank);
    // Swapping the axis with the last one is its own inverse.
    let mut order: Vec<usize> = (0..rank).collect();
    order.swap(axis, rank - 1);
    let moved = permute(tensor, &order)?;
    let length = tensor.shape()[axis];
    with_float!(tensor.dtype(), T => {
        let x = moved.elements::<T>();
        let mut out = vec![T::default(); x.len()];
        fill(&mut out, length, &|number, out| {
            let mut row: Vec<f64> =
                x[number * length..][..length].iter().map(|x| x.to_f64()).collect();
            f(&mut row);
            out.iter_mut().zip(row).for_each(|(out, x)| *out = T::from_f64(x));
        });
        let out = Tensor::from_vec_as(tensor.dtype(), moved.shape().to_vec(), out);
        Ok(vec![permute(&out, &order)?])
    })
}
