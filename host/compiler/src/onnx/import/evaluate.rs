//! Calls on a few constants, evaluated at once.
//!
//! A shape may be computed over floats, a size times a scale, or a bound be the negative of a number. Such
//! a value counts as a constant here, so that shapes and bounds that depend on it are known. What is
//! larger stays a call: folding weights is the business of a pass.

use std::sync::Arc;

use crate::eval::Tensor;
use crate::ir::{Attrs, Constant, Context, Cx, OpDef, Type};

/// More elements than this are left to passes.
const MOST: usize = 64;

/// The result of a call whose arguments are these constants, a single tensor of type `ty`, when both are
/// small. Where the evaluation fails, running the program would.
pub(super) fn evaluate(
    cx: &Cx,
    op: &OpDef,
    args: &[Arc<Constant>],
    attrs: Attrs,
    ty: Type,
) -> Option<Constant> {
    let evaluation = op.evaluation().filter(|_| op.is_pure())?;
    let terms = cx.terms();
    let (dtype, shape) = terms.static_tensor(ty)?;
    let shape: Vec<usize> =
        shape.iter().map(|&dim| usize::try_from(dim).ok()).collect::<Option<_>>()?;
    let count = shape.iter().try_fold(1usize, |count, &dim| count.checked_mul(dim))?;
    let tensors: Vec<Tensor> =
        args.iter().map(|arg| arg.to_tensor(terms)).collect::<Option<_>>()?;
    if count > MOST || tensors.iter().any(|tensor| tensor.len() > MOST) {
        return None;
    }
    let results = evaluation.evaluate(cx, &tensors, attrs, &[(dtype, shape)]).ok()?;
    match results.as_slice() {
        [result] => Some(Constant::of_tensor(result, cx)),
        _ => None,
    }
}
