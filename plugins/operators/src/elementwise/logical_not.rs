//! The opposite of each truth value.
//!
//! ```ir
//! %y = logical_not(%x)    bool[n, 3]  =>  bool[n, 3]
//! ```

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;

use super::types::truth;
use crate::kernel::elements::map;
use crate::onnx::fold::{self, Folded};
use crate::program::elementwise::computes;
use tenon_plugin_api::ir::BinaryOp;

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

computes!(LogicalNot, |x| x.binary(BinaryOp::Eq, 0));

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

crate::onnx::same!(LogicalNot is "Not" since 1);

/// `Not` of dimensions.
#[rule(import.onnx, key = "Not", since = 1, benefit = 2)]
fn import_dims(node: &mut Node<'_>) -> Folded {
    fold::fold(node, |node, inputs| {
        let [x] = inputs else { return Ok(None) };
        let flip = |&dim: &Dim| Some(node.cx().dim(i64::from(!fold::truth(node, dim)?)));
        let elements = x.elements.iter().map(flip).collect::<Option<_>>();
        let elements = elements.filter(|_| x.dtype.is_bool());
        Ok(elements.map(|elements| Known { elements, ..x.clone() }))
    })
}
