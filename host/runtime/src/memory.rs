//! What the program asks of the C library's allocator, which the host and all plugins share.

/// Makes the allocator keep what is freed, for what is allocated next.
///
/// By itself it gives the tables of a large module back to the system at the end of each pass, and the next pass
/// waits for the same pages again. A program that compiles and ends loses nothing by keeping them. It is for `main`
/// to call, before it starts threads; another C library than GNU's is left as it is.
pub fn keep_freed_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    for (option, value) in [(libc::M_MMAP_MAX, 0), (libc::M_TRIM_THRESHOLD, -1)] {
        // SAFETY: both take any number. What they set is read under the allocator's locks or as a hint, and no other
        // thread runs yet.
        unsafe { libc::mallopt(option, value) };
    }
}
