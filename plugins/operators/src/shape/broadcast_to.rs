//! A tensor repeated along axes.
//!
//! ```ir
//! %y = broadcast_to(%x, %s)    f32[3], shape[n, 3]  =>  f32[n, 3]
//! ```

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;

use crate::kernel::moves::copy;
use crate::kernel::space::broadcast_strides;
use crate::onnx::fold::{self, Folded};
use crate::precision::follows_precision;
use crate::program::index;

/// Repeated along axes, in the shape of the second argument
#[op(name = "broadcast_to", args = 2, pattern = "broadcast")]
pub struct BroadcastTo;

impl Operator for BroadcastTo {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        let tensor = cx.tensor(0)?;
        let shape = cx.shape(1)?;
        if let (Some(dims), Some(shape)) = (tensor.dims, shape) {
            let fits = |(&dim, &target): (&Dim, &Dim)| !cx.is_no_repeat(dim, target);
            if dims.len() > shape.len() || !dims.iter().rev().zip(shape.iter().rev()).all(fits) {
                return Err(cx.mismatch("the shape and the one it is broadcast to", dims, shape));
            }
        }
        Ok(cx.tensor_type(tensor.dtype, shape))
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        let (_, shape) = cx.out()?;
        let tensor = cx.arg(0)?;
        Ok(vec![copy(tensor, 0, shape, broadcast_strides(shape, tensor.shape()))?])
    }
}

/// Each element from where it is.
#[rule(compute)]
fn program(_: &BroadcastTo, program: &mut Program) -> Result<()> {
    let (input, out) = (program.input(0), program.output(0));
    program.set(&out, |indices| {
        input.at(&index::broadcast(program, input.shape(), out.shape(), indices))
    });
    Ok(())
}

/// To the shape that it has, `=> x`.
#[rule(simplify)]
fn simplify(_: &BroadcastTo, at: &mut Site<'_>) -> Option<Expr> {
    at.same_type(at.arg(0))
}

follows_precision!(BroadcastTo);

/// It stays as it is: its shape is an argument.
#[rule(layout)]
fn layout(_: &BroadcastTo, _: &mut Following<'_>) -> Option<Carried> {
    None
}

/// `g`, summed over what was repeated.
#[rule(gradient)]
fn gradient(_: &BroadcastTo, at: &mut Adjoint<'_>) -> Result<Grads> {
    let g = at.sum_to(at.grad(), at.arg(0))?;
    Ok([Grad::Of(g), Grad::Zero].into())
}

/// `Expand`: broadcast both ways.
#[rule(import.onnx, key = "Expand", since = 8)]
fn import(node: &mut Node<'_>) -> Outputs {
    let x = node.input(0)?;
    let wanted = node.input_dims(1)?;
    let dims = node.dims(x)?;
    let shape = broadcast(node, &dims, &wanted);
    let shape = node.shape(&shape)?;
    Ok(vec![node.apply("broadcast_to", &[x, shape])?])
}

/// `Expand` of dimensions.
#[rule(import.onnx, key = "Expand", since = 8, benefit = 2)]
fn import_dims(node: &mut Node<'_>) -> Folded {
    fold::fold(node, |node, inputs| {
        let [data, wanted] = inputs else { return Ok(None) };
        let Some(numbers) = wanted.numbers(node.terms()) else { return Ok(None) };
        let shape = numbers.iter().map(|&extent| usize::try_from(extent).ok()).collect();
        let Some(shape) = shape else { return Ok(None) };
        let wanted = Known { dtype: data.dtype, shape, elements: Vec::new() };
        let Some(shape) = fold::broadcast(&[data, &wanted]) else { return Ok(None) };
        let Some(count) = fold::count(&shape) else { return Ok(None) };
        let elements = (0..count).map(|place| fold::at(data, &shape, place)).collect();
        Ok(Some(Known { dtype: data.dtype, shape, elements }))
    })
}

/// The shape that two are broadcast to. Where it cannot be told whether they fit, they do: that is left
/// to the checks of the operators.
fn broadcast(node: &Node<'_>, left: &[Dim], right: &[Dim]) -> Vec<Dim> {
    let cx = node.cx();
    let rank = left.len().max(right.len());
    let at = |dims: &[Dim], axis: usize| {
        (axis + dims.len()).checked_sub(rank).map_or_else(|| cx.dim(1), |at| dims[at])
    };
    let value = |dim| node.terms().dim_value(dim);
    (0..rank)
        .map(|axis| {
            let (a, b) = (at(left, axis), at(right, axis));
            match (value(a), value(b)) {
                _ if a == b => a,
                (Some(1), _) => b,
                (_, Some(1)) => a,
                (_, Some(_)) => b,
                (Some(_), None) => a,
                (None, None) => cx.dim_max(a, b),
            }
        })
        .collect()
}
