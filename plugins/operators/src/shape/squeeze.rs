//! Without axes of extent 1.
//!
//! ```ir
//! %y = squeeze(%x) { axis = [1] }    f32[n, 1, 3]  =>  f32[n, 3]
//! ```

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;

use super::same_elements::same_elements;
use super::simplify::{as_reshape, one_reshape};
use crate::onnx::fold::{self, Folded};
use crate::onnx::steps::axes_of;
use crate::precision::follows_precision;
use crate::program::moves::regrouped;

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

/// The same elements in the same order.
#[rule(compute)]
fn program(_: &Squeeze, program: &mut Program) {
    regrouped(program);
}

/// The same memory in the shape of the result.
#[rule(view)]
fn view(_: &Squeeze, at: &mut Site<'_>) -> Option<Expr> {
    as_reshape(at)
}

/// Of a `reshape`, `expand_dims` or `squeeze` it is one reshape; where the shape comes back, none.
#[rule(simplify)]
fn simplify(_: &Squeeze, at: &mut Site<'_>) -> Option<Expr> {
    one_reshape(at)
}

follows_precision!(Squeeze);

/// Without the places of its axes.
#[rule(layout)]
fn layout(op: &Squeeze, at: &mut Following<'_>) -> Option<Carried> {
    let carried = at.carried()?;
    let (_, dims) = at.tensor(at.arg(0))?;
    let is_one = |dim: &Dim| at.terms().dim_value(*dim) == Some(1);
    let ones = || (0..).zip(&dims).filter(|(_, dim)| is_one(dim)).map(|(axis, _)| axis).collect();
    let places = carried.places(&op.axis.clone().unwrap_or_else(ones))?;
    let squeezed = at.with_attr(carried, "axis", places.clone().into())?;
    Some(squeezed.without(&places))
}

/// `g` in the shape of `x`.
#[rule(gradient)]
fn gradient(_: &Squeeze, at: &mut Adjoint<'_>) -> Grads {
    Grads::of([at.reshape_like(at.grad(), at.arg(0))])
}

/// `Squeeze`, its axes an attribute or an input.
#[rule(import.onnx, key = "Squeeze", since = 1)]
fn import(node: &mut Node<'_>) -> Outputs {
    let x = node.input(0)?;
    let dims = node.dims(x)?;
    let mut axes = squeezed_axes(node, &dims)?;
    if axes_of(node)?.is_none() {
        axes = with_open(node, &dims, axes)?;
    }
    let axes: Vec<i64> = axes.iter().map(|&axis| axis as i64).collect();
    Ok(vec![node.call("squeeze", &[x], &[("axis", axes.into())])?])
}

/// Also the axes of which only a call knows whether they are 1, where the model declares a result without them; a call in
/// which they are not 1 ends. Where it declares them all, they stay, also in a call in which one is 1. Where its declaration does
/// not tell them apart, a call in which one is 1 ends: the result would have another rank.
fn with_open(
    node: &mut Node<'_>,
    dims: &[Dim],
    mut axes: Vec<usize>,
) -> Result<Vec<usize>, Problem> {
    let is_open = |&axis: &usize| node.terms().dim_value(dims[axis]).is_none();
    let open: Vec<usize> = (0..dims.len()).filter(is_open).collect();
    if open.is_empty() {
        return Ok(axes);
    }
    let certain = dims.len() - open.len() - axes.len();
    let declared = node.output_rank(0).map(|rank| rank.saturating_sub(certain));
    if declared == Some(open.len()) {
        return Ok(axes);
    }
    let wanted = if declared == Some(0) { "equal" } else { "not_equal" };
    for &axis in &open {
        let one = node.cx().dim(1);
        let [found, one] = [dims[axis], one].map(|dim| node.known(&Known::scalar(DType::I64, dim)));
        let fits = node.apply(wanted, &[found?, one?])?;
        node.apply("expect", &[fits])?;
    }
    if declared == Some(0) {
        axes.extend(open);
        axes.sort_unstable();
    }
    Ok(axes)
}

/// The axes that `Squeeze` takes out; where none are given, those that are known to be 1.
fn squeezed_axes(node: &Node<'_>, dims: &[Dim]) -> Result<Vec<usize>, Problem> {
    if let Some(axes) = axes_of(node)? {
        return node.axes(&axes, dims.len());
    }
    let is_one = |&axis: &usize| node.terms().dim_value(dims[axis]) == Some(1);
    Ok((0..dims.len()).filter(is_one).collect())
}

/// `Squeeze` of dimensions.
#[rule(import.onnx, key = "Squeeze", since = 1, benefit = 2)]
fn import_dims(node: &mut Node<'_>) -> Folded {
    fold::fold(node, |node, inputs| {
        let data = &inputs[0];
        let dims: Vec<Dim> = data.shape.iter().map(|&dim| node.cx().dim(dim as i64)).collect();
        let axes = squeezed_axes(node, &dims)?;
        if axes.iter().any(|&axis| data.shape[axis] != 1) {
            return Ok(None);
        }
        let shape = data.shape.iter().enumerate();
        let shape = shape.filter(|(axis, _)| !axes.contains(axis)).map(|(_, &dim)| dim).collect();
        Ok(Some(Known { shape, ..data.clone() }))
    })
}
