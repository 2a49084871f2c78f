//! What products cost.

use tenon_plugin_api::rule::prelude::*;

/// Two operations for each element of the result and each of `inner` elements that it is a sum over.
pub(super) fn of_product(at: &Site<'_>, inner: Dim) -> Option<Cost> {
    let (_, result) = at.tensor(at.call.expr)?;
    let flops = at.with_cx(|cx| {
        let all = result.iter().fold(cx.dim(2), |all, &dim| cx.dim_mul(all, dim));
        cx.dim_mul(all, inner)
    });
    Cost::of_call(at, at.call.expr, flops)
}
