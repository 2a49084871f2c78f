//! Normalization by the Euclidean length.
//!
//! ```ir
//! %y = nn.l2_normalize(%x) { axis = [1] }    f32[n, 64]  =>  f32[n, 64]
//! ```

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;

use super::programs::{self, GroupAxes};
use super::statistics::wide;
use crate::kernel::groups::{Groups, by_group};
use crate::kernel::moves::wrap_axis;

/// x / sqrt(max(sum of squares, epsilon)), with the sum over axes
#[op(name = "nn.l2_normalize", pattern = "out_fusable")]
pub struct L2Normalize {
    /// the axes that are summed over
    #[attr(default = [-1])]
    axis: Vec<i64>,
    /// the least sum of squares
    #[attr(default = 1e-12)]
    epsilon: f64,
}

impl Operator for L2Normalize {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        cx.check_float(0)?;
        if let Some(dims) = cx.tensor(0)?.dims {
            cx.axes("axis", &self.axis, dims.len())?;
        }
        let epsilon = self.epsilon;
        match epsilon > 0.0 {
            true => cx.arg(0),
            false => cx.bad_attr("epsilon", epsilon, "it must be positive"),
        }
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        let groups = Groups::along(cx.arg(0)?.shape(), &self.axis);
        by_group(cx, &groups, |group, _| {
            let squares = group.iter().map(|x| x * x).sum::<f64>();
            let length = squares.larger(self.epsilon).sqrt();
            group.iter_mut().for_each(|x| *x /= length);
        })
    }
}

/// One group after the other.
#[rule(compute)]
fn program(op: &L2Normalize, program: &mut Program) {
    let data = program.input(0);
    let shape = data.shape();
    let groups = GroupAxes::along(shape, &op.axis);
    programs::l2_normalize(program, &groups, op.epsilon);
}

/// Along the places of its axes.
#[rule(layout)]
fn layout(op: &L2Normalize, at: &mut Following<'_>) -> Option<Carried> {
    at.along_axes("axis", &op.axis)
}

/// With `r` one over the length: `r (g - y sum(g y))`, and `r g` where the length is the least there is.
#[rule(gradient)]
fn gradient(op: &L2Normalize, at: &mut Adjoint<'_>) -> Result<Grads> {
    let (x, g) = (at.arg(0), at.grad());
    let axes = at.axes(x, Some(&op.axis))?;
    let square = at.mul(x, x);
    let sum = at.reduce("sum", square, &axes, true);
    let least = at.number_like(x, op.epsilon);
    let bounded = at.apply("maximum", &[sum, least]);
    let r = at.apply("rsqrt", &[bounded]);
    let product = at.mul(g, at.value());
    let along = at.reduce("sum", product, &axes, true);
    let along = at.masked("greater", sum, least, along);
    let along = at.mul(at.value(), along);
    let across = at.sub(g, along);
    Ok(Grads::of([at.mul(across, r)]))
}

/// As a sum of squares and its root.
#[rule(decompose.inference)]
fn decompose(op: &L2Normalize, at: &mut Site<'_>) -> Option<Expr> {
    let (dtype, dims) = at.tensor(at.arg(0))?;
    let axes: Vec<i64> = op.axis.iter().map(|&axis| wrap_axis(axis, dims.len()) as i64).collect();
    let x = wide(at, at.arg(0));
    let square = at.mul(x, x);
    let sum = at.reduce("sum", square, &axes, true);
    let least = at.number_like(x, op.epsilon);
    let sum = at.apply("maximum", &[sum, least]);
    let inverse = at.apply("rsqrt", &[sum]);
    let result = at.mul(x, inverse);
    Some(at.in_dtype(result, dtype))
}

/// `LpNormalization`: by the sum of absolute values or the root of the sum of squares along an axis. Where
/// all are zero they stay zero.
#[rule(import.onnx, key = "LpNormalization", since = 1)]
fn import(node: &mut Node<'_>) -> Outputs {
    let x = node.input(0)?;
    let axis = vec![node.int_or("axis", -1)?];
    match node.int_or("p", 2)? {
        1 => {
            let size = node.apply("abs", &[x])?;
            let attrs = [("axis", axis.into()), ("keepdims", true.into())];
            let norm = node.call("sum", &[size], &attrs)?;
            let zero = node.scalar_like(x, 0.0)?;
            let is_zero = node.apply("equal", &[norm, zero])?;
            let y = node.apply("divide", &[x, norm])?;
            Ok(vec![node.apply("where", &[is_zero, zero, y])?])
        }
        2 => {
            let least = match node.dtype(x)? {
                DType::F64 => f64::MIN_POSITIVE,
                _ => f32::MIN_POSITIVE as f64,
            };
            let attrs = [("axis", axis.into()), ("epsilon", least.into())];
            Ok(vec![node.call("nn.l2_normalize", &[x], &attrs)?])
        }
        p => invalid(format!("its attribute `p` is {p}, expected 1 or 2")),
    }
}
