//! The absolute value of each element.
//!
//! ```ir
//! %y = abs(%x)    i32[n, 3]  =>  i32[n, 3]
//! ```

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;
use tenon_plugin_api::with_number;

use super::types::number;
use crate::kernel::elements::map;
use crate::precision::follows_precision;
use crate::program::elementwise::computes;

/// Absolute value
#[op(name = "abs", pattern = "elementwise")]
pub struct Abs;

impl Operator for Abs {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        number(cx)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        with_number!(cx.arg(0)?.dtype(), T => map(cx, <T as Number>::abs))
    }
}

computes!(Abs, |x| match x.dtype() {
    dtype if dtype.is_float() || dtype.is_signed() => x.call("abs"),
    _ => x,
});

/// `||x|| => |x|`; `|-x| => |x|`, but of unsigned integers, which have no sign to lose.
#[rule(simplify)]
fn simplify(_: &Abs, at: &mut Site<'_>) -> Option<Expr> {
    let x = at.arg(0);
    if at.call_of(x, "abs").is_some() {
        return Some(x);
    }
    let (dtype, _) = at.tensor(x)?;
    if !dtype.is_float() && !dtype.is_signed() {
        return None;
    }
    let negated = at.call_of(x, "negative")?;
    Some(at.apply("abs", &negated.args))
}

follows_precision!(Abs);

/// `g` with the sign of `x`; 0 where that is 0.
#[rule(gradient)]
fn gradient(_: &Abs, at: &mut Adjoint<'_>) -> Grads {
    let (x, g) = (at.arg(0), at.grad());
    let zero = at.number_like(x, 0.0);
    let up = at.masked("greater", x, zero, g);
    let down = at.masked("less", x, zero, g);
    Grads::of([at.sub(up, down)])
}

crate::onnx::same!(Abs is "Abs" since 6);
