//! The quotient of two tensors, element by element.
//!
//! ```ir
//! %c = divide(%a, %b)    f32[n, 3], f32[3]  =>  f32[n, 3]
//! ```
//!
//! An integer is not divided by zero: that has no value.

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;
use tenon_plugin_api::with_number;

use super::simplify::neutral;
use super::types::numbers;
use crate::kernel::rows::{each, zip};
use crate::onnx::fold::{self, Folded};
use crate::precision::follows_precision;
use crate::program::elementwise::computes;
use tenon_plugin_api::ir::BinaryOp;
use tenon_plugin_api::program::Scalar;

/// a / b; integers are truncated towards zero
#[op(name = "divide", args = 2, pattern = "broadcast")]
pub struct Divide;

impl Operator for Divide {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        numbers(cx)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        with_number!(cx.arg(0)?.dtype(), T => {
            let divisor = cx.arg(1)?.elements::<T>();
            if !T::IS_FLOAT && divisor.contains(&T::default()) {
                return Err(OpError::Value("an integer is divided by zero".into()));
            }
            zip(cx, |a: &[T], b: &[T], out: &mut [T]| each(a, b, out, <T as Number>::div))
        })
    }
}

computes!(Divide, |a, b| divided(a, b));

/// Of integers by zero it is zero, and the least one by -1 wraps around, where an instruction would end the process.
fn divided<'p>(a: Scalar<'p>, b: Scalar<'p>) -> Scalar<'p> {
    let dtype = a.dtype();
    if dtype.is_float() {
        return a / b;
    }
    let program = a.program();
    let (zero, one) = (program.int(dtype, 0), program.int(dtype, 1));
    let is_zero = b.binary(BinaryOp::Eq, 0);
    if !dtype.is_signed() {
        return is_zero.select(zero, a.binary(BinaryOp::Div, is_zero.select(one, b)));
    }
    let is_negation = b.binary(BinaryOp::Eq, -1);
    let divisor = is_zero.binary(BinaryOp::Or, is_negation).select(one, b);
    let quotient = a.binary(BinaryOp::Div, divisor);
    is_zero.select(zero, is_negation.select(zero - a, quotient))
}

/// `x / 1 => x`; `x / c => x * (1 / c)` of floats, where `c` is a power of two whose inverse is no denormal.
#[rule(simplify)]
fn simplify(_: &Divide, at: &mut Site<'_>) -> Option<Expr> {
    neutral(at, false, |x| x == 1.0).or_else(|| by_power_of_two(at))
}

fn by_power_of_two(at: &mut Site<'_>) -> Option<Expr> {
    let [x, divisor] = at.args()?;
    let (dtype, dims) = at.tensor(divisor)?;
    let number = at.splat(divisor).filter(|_| dtype.is_float() && dims.is_empty())?;
    let mantissa = number.to_bits() & ((1 << 52) - 1);
    // The smallest normal f16 is 2^-14, so these are exact in each dtype.
    if mantissa != 0 || !(1.0 / 16384.0..=16384.0).contains(&number.abs()) {
        return None;
    }
    let inverse = at.number(dtype, 1.0 / number)?;
    let product = at.apply("multiply", &[x, inverse]);
    at.same_type(product)
}

/// `x / c => x * (1 / c)`; `x / sqrt(y) => x * rsqrt(y)`.
#[rule(approximate)]
fn approximate(_: &Divide, at: &mut Site<'_>) -> Option<Expr> {
    by_number(at).or_else(|| by_root(at))
}

fn by_number(at: &mut Site<'_>) -> Option<Expr> {
    let [x, by] = at.args()?;
    let divisor = at.splat(by).filter(|divisor| divisor.is_normal())?;
    let (dtype, dims) = at.tensor(by)?;
    let factor = at.number(dtype, 1.0 / divisor)?;
    let dims: Vec<Dim> = dims.iter().map(|_| at.with_cx(|cx| cx.dim(1))).collect();
    let factor = at.reshape(factor, &dims);
    let product = at.apply("multiply", &[x, factor]);
    at.same_type(product)
}

fn by_root(at: &mut Site<'_>) -> Option<Expr> {
    let [x, by] = at.args()?;
    let root = at.call_of(by, "sqrt")?;
    let inverse = at.apply("rsqrt", &root.args);
    Some(at.apply("multiply", &[x, inverse]))
}

follows_precision!(Divide);

/// `g / b`, `-g y / b`.
#[rule(gradient)]
fn gradient(_: &Divide, at: &mut Adjoint<'_>) -> Result<Grads, PassError> {
    let a = at.div(at.grad(), at.arg(1));
    let product = at.mul(a, at.value());
    let b = at.neg(product);
    at.summed([a, b])
}

crate::onnx::same!(Divide is "Div" since 7);

/// `Div` of dimensions.
#[rule(import.onnx, key = "Div", since = 7, benefit = 2)]
fn import_dims(node: &mut Node<'_>) -> Folded {
    fold::arithmetic(node, quotient)
}

/// Division towards zero, which is rounding down as long as nothing is negative.
fn quotient(node: &Node<'_>, a: Dim, b: Dim) -> Option<Dim> {
    let (cx, terms) = (node.cx(), node.terms());
    match (terms.dim_value(a), terms.dim_value(b)) {
        (_, Some(0)) => None,
        (Some(a), Some(b)) => a.checked_div(b).map(|quotient| cx.dim(quotient)),
        _ => {
            // By 0 it says nothing, so a divisor may be a symbol; what is computed of it is no less than 0 then.
            let is_right = terms.dim_lower_bound(a)? >= 0 && terms.dim_lower_bound(b)? >= 0;
            let is_natural =
                |dim: &Dim| terms.dim_lower_bound(*dim).is_some_and(|least| least >= 0);
            is_right.then(|| {
                let quotient = cx.dim_quotient(&[a], &[b]).filter(is_natural);
                quotient.unwrap_or_else(|| cx.dim_floor_div(a, cx.dim_max(b, cx.dim(1))))
            })
        }
    }
}
