//! Each element rounded up.
//!
//! ```ir
//! %y = ceil(%x)    f32[n, 3]  =>  f32[n, 3]
//! ```

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;

use super::simplify::of_whole_number;
use super::types::float;
use crate::kernel::elements::map_floats;
use crate::precision::follows_precision;
use crate::program::elementwise::computes;

/// The smallest integer that is not below
#[op(name = "ceil", pattern = "elementwise")]
pub struct Ceil;

impl Operator for Ceil {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        float(cx)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        map_floats(cx, &f64::ceil)
    }
}

computes!(Ceil, |x| x.call("ceil"));

/// Of a whole number it is the number.
#[rule(simplify)]
fn simplify(_: &Ceil, at: &mut Site<'_>) -> Option<Expr> {
    of_whole_number(at)
}

follows_precision!(Ceil);

/// Nothing: it is a step.
#[rule(gradient)]
fn gradient(_: &Ceil, at: &mut Adjoint<'_>) -> Grads {
    at.nothing()
}

crate::onnx::same!(Ceil is "Ceil" since 6);
