//! The rectified linear unit.
//!
//! ```ir
//! %y = nn.relu(%x)    f32[n, 3]  =>  f32[n, 3]
//! ```
//!
//! What is not a number stays so.

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;
use tenon_plugin_api::with_number;

use super::types::number;
use crate::kernel::elements::map;
use crate::precision::follows_precision;
use crate::program::elementwise::computes;

/// The larger of each element and zero
#[op(name = "nn.relu", pattern = "elementwise")]
pub struct Relu;

impl Operator for Relu {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        number(cx)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        with_number!(cx.arg(0)?.dtype(), T => map(cx, |x: T| x.larger(T::default())))
    }
}

computes!(Relu, |x| x.max(0));

/// `relu(relu(x)) => relu(x)`, `relu(abs(x)) => abs(x)`.
///
/// The latter of unsigned integers alone: the absolute value of the least signed integer is itself.
#[rule(simplify)]
fn simplify(_: &Relu, at: &mut Site<'_>) -> Option<Expr> {
    let x = at.arg(0);
    let (dtype, _) = at.tensor(x)?;
    let is_above_zero = at.call_of(x, "nn.relu").is_some()
        || (!dtype.is_signed() && at.call_of(x, "abs").is_some());
    is_above_zero.then_some(x)
}

follows_precision!(Relu);

/// `g` where `x > 0`.
#[rule(gradient)]
fn gradient(_: &Relu, at: &mut Adjoint<'_>) -> Grads {
    let zero = at.number_like(at.arg(0), 0.0);
    Grads::of([at.masked("greater", at.arg(0), zero, at.grad())])
}

crate::onnx::same!(Relu is "Relu" since 6);
