//! Elements put into a tensor at indices of their own.
//!
//! ```ir
//! %y = scatter_elements(%x, %i, %u) { axis = 1 }    f32[9, 3], i64[9, n], f32[9, n]  =>  f32[9, 3]
//! ```
//!
//! `y[a, i[a, b]] = u[a, b]`, one after the other: of several at one place the last one stays, or each is added, multiplied
//! or compared.

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;

use super::places::{elements_at, elements_taken, scattered};
use super::reduced::{Reduction, follows, put, scatter_gradient};
use crate::kernel::moves::wrap_axis;
use crate::onnx::steps::reduction_of;
use crate::program::index::{along_axis, axis_of, unless_empty};

/// The first argument with elements of the third put, each at the place of an index in the second, which says where along an axis
#[op(name = "scatter_elements", args = 3)]
pub struct ScatterElements {
    /// the axis that is indexed
    #[attr(default = 0)]
    axis: i64,
    /// what becomes of an element that is there and the one that is put
    #[attr(default = "update", one_of = ["update", "add", "mul", "max", "min"])]
    reduction: String,
}

impl Operator for ScatterElements {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        scattered(cx, &self.reduction, elements_taken(cx, self.axis)?)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        let tensor = cx.arg(0)?;
        let axis = wrap_axis(self.axis, tensor.shape().len());
        let places = elements_at(tensor.shape(), cx.arg(1)?, axis)?;
        Ok(vec![put(tensor, &places, cx.arg(2)?, 1, &self.reduction)?])
    }
}

/// A copy, then one element after the other: two indices may be equal.
#[rule(compute)]
fn program(op: &ScatterElements, program: &mut Program) -> Result<()> {
    let [data, indices, updates] = [0, 1, 2].map(|index| program.input(index));
    let out = program.output(0);
    let axis = axis_of(op.axis, data.shape().len())?;
    let reduction = Reduction::of(&op.reduction);
    program.set(&out, |i| data.at(i));
    let rank = updates.shape().len();
    program.in_order(&unless_empty(&data, updates.shape()), |i| {
        let i = &i[..rank];
        reduction.store(&out, &along_axis(&data, &indices, axis, i), &updates, i)
    });
    Ok(())
}

/// Narrow when its arguments are, unless it may sum many elements.
#[rule(precision)]
fn precision(op: &ScatterElements, _: &mut Site<'_>) -> Option<Precision> {
    follows(&op.reduction)
}

/// `g`, zero where elements were replaced, and its elements at the indices.
#[rule(gradient)]
fn gradient(op: &ScatterElements, at: &mut Adjoint<'_>) -> Result<Grads, PassError> {
    let axis = [("axis", op.axis.into())];
    scatter_gradient(at, &op.reduction, ["scatter_elements", "gather_elements"], &axis)
}

/// `ScatterElements`.
#[rule(import.onnx, key = "ScatterElements", since = 11)]
fn import(node: &mut Node<'_>) -> Outputs {
    let args = [node.input(0)?, node.input(1)?, node.input(2)?];
    let attrs =
        [("axis", node.int_or("axis", 0)?.into()), ("reduction", reduction_of(node)?.into())];
    Ok(vec![node.call("scatter_elements", &args, &attrs)?])
}

/// `Scatter`, the older name.
#[rule(import.onnx, key = "Scatter", since = 9, until = 10)]
fn import_scatter(node: &mut Node<'_>) -> Outputs {
    import(node)
}
