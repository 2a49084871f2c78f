//! Each element within bounds.
//!
//! ```ir
//! %y = clip(%x) { min = 0.0, max = 6.0 }    f32[n, 3]  =>  f32[n, 3]
//! ```
//!
//! What is not a number stays so; a bound that the type cannot hold saturates, which bounds nothing.

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;
use tenon_plugin_api::with_number;

use super::types::number;
use crate::kernel::elements::map;
use crate::precision::follows_precision;
use crate::program::elementwise::elementwise;
use tenon_plugin_api::program;

/// Each element, but not below min and not above max
#[op(name = "clip", pattern = "elementwise")]
pub struct Clip {
    /// lower bound
    #[attr(default = "-inf")]
    min: f64,
    /// upper bound
    #[attr(default = "inf")]
    max: f64,
}

impl Operator for Clip {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        number(cx)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        with_number!(cx.arg(0)?.dtype(), T => {
            let (min, max) = (T::from_f64(self.min), T::from_f64(self.max));
            map(cx, |x: T| x.larger(min).smaller(max))
        })
    }
}

/// On integers a bound is truncated towards zero, and one that the dtype cannot hold bounds nothing.
#[rule(compute)]
fn program(op: &Clip, program: &mut Program) -> Result<()> {
    elementwise(program, |args| bounded(args[0], op.min, op.max))
}

fn bounded(x: program::Scalar<'_>, min: f64, max: f64) -> program::Scalar<'_> {
    let dtype = x.dtype();
    if dtype.is_float() {
        let x = if min == f64::NEG_INFINITY { x } else { x.max(min) };
        return if max == f64::INFINITY { x } else { x.min(max) };
    }
    let program = x.program();
    let (low, high) = match dtype {
        DType::U64 => (0.0, u64::MAX as f64),
        dtype => {
            let (low, high) = dtype.int_bounds();
            (low as f64, high as f64)
        }
    };
    let x = if min <= low { x } else { x.max(program.literal(dtype, min)) };
    if max >= high { x } else { x.min(program.literal(dtype, max)) }
}

/// Without bounds it is its argument; `clip(clip(x)) => clip(x)` with the inner bounds, where the outer ones cut nothing more.
#[rule(simplify)]
fn simplify(op: &Clip, at: &mut Site<'_>) -> Option<Expr> {
    let x = at.arg(0);
    if (op.min, op.max) == (f64::NEG_INFINITY, f64::INFINITY) {
        return Some(x);
    }
    let inner = at.call_of(x, "clip")?;
    let inner: Clip = at.op_of_call(&inner)?;
    (op.min <= inner.min && inner.min <= inner.max && inner.max <= op.max).then_some(x)
}

follows_precision!(Clip);

/// `g` where `min <= x <= max`.
#[rule(gradient)]
fn gradient(op: &Clip, at: &mut Adjoint<'_>) -> Grads {
    let (x, mut g) = (at.arg(0), at.grad());
    for (bound, comparison) in [(op.min, "greater_equal"), (op.max, "less_equal")] {
        if bound.is_finite() {
            let bound = at.number_like(x, bound);
            g = at.masked(comparison, x, bound, g);
        }
    }
    Grads::of([g])
}

/// `Clip` with its bounds as attributes.
#[rule(import.onnx, key = "Clip", since = 6, until = 10)]
fn import_attributes(node: &mut Node<'_>) -> Outputs {
    let x = node.input(0)?;
    // Those that are left out bound what is infinite.
    let min = node.float_or("min", f32::MIN)?;
    let max = node.float_or("max", f32::MAX)?;
    Ok(vec![node.call("clip", &[x], &[("min", min.into()), ("max", max.into())])?])
}

/// `Clip` with its bounds as inputs, which need not be constants.
#[rule(import.onnx, key = "Clip", since = 11)]
fn import(node: &mut Node<'_>) -> Outputs {
    let x = node.input(0)?;
    let largest = largest(node.dtype(x)?);
    let bounds = [("min", node.optional(1), -largest), ("max", node.optional(2), largest)];
    let mut attrs = Vec::new();
    for (name, bound, left_out) in bounds {
        match bound.map(|bound| node.number(bound).and_then(Scalar::as_float)) {
            None if left_out.is_infinite() => {}
            None => attrs.push((name, left_out.into())),
            Some(Some(value)) => attrs.push((name, value.into())),
            Some(None) => return clip_by_comparison(node, x, bounds),
        }
    }
    Ok(vec![node.call("clip", &[x], &attrs)?])
}

/// What bounds an element where a bound is left out, but for the sign: of floats the largest number.
fn largest(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => 65504.0,
        DType::BF16 => f32::from_bits(0x7f7f_0000).into(),
        DType::F32 => f32::MAX.into(),
        DType::F64 => f64::MAX,
        _ => f64::INFINITY,
    }
}

fn clip_by_comparison(
    node: &mut Node<'_>,
    mut x: Value,
    bounds: [(&str, Option<Value>, f64); 2],
) -> Outputs {
    for ((name, bound, left_out), op) in bounds.into_iter().zip(["maximum", "minimum"]) {
        x = match bound {
            Some(bound) => node.apply(op, &[x, bound])?,
            None if left_out.is_infinite() => x,
            None => node.call("clip", &[x], &[(name, left_out.into())])?,
        };
    }
    Ok(vec![x])
}
