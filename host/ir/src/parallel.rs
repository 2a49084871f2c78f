//! The same work on many things, by all threads of the pool that it is called in. A thread that waits for others does
//! other work meanwhile, so work within work does not run out of threads.

use rayon::prelude::*;

/// What `work` makes of each item, in their order.
///
/// One item is not handed to another thread, which would take longer than many a pass.
pub fn map<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync + Send) -> Vec<R> {
    match items {
        [] | [_] => items.iter().map(work).collect(),
        _ => items.par_iter().map(work).collect(),
    }
}

/// Does `work` for each index below `count`.
pub fn for_each(count: u64, work: impl Fn(u64) + Sync + Send) {
    match count {
        0 | 1 => (0..count).for_each(work),
        _ => (0..count).into_par_iter().for_each(work),
    }
}
