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
    let axes = squeezed_axes(node, &dims)?;
    if axes_of(node)?.is_none() {
        dims.iter().try_for_each(|&dim| expect_no_one(node, dim))?;
    }
    let axes: Vec<i64> = axes.iter().map(|&axis| axis as i64).collect();
    Ok(vec![node.call("squeeze", &[x], &[("axis", axes.into())])?])
}

/// Ends a call in which a dimension that only it says is 1: the result would have another rank.
fn expect_no_one(node: &mut Node<'_>, dim: Dim) -> Result<(), Problem> {
    if node.terms().dim_value(dim).is_some() {
        return Ok(());
    }
    let one = node.cx().dim(1);
    let [found, one] = [dim, one].map(|dim| node.known(&Known::scalar(DType::I64, dim)));
    let differs = node.apply("not_equal", &[found?, one?])?;
    node.apply("expect", &[differs]).map(|_| ())
}

/// The axes that `Squeeze` takes out; where none are given, those that are known to be 1.
fn squeezed_axes(node: &Node<'_>, dims: &[Dim]) -> Result<Vec<usize>, Problem> {
    if let Some(axes) = axes_of(node)? {
        return node.axes(&axes, dims.len());
    }
    let mut axes = Vec::new();
    for (axis, &dim) in dims.iter().enumerate() {
        if node.terms().dim_value(dim) == Some(1) {
            axes.push(axis);
        }
    }
    Ok(axes)
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
