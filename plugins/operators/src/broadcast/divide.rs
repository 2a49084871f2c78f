//! The quotient of two tensors, element by element.
//!
//! ```ir
//! %c = divide(%a, %b)    f32[n, 3], f32[3]  =>  f32[n, 3]
//! ```
//!
//! An integer is not divided by zero: that has no value.

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::with_number;

use super::types::numbers;
use crate::kernel::rows::{each, zip};

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
