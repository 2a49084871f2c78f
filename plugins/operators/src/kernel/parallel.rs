//! Work on several threads.

use rayon::prelude::*;

/// Elements that one thread works on at least.
pub(crate) const GRAIN: usize = 1 << 14;

/// Fills `out` in chunks of `size` elements, on several threads when there is more than one; `f` gets the
/// number of each chunk. The function is not a type parameter, so that this is compiled once for each
/// type of elements.
pub(crate) fn fill<T: Send>(out: &mut [T], size: usize, f: &(dyn Fn(usize, &mut [T]) + Sync)) {
    match out.len() {
        0 => {}
        count if count <= size => f(0, out),
        _ => out.par_chunks_mut(size.max(1)).enumerate().for_each(|(number, out)| f(number, out)),
    }
}
