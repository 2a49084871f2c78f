//! How a term comes to be seen by threads that take no lock.
//!
//! ```text
//! the writer, under a lock                 a reader
//!   record          written                  length          loaded (Acquire)
//!   chunk's address stored                   chunk's address loaded
//!   length          stored (Release)         record          read
//! ```
//!
//! So whoever finds a number below the length finds the chunk, the record and all that the record leads to.
//! `tests/interleavings` runs this file on atomics that try every order which the memory model allows.

use std::ffi::c_void;

use super::atomic::{AtomicPtr, AtomicU32, Ordering};
use super::records::{TERM_CHUNK_LOG2, TERM_CHUNKS};

/// Publishes one more term and returns its number. `write` is given the number of the term's chunk, puts the record
/// into the chunk's next place, and returns where the chunk begins.
///
/// One thread at a time may be in here for a table.
pub fn append(
    len: &AtomicU32,
    chunks: &[AtomicPtr<c_void>; TERM_CHUNKS],
    write: impl FnOnce(usize) -> *mut c_void,
) -> u32 {
    // Only who is in here changes it.
    let term = len.load(Ordering::Relaxed);
    let (chunk, offset) = term_slot(term);
    let address = write(chunk);
    if offset == 0 {
        chunks[chunk].store(address, Ordering::Release);
    }
    len.store(term + 1, Ordering::Release);
    term
}

/// Where the chunk of a term begins, and the term's place in it; `None` when no such term is published.
#[inline]
pub fn find(
    len: &AtomicU32,
    chunks: &[AtomicPtr<c_void>; TERM_CHUNKS],
    term: u32,
) -> Option<(*mut c_void, usize)> {
    if term >= len.load(Ordering::Acquire) {
        return None;
    }
    let (chunk, offset) = term_slot(term);
    Some((chunks[chunk].load(Ordering::Acquire), offset))
}

/// Chunk and place of a term.
#[inline]
fn term_slot(term: u32) -> (usize, usize) {
    let biased = term as u64 + (1 << TERM_CHUNK_LOG2);
    let chunk = (63 - biased.leading_zeros()) as usize - TERM_CHUNK_LOG2 as usize;
    debug_assert!(chunk < TERM_CHUNKS);
    (chunk, (biased - (1 << (TERM_CHUNK_LOG2 as usize + chunk))) as usize)
}
