//! Elements of a tensor at indices of their own.
//!
//! ```ir
//! %y = gather_elements(%x, %i) { axis = 1 }    f32[9, 3], i64[9, n]  =>  f32[9, n]
//! ```
//!
//! `y[a, b] = x[a, i[a, b]]`. An index below zero counts from the end; one outside of the axis has no value.

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;
use tenon_plugin_api::with_bits;

use super::places::{elements_at, elements_taken, where_there_is_any};
use crate::kernel::moves::wrap_axis;
use crate::precision::follows_precision;
use crate::program::index::{along_axis, axis_of};

/// Elements of the first argument, each at the place of an index in the second, which says where along an axis
#[op(name = "gather_elements", args = 2, pattern = "injective")]
pub struct GatherElements {
    /// the axis that is indexed
    #[attr(default = 0)]
    axis: i64,
}

impl Operator for GatherElements {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        let taken = elements_taken(cx, self.axis)?;
        Ok(where_there_is_any(cx, cx.tensor(0)?.dims.unwrap_or(&[]), taken))
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        let tensor = cx.arg(0)?;
        let (dtype, shape) = cx.out()?;
        let axis = wrap_axis(self.axis, shape.len());
        let places = elements_at(tensor.shape(), cx.arg(1)?, axis)?;
        with_bits!(dtype, T => {
            let elements = tensor.elements::<T>();
            let out: Vec<T> = places.into_iter().map(|place| elements[place]).collect();
            Ok(vec![Tensor::from_vec_as(dtype, shape.to_vec(), out)])
        })
    }
}

/// Each element from where it is.
#[rule(compute)]
fn program(op: &GatherElements, program: &mut Program) -> Result<()> {
    let (data, indices) = (program.input(0), program.input(1));
    let axis = axis_of(op.axis, data.shape().len())?;
    program.set(&program.output(0), |i| data.at(&along_axis(&data, &indices, axis, i)));
    Ok(())
}

follows_precision!(GatherElements);

/// `g` added to zeros at the indices.
#[rule(gradient)]
fn gradient(op: &GatherElements, at: &mut Adjoint<'_>) -> Result<Grads> {
    let zeros = at.zeros_like(at.arg(0))?;
    let args = [zeros, at.arg(1), at.grad()];
    let attrs = [("axis", op.axis.into()), ("reduction", "add".into())];
    let g = at.apply_with("scatter_elements", &args, &attrs);
    Ok([Grad::Of(g), Grad::Zero].into())
}

/// `GatherElements`.
#[rule(import.onnx, key = "GatherElements", since = 11)]
fn import(node: &mut Node<'_>) -> Outputs {
    let args = [node.input(0)?, node.input(1)?];
    let axis = node.int_or("axis", 0)?;
    Ok(vec![node.call("gather_elements", &args, &[("axis", axis.into())])?])
}
