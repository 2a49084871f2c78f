//! Memory of large tensors.

/// Bytes from which memory is worth pages of 2 MiB, of which one at least lies within.
const LARGE: usize = 4 << 20;

/// So many zeros, to be written over: the elements of a tensor that is being made.
///
/// Memory of some megabytes comes in large pages where the system has any: a processor that writes, and later reads, a
/// hundred megabytes of weights otherwise waits for 25,000 pages one by one.
pub fn zeros<T: Copy + Default>(count: usize) -> Vec<T> {
    let mut elements = vec![T::default(); count];
    prefer_large_pages(&mut elements);
    elements
}

/// Asks the system for large pages behind memory that nobody has touched yet. It is a hint: the memory keeps what it
/// holds, and a system that has no such pages, or grants none, leaves it as it is.
pub fn prefer_large_pages<T>(memory: &mut [T]) {
    #[cfg(target_os = "linux")]
    if size_of_val(memory) >= LARGE {
        use rustix::mm::{Advice, madvise};
        let page = rustix::param::page_size();
        let range = memory.as_mut_ptr_range();
        let skipped = range.start.cast::<u8>().align_offset(page);
        let length = (size_of_val(memory) - skipped) / page * page;
        // SAFETY: the pages lie within the slice, which is borrowed alone. The advice changes neither what they hold nor
        // what may be done with them. It is refused where it cannot be followed, which is no fault of the caller's.
        let _ = unsafe {
            madvise(range.start.cast::<u8>().add(skipped).cast(), length, Advice::LinuxHugepage)
        };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = memory;
}
