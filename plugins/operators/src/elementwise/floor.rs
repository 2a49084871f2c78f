//! Each element rounded down.
//!
//! ```ir
//! %y = floor(%x)    f32[n, 3]  =>  f32[n, 3]
//! ```

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;

use super::simplify::of_whole_number;
use super::types::float;
use crate::kernel::elements::map_floats;
use crate::precision::follows_precision;
use crate::program::elementwise::computes;

/// The largest integer that is not above
#[op(name = "floor", pattern = "elementwise")]
pub struct Floor;

impl Operator for Floor {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        float(cx)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        map_floats(cx, &f64::floor)
    }
}

computes!(Floor, |x| x.call("floor"));

/// Of a whole number it is the number.
#[rule(simplify)]
fn simplify(_: &Floor, at: &mut Site<'_>) -> Option<Expr> {
    of_whole_number(at)
}

follows_precision!(Floor);

/// Nothing: it is a step.
#[rule(gradient)]
fn gradient(_: &Floor, at: &mut Adjoint<'_>) -> Grads {
    at.nothing()
}

crate::onnx::same!(Floor is "Floor" since 6);
