//! Parts of a tensor at vectors of indices.
//!
//! ```ir
//! %y = gather_nd(%x, %i)    f32[9, 5, 3], i64[n, 2]  =>  f32[n, 3]
//! ```
//!
//! `y[a, b] = x[i[a, 0], i[a, 1], b]`. An index below zero counts from the end; one outside of its axis has no value.

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;
use tenon_plugin_api::with_bits;

use super::places::{parts_at, parts_taken, where_there_is_any};
use crate::precision::follows_precision;
use crate::program::index::along_vector;

/// Parts of the first argument at the vectors of indices that the last axis of the second holds
#[op(name = "gather_nd", args = 2, pattern = "injective")]
pub struct GatherNd {
    /// how many of the first axes both tensors have in common
    #[attr(default = 0, min = 0)]
    batch_dims: i64,
}

impl Operator for GatherNd {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        let taken = parts_taken(cx, self.batch_dims)?;
        let (Some(dims), Some(indices)) = (cx.tensor(0)?.dims, cx.tensor(1)?.dims) else {
            return Ok(taken);
        };
        let batch = self.batch_dims as usize;
        let count = indices.last().and_then(|&last| cx.value(last)).unwrap_or(0) as usize;
        let indexed = dims.iter().skip(batch).take(count).copied().collect::<Vec<Dim>>();
        Ok(where_there_is_any(cx, &indexed, taken))
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        let (tensor, indices) = (cx.arg(0)?, cx.arg(1)?);
        let (dtype, shape) = cx.out()?;
        let starts = parts_at(tensor.shape(), indices, self.batch_dims as usize)?;
        let inner: usize = shape[indices.shape().len() - 1..].iter().product();
        with_bits!(dtype, T => {
            let elements = tensor.elements::<T>();
            let mut out: Vec<T> = Vec::with_capacity(shape.iter().product());
            starts.iter().for_each(|&start| out.extend_from_slice(&elements[start..start + inner]));
            Ok(vec![Tensor::from_vec_as(dtype, shape.to_vec(), out)])
        })
    }
}

/// Each element from where it is.
#[rule(compute)]
fn program(op: &GatherNd, program: &mut Program) {
    let (data, indices) = (program.input(0), program.input(1));
    let batch = op.batch_dims as usize;
    program.set(&program.output(0), |i| data.at(&along_vector(&data, &indices, batch, i)));
}

follows_precision!(GatherNd);

/// `g` added to zeros at the indices.
#[rule(gradient)]
fn gradient(op: &GatherNd, at: &mut Adjoint<'_>) -> Result<Grads> {
    let zeros = at.zeros_like(at.arg(0))?;
    let args = [zeros, at.arg(1), at.grad()];
    let attrs = [("batch_dims", op.batch_dims.into()), ("reduction", "add".into())];
    let g = at.apply_with("scatter_nd", &args, &attrs);
    Ok([Grad::Of(g), Grad::Zero].into())
}

/// `GatherND`.
#[rule(import.onnx, key = "GatherND", since = 11)]
fn import(node: &mut Node<'_>) -> Outputs {
    let args = [node.input(0)?, node.input(1)?];
    let batch = node.int_or("batch_dims", 0)?;
    Ok(vec![node.call("gather_nd", &args, &[("batch_dims", batch.into())])?])
}
