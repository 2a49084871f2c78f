//! Large windows that overlap, one axis after the other.
//!
//! ```ir
//! nn.max_pool2d(%x) { pool_size = [5, 5], padding = [2, 2, 2, 2] }
//!   =>
//! %rows = nn.max_pool2d(%x) { pool_size = [5, 1], padding = [2, 0, 2, 0] }
//! nn.max_pool2d(%rows) { pool_size = [1, 5], padding = [0, 2, 0, 2] }
//! ```
//!
//! Every window of an axis has as many taps, and counts as many, whatever the window of the other axis is. So the largest element is
//! the largest of the largest ones, and a mean the mean of means: 10 taps an element here instead of 25.

use tenon_plugin_api::rule::prelude::*;

use super::windows::Pool;

/// How many times as much there has to be to compute otherwise, as a fraction: what lies between is written and read.
const WORTH: [i64; 2] = [3, 2];

/// The call `op` of pooling as two calls, where that is less to compute.
pub(super) fn split(pool: &Pool<'_>, op: &'static str, at: &mut Site<'_>) -> Option<Expr> {
    let Pool { pool_size: [rows, columns], strides: [step, stride], dilation, padding, .. } = *pool;
    // For each element of the result there are `stride` columns of rows between.
    let apart = rows.checked_mul(stride)?.checked_add(columns)?.checked_mul(WORTH[0])?;
    if rows == 1 || columns == 1 || rows.checked_mul(columns)?.checked_mul(WORTH[1])? < apart {
        return None;
    }
    let [top, left, bottom, right] = padding;
    let along = |at: &mut Site<'_>, x, size: [i64; 2], steps: [i64; 2], padding: [i64; 4]| {
        let of_axis = |extents: [i64; 2]| size.map(|size| size > 1).into_iter().zip(extents);
        let dilation: Vec<i64> =
            of_axis(dilation).map(|(is_along, it)| if is_along { it } else { 1 }).collect();
        let mut attrs = at.call.attrs;
        for (name, value) in [
            ("pool_size", size.to_vec()),
            ("strides", steps.to_vec()),
            ("padding", padding.to_vec()),
            ("dilation", dilation),
        ] {
            attrs = at.with_cx(|cx| cx.with_attr(attrs, name, value.into()));
        }
        at.call_op(op, &[x], attrs)
    };
    let x = at.arg(0);
    let of_rows = along(at, x, [rows, 1], [step, 1], [top, 0, bottom, 0]);
    let of_columns = along(at, of_rows, [1, columns], [1, stride], [0, left, 0, right]);
    at.same_type(of_columns)
}
