//! The opposite of each truth value.
//!
//! ```ir
//! %y = logical_not(%x)    bool[n, 3]  =>  bool[n, 3]
//! ```

use tenon_plugin_api::op::prelude::*;

use super::types::truth;
use crate::kernel::elements::map;

/// Whether each element is false
#[op(name = "logical_not", pattern = "elementwise")]
pub struct LogicalNot;

impl Operator for LogicalNot {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        truth(cx)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        map(cx, |x: u8| (x == 0) as u8)
    }
}
