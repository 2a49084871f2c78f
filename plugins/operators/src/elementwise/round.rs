//! Each element rounded to the nearest integer.
//!
//! ```ir
//! %y = round(%x)    f32[n, 3]  =>  f32[n, 3]
//! ```

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;

use super::simplify::of_whole_number;
use super::types::float;
use crate::kernel::elements::map_floats;
use crate::precision::follows_precision;
use crate::program::elementwise::computes;

/// The nearest integer, the even one of two
#[op(name = "round", pattern = "elementwise")]
pub struct Round;

impl Operator for Round {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        float(cx)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        map_floats(cx, &f64::round_ties_even)
    }
}

computes!(Round, |x| x.call("round"));

/// Of a whole number it is the number.
#[rule(simplify)]
fn simplify(_: &Round, at: &mut Site<'_>) -> Option<Expr> {
    of_whole_number(at)
}

follows_precision!(Round);

/// Nothing: it is a step.
#[rule(gradient)]
fn gradient(_: &Round, at: &mut Adjoint<'_>) -> Grads {
    at.nothing()
}

crate::onnx::same!(Round is "Round" since 11);
