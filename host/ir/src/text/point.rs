//! Where a node stands: the place that an error about it shows.

use std::ops::Range;
use std::sync::Arc;

use super::{WeightsPolicy, print_function_marking};
use crate::diagnostics::Source;
use crate::{Expr, Function};

/// Elements that a constant may have to be shown.
const SHOWN_ELEMENTS: u64 = 8;

/// The lines of a function's text around a node, and the node's place in them. The lines are called
/// `source`, such as `@main after acme.Fuse`. Nothing when the function has no such node.
pub fn point_at(
    source: impl Into<String>,
    name: &str,
    function: &Function,
    node: Expr,
) -> Option<(Arc<Source>, Range<usize>)> {
    if node.index() >= function.view().len() {
        return None;
    }
    let mut weights = WeightsPolicy::elided(SHOWN_ELEMENTS);
    let (text, places) = print_function_marking(name, function, &mut weights, &[node]);
    let place = places.into_iter().next()??;
    Some(Source::excerpt(source, &text, &place))
}
