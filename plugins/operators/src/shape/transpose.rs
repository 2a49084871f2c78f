//! The axes in another order.
//!
//! ```ir
//! %y = transpose(%x) { axes = [0, 2, 1] }    f32[n, 2, 3]  =>  f32[n, 3, 2]
//! ```

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;

use crate::kernel::moves::{permute, wrap_axis};
use crate::onnx::fold::{self, Folded};
use crate::precision::follows_precision;
use crate::program::index::axis_of;

/// The axes in another order
#[op(name = "transpose", pattern = "injective")]
pub struct Transpose {
    /// for each axis of the result, which it is; reversed when not given
    axes: Option<Vec<i64>>,
}

impl Operator for Transpose {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        let tensor = cx.tensor(0)?;
        let Some(dims) = tensor.dims else { return cx.arg(0) };
        let axes = match &self.axes {
            Some(axes) => cx.axes("axes", axes, dims.len())?,
            None => (0..dims.len()).rev().collect(),
        };
        if axes.len() != dims.len() {
            return cx.bad_attr("axes", axes, format!("the tensor has {} dimensions", dims.len()));
        }
        let dims: Vec<Dim> = axes.iter().map(|&axis| dims[axis]).collect();
        Ok(cx.tensor_type(tensor.dtype, Some(&dims)))
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        let tensor = cx.arg(0)?;
        let rank = tensor.shape().len();
        Ok(vec![permute(tensor, &self.order(rank))?])
    }
}

/// Each element from where it is.
#[rule(compute)]
fn program(op: &Transpose, program: &mut Program) -> Result<()> {
    let input = program.input(0);
    let rank = input.shape().len();
    let axes: Vec<usize> = match &op.axes {
        Some(axes) => axes.iter().map(|&axis| axis_of(axis, rank)).collect::<Result<_>>()?,
        None => (0..rank).rev().collect(),
    };
    program.set(&program.output(0), |indices| {
        let mut source = vec![program.index(0); rank];
        for (&axis, &index) in axes.iter().zip(indices) {
            source[axis] = index;
        }
        input.at(&source)
    });
    Ok(())
}

impl Transpose {
    /// For each axis of the result, which one of the `rank` axes it is.
    pub(crate) fn order(&self, rank: usize) -> Vec<usize> {
        match &self.axes {
            Some(axes) => axes.iter().map(|&axis| wrap_axis(axis, rank)).collect(),
            None => (0..rank).rev().collect(),
        }
    }
}

/// `transpose(transpose(x)) => transpose(x)`, and `transpose(x) => x` when no axis moves.
#[rule(simplify)]
fn simplify(op: &Transpose, at: &mut Site<'_>) -> Option<Expr> {
    let x = at.arg(0);
    let rank = at.rank(x)?;
    let outer = op.order(rank);
    if outer.iter().copied().eq(0..rank) {
        return Some(x);
    }
    let inner = at.call_of(x, "transpose")?;
    let source = inner.args[0];
    let inner = at.op_of_call::<Transpose>(&inner)?.order(rank);
    let axes: Vec<i64> = outer.iter().map(|&axis| inner[axis] as i64).collect();
    let transposed = at.transpose(source, &axes);
    at.same_type(transposed)
}

follows_precision!(Transpose);

/// `g` with the axes back in their order.
#[rule(gradient)]
fn gradient(op: &Transpose, at: &mut Adjoint<'_>) -> Result<Grads> {
    let axes = match &op.axes {
        Some(axes) => at.axes(at.arg(0), Some(axes))?,
        None => (0..at.rank(at.arg(0))?).rev().collect(),
    };
    let mut back = vec![0; axes.len()];
    for (place, &axis) in axes.iter().enumerate() {
        back[axis as usize] = place as i64;
    }
    Ok(Grads::of([at.transpose(at.grad(), &back)]))
}

/// `Transpose`.
#[rule(import.onnx, key = "Transpose", since = 1)]
fn import(node: &mut Node<'_>) -> Outputs {
    let x = node.input(0)?;
    match node.ints("perm")? {
        Some(perm) => {
            let rank = node.dims(x)?.len();
            let names_each = (0..rank as i64).all(|axis| perm.contains(&axis));
            if perm.len() != rank || !names_each {
                return invalid(format!(
                    "its attribute `perm` is {perm:?}, and has to name each of {rank} axes, from 0 on, once"
                ));
            }
            Ok(vec![node.call("transpose", &[x], &[("axes", perm.into())])?])
        }
        None => Ok(vec![node.apply("transpose", &[x])?]),
    }
}

/// `Transpose` of dimensions.
#[rule(import.onnx, key = "Transpose", since = 1, benefit = 2)]
fn import_dims(node: &mut Node<'_>) -> Folded {
    let perm = node.ints("perm")?.map(|perm| perm.to_vec());
    fold::fold(node, |_, inputs| {
        let [data] = inputs else { return Ok(None) };
        let rank = data.shape.len();
        let reversed = || (0..rank).rev().map(|axis| axis as i64).collect();
        let perm: Vec<i64> = perm.unwrap_or_else(reversed);
        let is_permuted = (0..rank).all(|axis| perm.contains(&(axis as i64)));
        if perm.len() != rank || !is_permuted {
            return Ok(None);
        }
        let perm: Vec<usize> = perm.iter().map(|&axis| axis as usize).collect();
        let shape: Vec<usize> = perm.iter().map(|&axis| data.shape[axis]).collect();
        let strides: Vec<usize> =
            perm.iter().map(|&axis| data.shape[axis + 1..].iter().product()).collect();
        let place = |mut at: usize| {
            let steps = shape.iter().zip(&strides).rev();
            steps.fold(0, |place, (&extent, &stride)| {
                let index = at % extent;
                at /= extent;
                place + index * stride
            })
        };
        let elements = (0..data.elements.len()).map(|at| data.elements[place(at)]).collect();
        Ok(Some(Known { dtype: data.dtype, shape, elements }))
    })
}
