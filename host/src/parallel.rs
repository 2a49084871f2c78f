//! The same work on many things.

use rayon::prelude::*;

/// What `work` makes of each item, in their order, by all threads of the pool that this is called in.
///
/// One item is not handed to another thread, which would take longer than many a pass.
pub(crate) fn map<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync + Send) -> Vec<R> {
    match items {
        [] | [_] => items.iter().map(work).collect(),
        _ => items.par_iter().map(work).collect(),
    }
}
