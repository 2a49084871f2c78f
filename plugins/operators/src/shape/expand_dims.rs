//! New axes of extent 1.
//!
//! ```ir
//! %y = expand_dims(%x) { axis = [1] }    f32[n, 3]  =>  f32[n, 1, 3]
//! ```

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;

use super::same_elements::same_elements;
use super::simplify::{as_reshape, one_reshape};
use crate::onnx::fold::{self, Folded};
use crate::onnx::steps::axes_of;
use crate::precision::follows_precision;
use crate::program::moves::regrouped;

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

/// The same elements in the same order.
#[rule(compute)]
fn program(_: &ExpandDims, program: &mut Program) {
    regrouped(program);
}

/// The same memory in the shape of the result.
#[rule(view)]
fn view(_: &ExpandDims, at: &mut Site<'_>) -> Option<Expr> {
    as_reshape(at)
}

/// Of a `reshape`, `expand_dims` or `squeeze` it is one reshape; where the shape comes back, none.
#[rule(simplify)]
fn simplify(_: &ExpandDims, at: &mut Site<'_>) -> Option<Expr> {
    one_reshape(at)
}

follows_precision!(ExpandDims);

/// New axes go to the front.
#[rule(layout)]
fn layout(op: &ExpandDims, at: &mut Following<'_>) -> Option<Carried> {
    let x = at.carried()?;
    let rank = x.order.len() + op.axis.len();
    let new: Vec<usize> =
        op.axis.iter().map(|axis| axis.rem_euclid(rank as i64) as usize).collect();
    let old: Vec<usize> = (0..rank).filter(|axis| !new.contains(axis)).collect();
    let front: Vec<i64> = (0..new.len() as i64).collect();
    let value = at.expand_dims(x.value, &front);
    let mut order = new;
    order.sort_unstable();
    order.extend(x.order.iter().map(|&axis| old[axis]));
    Some(Carried { value, order })
}

/// `g` in the shape of `x`.
#[rule(gradient)]
fn gradient(_: &ExpandDims, at: &mut Adjoint<'_>) -> Grads {
    Grads::of([at.reshape_like(at.grad(), at.arg(0))])
}

/// `Unsqueeze`, its axes an attribute or an input.
#[rule(import.onnx, key = "Unsqueeze", since = 1)]
fn import(node: &mut Node<'_>) -> Outputs {
    let x = node.input(0)?;
    let Some(axes) = axes_of(node)? else { return invalid("its axes are missing") };
    let axes = node.axes(&axes, node.dims(x)?.len() + axes.len())?;
    let mut axes: Vec<i64> = axes.into_iter().map(|axis| axis as i64).collect();
    axes.sort_unstable();
    Ok(vec![node.call("expand_dims", &[x], &[("axis", axes.into())])?])
}

/// `Unsqueeze` of dimensions.
#[rule(import.onnx, key = "Unsqueeze", since = 1, benefit = 2)]
fn import_dims(node: &mut Node<'_>) -> Folded {
    fold::fold(node, |node, inputs| {
        let data = &inputs[0];
        let Some(axes) = axes_of(node)? else { return Ok(None) };
        let rank = data.shape.len() + axes.len();
        let axes = node.axes(&axes, rank)?;
        let mut rest = data.shape.iter().copied();
        let shape = (0..rank).map(|axis| match axes.contains(&axis) {
            true => Some(1),
            false => rest.next(),
        });
        Ok(shape.collect::<Option<_>>().map(|shape| Known { shape, ..data.clone() }))
    })
}
