//! Whether both of two truth values are true.
//!
//! ```ir
//! %c = logical_and(%a, %b)    bool[n, 3], bool[3]  =>  bool[n, 3]
//! ```

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;

use super::simplify::equal_arguments;
use super::types::truths;
use crate::kernel::rows::{each, zip};
use crate::onnx::fold::{self, Folded};
use crate::program::elementwise::computes;

/// Whether both are true
#[op(name = "logical_and", args = 2, pattern = "broadcast")]
pub struct LogicalAnd;

impl Operator for LogicalAnd {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        truths(cx)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        zip(cx, |a: &[u8], b: &[u8], out: &mut [u8]| {
            each(a, b, out, |x, y| (x != 0 && y != 0) as u8)
        })
    }
}

computes!(LogicalAnd, |a, b| a.and(b));

/// `x and x => x`.
#[rule(simplify)]
fn simplify(_: &LogicalAnd, at: &mut Site<'_>) -> Option<Expr> {
    equal_arguments(at)
}

/// Nothing: truth values have no derivative.
#[rule(gradient)]
fn gradient(_: &LogicalAnd, at: &mut Adjoint<'_>) -> Grads {
    at.nothing()
}

crate::onnx::same!(LogicalAnd is "And" since 7);

/// `And` of dimensions.
#[rule(import.onnx, key = "And", since = 7, benefit = 2)]
fn import_dims(node: &mut Node<'_>) -> Folded {
    fold::comparison(node, |node, a, b| Some(fold::truth(node, a)? && fold::truth(node, b)?))
}
