//! What simplifications of rounding share.

use tenon_plugin_api::rule::prelude::*;

/// `floor(round(x)) => round(x)` and its kin.
pub(super) fn of_whole_number(at: &mut Site<'_>) -> Option<Expr> {
    let x = at.arg(0);
    let is_whole = ["floor", "ceil", "round"].iter().any(|op| at.call_of(x, op).is_some());
    is_whole.then_some(x)
}
