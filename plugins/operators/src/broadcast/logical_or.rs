//! Whether one of two truth values is true.
//!
//! ```ir
//! %c = logical_or(%a, %b)    bool[n, 3], bool[3]  =>  bool[n, 3]
//! ```

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;

use super::simplify::equal_arguments;
use super::types::truths;
use crate::kernel::rows::{each, zip};
use crate::onnx::fold::{self, Folded};
use crate::program::elementwise::computes;
use tenon_plugin_api::ir::BinaryOp;

/// Whether one is true
#[op(name = "logical_or", args = 2, pattern = "broadcast")]
pub struct LogicalOr;

impl Operator for LogicalOr {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        truths(cx)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        zip(cx, |a: &[u8], b: &[u8], out: &mut [u8]| {
            each(a, b, out, |x, y| (x != 0 || y != 0) as u8)
        })
    }
}

computes!(LogicalOr, |a, b| a.binary(BinaryOp::Or, b));

/// `x or x => x`.
#[rule(simplify)]
fn simplify(_: &LogicalOr, at: &mut Site<'_>) -> Option<Expr> {
    equal_arguments(at)
}

/// Nothing: truth values have no derivative.
#[rule(gradient)]
fn gradient(_: &LogicalOr, at: &mut Adjoint<'_>) -> Grads {
    at.nothing()
}

crate::onnx::same!(LogicalOr is "Or" since 7);

/// `Or` of dimensions.
#[rule(import.onnx, key = "Or", since = 7, benefit = 2)]
fn import_dims(node: &mut Node<'_>) -> Folded {
    fold::comparison(node, |node, a, b| Some(fold::truth(node, a)? || fold::truth(node, b)?))
}
