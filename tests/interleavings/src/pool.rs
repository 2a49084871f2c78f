//! Loops that a pool shares out.

use std::ffi::c_void;
use std::num::NonZeroUsize;

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

use crate::parallel::ThreadPool;

/// Counts visits of each index; two at once, or a count that is read too early, end the model.
struct Visits(Vec<UnsafeCell<u32>>);

impl Visits {
    fn new(length: usize) -> Visits {
        Visits((0..length).map(|_| UnsafeCell::new(0)).collect())
    }

    /// Has the pool visit each index; returns what the loop returns.
    fn visit(&self, pool: &ThreadPool) -> i32 {
        let data = self.0.as_ptr().cast_mut().cast();
        // SAFETY: `count` is made for these cells, and the range is theirs.
        unsafe { pool.parallel_for(count, data, 0, self.0.len() as i64) }
    }

    fn counts(&self) -> Vec<u32> {
        // SAFETY: the loop has ended, or loom says so.
        self.0.iter().map(|cell| cell.with(|count| unsafe { *count })).collect()
    }
}

unsafe extern "C" fn count(data: *mut c_void, begin: i64, end: i64) -> i32 {
    for index in begin..end {
        // SAFETY: the models give ranges within their cells.
        let cell = unsafe { &*data.cast::<UnsafeCell<u32>>().add(index as usize) };
        // SAFETY: an index is in one piece only, or loom says so.
        cell.with_mut(|count| unsafe { *count += 1 });
    }
    (begin > 0) as i32
}

fn pool() -> ThreadPool {
    ThreadPool::new(NonZeroUsize::new(2).expect("not zero")).expect("threads can be had")
}

pub(crate) fn each_piece_is_done_once() {
    let (pool, visits) = (pool(), Visits::new(2));
    assert_eq!(visits.visit(&pool), 1, "the status of the worker's piece");
    assert_eq!(visits.counts(), [1, 1]);
}

pub(crate) fn a_sleeping_worker_is_woken() {
    let (pool, visits) = (pool(), Visits::new(2));
    for round in 1..=2 {
        // The worker sleeps in some orders, and is about to in others.
        thread::yield_now();
        visits.visit(&pool);
        assert_eq!(visits.counts(), [round, round]);
    }
}

pub(crate) fn two_callers_share_it() {
    let pool = Arc::new(pool());
    let other = {
        let pool = Arc::clone(&pool);
        thread::spawn(move || {
            let visits = Visits::new(2);
            visits.visit(&pool);
            assert_eq!(visits.counts(), [1, 1]);
        })
    };
    let visits = Visits::new(2);
    visits.visit(&pool);
    assert_eq!(visits.counts(), [1, 1]);
    other.join().expect("the other caller ends");
}
