//! The negative of each element.
//!
//! ```ir
//! %y = negative(%x)    i32[n, 3]  =>  i32[n, 3]
//! ```

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;
use tenon_plugin_api::with_number;

use super::types::number;
use crate::kernel::elements::map;
use crate::onnx::fold::{self, Folded};
use crate::precision::follows_precision;
use crate::program::elementwise::computes;

/// -x
#[op(name = "negative", pattern = "elementwise")]
pub struct Negative;

impl Operator for Negative {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        number(cx)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        with_number!(cx.arg(0)?.dtype(), T => map(cx, |x: T| x.neg()))
    }
}

computes!(Negative, |x| match x.dtype() {
    dtype if dtype.is_float() => x * -1,
    dtype => x.program().int(dtype, 0) - x,
});

/// `--x => x`.
#[rule(simplify)]
fn simplify(_: &Negative, at: &mut Site<'_>) -> Option<Expr> {
    let inner = at.call_of(at.arg(0), "negative")?;
    at.same_type(inner.args[0])
}

follows_precision!(Negative);

/// `-g`.
#[rule(gradient)]
fn gradient(_: &Negative, at: &mut Adjoint<'_>) -> Grads {
    Grads::of([at.neg(at.grad())])
}

/// `Neg` of dimensions.
#[rule(import.onnx, key = "Neg", since = 6, benefit = 2)]
fn import_dims(node: &mut Node<'_>) -> Folded {
    fold::fold(node, |node, inputs| {
        let Known { dtype, shape, elements } = &inputs[0];
        if ![DType::I64, DType::I32].contains(dtype) {
            return Ok(None);
        }
        let cx = node.cx();
        let elements = elements.iter().map(|&dim| cx.dim_mul(dim, cx.dim(-1))).collect();
        let known = Known { dtype: *dtype, shape: shape.clone(), elements };
        Ok(Some(known).filter(|known| fold::fits(node, known)))
    })
}

crate::onnx::same!(Negative is "Neg" since 6);
