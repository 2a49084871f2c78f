//! The natural logarithm of each element.
//!
//! ```ir
//! %y = log(%x)    f32[n, 3]  =>  f32[n, 3]
//! ```

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;

use super::types::float;
use crate::kernel::elements::map_floats;
use crate::program::elementwise::computes;

/// Natural logarithm
#[op(name = "log", pattern = "elementwise")]
pub struct Log;

impl Operator for Log {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        float(cx)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        map_floats(cx, &f64::ln)
    }
}

computes!(Log, |x| x.call("log"));

/// `g / x`.
#[rule(gradient)]
fn gradient(_: &Log, at: &mut Adjoint<'_>) -> Grads {
    Grads::of([at.div(at.grad(), at.arg(0))])
}

crate::onnx::same!(Log is "Log" since 6);
