//! The opposite of each truth value.
//!
//! ```ir
//! %y = logical_not(%x)    bool[n, 3]  =>  bool[n, 3]
//! ```

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;

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

/// `not not x => x`.
#[rule(simplify)]
fn simplify(_: &LogicalNot, at: &mut Site<'_>) -> Option<Expr> {
    let inner = at.call_of(at.arg(0), "logical_not")?;
    at.same_type(inner.args[0])
}

/// Nothing: truth values have no derivative.
#[rule(gradient)]
fn gradient(_: &LogicalNot, at: &mut Adjoint<'_>) -> Grads {
    at.nothing()
}
