//! Pooling in another layout.

use tenon_plugin_api::op::Layout;
use tenon_plugin_api::rule::prelude::*;

/// The call in the layout that its argument has, where it is written for `layout`.
pub(super) fn follow(at: &mut Following<'_>, layout: &Layout) -> Option<Carried> {
    let x = at.carried()?;
    let letters = layout.text().as_bytes();
    if letters.len() != x.order.len() {
        return None;
    }
    let layout: String = x.order.iter().map(|&axis| letters[axis] as char).collect();
    at.with_attr(x, "layout", layout.into())
}
