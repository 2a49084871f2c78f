//! The other bits of each integer.
//!
//! ```ir
//! %y = bitwise_not(%x)    i32[n, 3]  =>  i32[n, 3]
//! ```

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;
use tenon_plugin_api::with_bits;

use super::integers;
use crate::kernel::elements::map;
use crate::program::elementwise::computes;

/// The bits that each element has not
#[op(name = "bitwise_not", pattern = "elementwise")]
pub struct BitwiseNot;

impl Operator for BitwiseNot {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        integers(cx)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        with_bits!(cx.arg(0)?.dtype(), T => map(cx, |x: T| !x))
    }
}

computes!(BitwiseNot, |x| x.call("bitnot"));

/// `not not x => x`.
#[rule(simplify)]
fn simplify(_: &BitwiseNot, at: &mut Site<'_>) -> Option<Expr> {
    let inner = at.call_of(at.arg(0), "bitwise_not")?;
    at.same_type(inner.args[0])
}

/// Nothing: it is a step.
#[rule(gradient)]
fn gradient(_: &BitwiseNot, at: &mut Adjoint<'_>) -> Grads {
    at.nothing()
}

crate::onnx::same!(BitwiseNot is "BitwiseNot" since 18);
