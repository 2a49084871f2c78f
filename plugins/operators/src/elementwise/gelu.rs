//! The Gaussian error linear unit (Hendrycks and Gimpel 2016).
//!
//! ```ir
//! %y = nn.gelu(%x)    f32[n, 3]  =>  f32[n, 3]
//! ```
//!
//! By the complement, so that nothing cancels where x is far below zero.

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;

use super::types::float;
use crate::kernel::elements::map_floats;
use crate::precision::follows_precision;

/// x * (1 + erf(x / sqrt(2))) / 2
#[op(name = "nn.gelu", pattern = "elementwise")]
pub struct Gelu;

impl Operator for Gelu {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        float(cx)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        map_floats(cx, &|x| 0.5 * x * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2))
    }
}

follows_precision!(Gelu);
