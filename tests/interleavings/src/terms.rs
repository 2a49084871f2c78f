//! Terms that one thread publishes while another reads.

use std::array::from_fn;
use std::ffi::c_void;
use std::ptr::null_mut;

use loom::cell::UnsafeCell;
use loom::sync::{Arc, Mutex};
use loom::thread;

use crate::atomic::{AtomicPtr, AtomicU32};
use crate::publication::{append, find};
use crate::records::TERM_CHUNKS;

/// A table as `host/ir/src/context.rs` keeps it; the record of term `n` is `n + 1`.
struct Table {
    len: AtomicU32,
    chunks: [AtomicPtr<c_void>; TERM_CHUNKS],
    store: Mutex<Vec<Box<[UnsafeCell<u32>]>>>,
}

impl Table {
    fn new() -> Arc<Table> {
        Arc::new(Table {
            len: AtomicU32::new(0),
            chunks: from_fn(|_| AtomicPtr::new(null_mut())),
            store: Mutex::new(Vec::new()),
        })
    }

    fn append(&self) -> u32 {
        let mut store = self.store.lock().expect("no thread panics");
        append(&self.len, &self.chunks, |chunk| {
            if chunk == store.len() {
                store.push((0..1 << chunk).map(|_| UnsafeCell::new(0)).collect());
            }
            let is_free = |place: &&UnsafeCell<u32>| {
                // SAFETY: the lock is held, so nobody writes.
                place.with(|record| unsafe { *record == 0 })
            };
            let place = store[chunk].iter().position(|place| is_free(&place));
            let place = place.expect("a chunk has room for its terms");
            let term = (1 << chunk) - 1 + place as u32;
            // SAFETY: the lock is held, and nobody reads a term before it is published.
            store[chunk][place].with_mut(|record| unsafe { *record = term + 1 });
            store[chunk].as_mut_ptr().cast()
        })
    }

    /// Reads all terms that are published, and returns how many there are.
    fn read_all(&self) -> u32 {
        let mut term = 0;
        while let Some((chunk, place)) = find(&self.len, &self.chunks, term) {
            assert!(!chunk.is_null(), "term {term} is published without its chunk");
            // SAFETY: the chunk has so many places, and stays as long as the table.
            let record = unsafe { &*chunk.cast::<UnsafeCell<u32>>().add(place) };
            // SAFETY: what is published does not change, or loom says so.
            record.with(|record| assert_eq!(unsafe { *record }, term + 1));
            term += 1;
        }
        term
    }
}

/// Reads while the main thread writes. It is the main thread that writes: loom first lets it go on, and then looks which of
/// its stores a load of another thread could have come before.
fn read_in_a_thread(table: &Arc<Table>) -> thread::JoinHandle<()> {
    let table = Arc::clone(table);
    thread::spawn(move || {
        let found = table.read_all();
        assert!(table.read_all() >= found, "what was published is there");
    })
}

pub(crate) fn a_reader_finds_what_is_published() {
    let table = Table::new();
    let reader = read_in_a_thread(&table);
    assert_eq!([(); 4].map(|()| table.append()), [0, 1, 2, 3]);
    reader.join().expect("the reader ends");
    assert_eq!(table.read_all(), 4);
}

pub(crate) fn two_writers_and_a_reader() {
    let table = Table::new();
    let reader = read_in_a_thread(&table);
    let other = {
        let table = Arc::clone(&table);
        thread::spawn(move || table.append())
    };
    let term = table.append();
    // Whoever has a term's number finds the term.
    assert!(table.read_all() > term);
    let other = other.join().expect("the other writer ends");
    reader.join().expect("the reader ends");
    assert_eq!((term + other, table.read_all()), (1, 2));
}
