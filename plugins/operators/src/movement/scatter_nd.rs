//! Parts put into a tensor at vectors of indices.
//!
//! ```ir
//! %y = scatter_nd(%x, %i, %u)    f32[9, 5, 3], i64[n, 2], f32[n, 3]  =>  f32[9, 5, 3]
//! ```
//!
//! `y[i[a, 0], i[a, 1], b] = u[a, b]`, one after the other: of several at one place the last one stays, or each is added,
//! multiplied or compared.

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;

use super::places::{parts_at, parts_taken, scattered};
use super::reduced::{Reduction, follows, put, scatter_gradient};
use crate::onnx::steps::reduction_of;
use crate::program::index::{along_vector, unless_empty};

/// The first argument with parts of the third put at the vectors of indices that the last axis of the second holds
#[op(name = "scatter_nd", args = 3)]
pub struct ScatterNd {
    /// how many of the first axes all tensors have in common
    #[attr(default = 0, min = 0)]
    batch_dims: i64,
    /// what becomes of an element that is there and the one that is put
    #[attr(default = "update", one_of = ["update", "add", "mul", "max", "min"])]
    reduction: String,
}

impl Operator for ScatterNd {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        scattered(cx, &self.reduction, parts_taken(cx, self.batch_dims)?)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        let (tensor, indices, updates) = (cx.arg(0)?, cx.arg(1)?, cx.arg(2)?);
        let starts = parts_at(tensor.shape(), indices, self.batch_dims as usize)?;
        let inner = updates.shape()[indices.shape().len() - 1..].iter().product();
        Ok(vec![put(tensor, &starts, updates, inner, &self.reduction)?])
    }
}

/// A copy, then one element after the other: two vectors of indices may be equal.
#[rule(compute)]
fn program(op: &ScatterNd, program: &mut Program) {
    let [data, indices, updates] = [0, 1, 2].map(|index| program.input(index));
    let out = program.output(0);
    let batch = op.batch_dims as usize;
    let reduction = Reduction::of(&op.reduction);
    program.set(&out, |i| data.at(i));
    let rank = updates.shape().len();
    program.in_order(&unless_empty(&data, updates.shape()), |i| {
        let i = &i[..rank];
        reduction.store(&out, &along_vector(&data, &indices, batch, i), &updates, i)
    });
}

/// Narrow when its arguments are, unless it may sum many elements.
#[rule(precision)]
fn precision(op: &ScatterNd, _: &mut Site<'_>) -> Option<Precision> {
    follows(&op.reduction)
}

/// `g`, zero where parts were replaced, and its parts at the indices.
#[rule(gradient)]
fn gradient(op: &ScatterNd, at: &mut Adjoint<'_>) -> Result<Grads, PassError> {
    let batch = [("batch_dims", op.batch_dims.into())];
    scatter_gradient(at, &op.reduction, ["scatter_nd", "gather_nd"], &batch)
}

/// `ScatterND`.
#[rule(import.onnx, key = "ScatterND", since = 11)]
fn import(node: &mut Node<'_>) -> Outputs {
    let args = [node.input(0)?, node.input(1)?, node.input(2)?];
    let reduction = reduction_of(node)?;
    Ok(vec![node.call("scatter_nd", &args, &[("reduction", reduction.into())])?])
}
