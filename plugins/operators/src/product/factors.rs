//! The element types of the factors of a product, and its gradients.

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;

/// Checks that both factors have one element type, or data of f32 a weight in narrower floats, which are f32 as well.
pub(crate) fn check_dtypes(cx: &InferCx<'_>) -> Result<()> {
    let [data, weight] = [cx.tensor(0)?.dtype, cx.tensor(1)?.dtype];
    match (data, weight) {
        (DType::F32, DType::F16 | DType::BF16) => Ok(()),
        _ => cx.check_same_dtype(1),
    }
}

/// The factors in the element type of the data.
pub(crate) fn in_one_dtype(at: &mut Adjoint<'_>) -> [Expr; 2] {
    let (data, weight) = (at.arg(0), at.arg(1));
    match at.dtype(data) {
        Some(dtype) => [data, at.in_dtype(weight, dtype)],
        None => [data, weight],
    }
}

/// The adjoint of a product in the element type of its data: sums may be wider.
pub(crate) fn narrowed(at: &mut Adjoint<'_>) -> Expr {
    match at.dtype(at.arg(0)) {
        Some(dtype) => at.in_dtype(at.grad(), dtype),
        None => at.grad(),
    }
}

/// The adjoint of the weight in its own element type.
pub(crate) fn of_weight(at: &mut Adjoint<'_>, grad: Expr) -> Expr {
    match at.dtype(at.arg(1)) {
        Some(dtype) => at.in_dtype(grad, dtype),
        None => grad,
    }
}
