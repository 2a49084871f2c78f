//! The threads that generated code runs its parallel loops on.
//!
//! Generated code knows this much, as C:
//!
//! ```c
//! typedef int (*tenon_task)(void *data, int64_t begin, int64_t end);
//! struct tenon_parallel {
//!   void *pool;
//!   int32_t threads;
//!   int (*parallel_for)(void *pool, tenon_task task, void *data, int64_t begin, int64_t end);
//! };
//! ```
//!
//! `parallel_for` calls `task` on pieces that together are `begin..end`, each once, maybe at the
//! same time, and returns when all are done: 0, or what the first failing piece returned. A null
//! `tenon_parallel *` means that there are no threads, and the loop is run where it stands.
//!
//! A range is cut into one piece a thread, and the caller does the first. A worker that has
//! nothing to do looks for work for a few microseconds before it sleeps, because the next loop of
//! a model usually follows at once. Each worker has a slot of its own, so that a dispatch writes
//! one cache line a worker and no line is fought over.
//!
//! A `parallel_for` inside of a task, or while another thread uses the pool, runs serially.

use std::{
    ffi::c_void,
    io,
    num::NonZeroUsize,
    sync::{Arc, OnceLock},
};

use super::sync::{
    AtomicBool, AtomicU32, Ordering, Patience, UnsafeCell,
    thread::{self, JoinHandle, Thread},
};

/// A piece of a loop: `data`, first index, index behind the last; 0 for success.
pub type RawTask = unsafe extern "C" fn(data: *mut c_void, begin: i64, end: i64) -> i32;

/// `parallel_for` of `struct tenon_parallel`.
pub type RawParallelFor = unsafe extern "C" fn(
    pool: *mut c_void,
    task: RawTask,
    data: *mut c_void,
    begin: i64,
    end: i64,
) -> i32;

/// `struct tenon_parallel`: what generated code is given to run loops in parallel.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct RawParallel {
    pub pool: *mut c_void,
    pub threads: i32,
    pub parallel_for: RawParallelFor,
}

#[cfg(target_pointer_width = "64")]
const _: () = {
    assert!(size_of::<RawParallel>() == 24);
    assert!(std::mem::offset_of!(RawParallel, pool) == 0);
    assert!(std::mem::offset_of!(RawParallel, threads) == 8);
    assert!(std::mem::offset_of!(RawParallel, parallel_for) == 16);
};

/// Persistent threads for parallel loops. Dropping it ends them.
#[derive(Debug)]
pub struct ThreadPool {
    // Boxed, because generated code holds its address.
    raw: Box<RawParallel>,
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
}

// SAFETY: the pointer in `raw` is to `shared`, which is `Sync` and outlives `raw`.
unsafe impl Send for ThreadPool {}
// SAFETY: as above; nothing is changed through `&ThreadPool` but atomics and guarded slots.
unsafe impl Sync for ThreadPool {}

/// Threads of a pool at most: each has pages of its own, and a process that has no more of them is ended by its system.
pub const MOST_THREADS: usize = 4096;

impl ThreadPool {
    /// A pool of `threads` threads, the caller of each loop counted. More than [`MOST_THREADS`] are an error of the kind
    /// `InvalidInput`.
    pub fn new(threads: NonZeroUsize) -> io::Result<ThreadPool> {
        if threads.get() > MOST_THREADS {
            let why = format!("{threads} threads are asked for; a pool has at most {MOST_THREADS}");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let shared = Arc::new(Shared {
            busy: AtomicBool::new(false),
            slots: (1..threads.get()).map(|_| Slot::default()).collect(),
        });
        let raw = Box::new(RawParallel {
            pool: Arc::as_ptr(&shared).cast_mut().cast(),
            threads: i32::try_from(threads.get()).unwrap_or(i32::MAX),
            parallel_for,
        });
        // Made before the threads, so that those are ended when one of them cannot be had.
        let mut pool = ThreadPool { raw, shared, workers: Vec::with_capacity(threads.get() - 1) };
        for index in 0..threads.get() - 1 {
            let shared = Arc::clone(&pool.shared);
            let builder = thread::Builder::new().name(format!("tenon-{}", index + 1));
            pool.workers.push(builder.spawn(move || work(&shared.slots[index]))?);
        }
        Ok(pool)
    }

    /// As many threads as the process may use at once.
    pub fn with_all_threads() -> io::Result<ThreadPool> {
        ThreadPool::new(std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN))
    }

    /// How many threads take part in a loop.
    pub fn threads(&self) -> usize {
        self.shared.slots.len() + 1
    }

    /// For generated code; valid as long as the pool.
    pub fn raw(&self) -> &RawParallel {
        &self.raw
    }

    /// Runs `task` on pieces of `begin..end`, as generated code would.
    ///
    /// # Safety
    /// `task` may be called with `data` on any piece of the range, from several threads at once.
    pub unsafe fn parallel_for(
        &self,
        task: RawTask,
        data: *mut c_void,
        begin: i64,
        end: i64,
    ) -> i32 {
        // SAFETY: passed on to the caller.
        unsafe { self.shared.parallel_for(task, data, begin, end) }
    }
}

impl Drop for ThreadPool {
    fn drop(&mut self) {
        for (slot, worker) in self.shared.slots.iter().zip(&self.workers) {
            // A swap comes behind whatever the worker wrote last, for everybody.
            slot.state.swap(EXIT, Ordering::AcqRel);
            worker.thread().unpark();
        }
        for worker in self.workers.drain(..) {
            // A worker cannot panic, and its end is all that matters here.
            let _ = worker.join();
        }
    }
}

/// What the pool and its workers share.
#[derive(Debug)]
struct Shared {
    /// Held by the one loop that uses the slots.
    busy: AtomicBool,
    /// One a worker.
    slots: Box<[Slot]>,
}

/// Nothing to do; the worker looks here.
const IDLE: u32 = 0;
/// Nothing to do; the worker sleeps and must be unparked.
const ASLEEP: u32 = 1;
/// There is a piece to do.
const READY: u32 = 2;
/// The pool is being dropped.
const EXIT: u32 = 3;

/// The place where a worker gets its piece. Alone on its cache lines (two, because processors
/// fetch them in pairs).
#[derive(Debug, Default)]
#[repr(align(128))]
struct Slot {
    /// Who may touch `piece`: the worker while it is `READY`, else the holder of `busy`.
    state: AtomicU32,
    piece: UnsafeCell<Option<Piece>>,
    /// The worker, to be woken up.
    thread: OnceLock<Thread>,
}

// SAFETY: `piece` is touched by one thread at a time; `state` says by which, and its changes
// release what was written and acquire what is read.
unsafe impl Sync for Slot {}
// SAFETY: the pointers in a piece are for the task alone, whose caller allowed any thread.
unsafe impl Send for Slot {}

#[derive(Debug, Clone, Copy)]
struct Piece {
    task: RawTask,
    data: *mut c_void,
    begin: i64,
    end: i64,
    status: i32,
}

impl Shared {
    /// # Safety
    /// As for [`ThreadPool::parallel_for`].
    unsafe fn parallel_for(&self, task: RawTask, data: *mut c_void, begin: i64, end: i64) -> i32 {
        if begin >= end {
            return 0;
        }
        let length = end.abs_diff(begin);
        let pieces = length.min(self.slots.len() as u64 + 1);
        if pieces == 1 || self.busy.swap(true, Ordering::Acquire) {
            // SAFETY: passed on to the caller.
            return unsafe { task(data, begin, end) };
        }
        // Piece `i` ends here. In 128 bits, because the range may be all of `i64`.
        let cut = |i: u64| {
            begin.wrapping_add((u128::from(length) * u128::from(i) / u128::from(pieces)) as i64)
        };
        let helpers = &self.slots[..(pieces - 1) as usize];
        for (slot, i) in helpers.iter().zip(1..) {
            let piece = Piece { task, data, begin: cut(i), end: cut(i + 1), status: 0 };
            // SAFETY: `busy` is ours and the state is not `READY`, so nobody else touches it.
            slot.piece.with_mut(|place| unsafe { *place = Some(piece) });
            slot.start();
        }
        // SAFETY: passed on to the caller.
        let mut status = unsafe { task(data, begin, cut(1)) };
        for slot in helpers {
            slot.wait();
            // SAFETY: `busy` is ours and the worker is done with it.
            let piece = slot.piece.with_mut(|place| unsafe { (*place).take() });
            if status == 0 {
                status = piece.map_or(0, |piece| piece.status);
            }
        }
        self.busy.store(false, Ordering::Release);
        status
    }
}

impl Slot {
    /// Hands the piece to the worker.
    fn start(&self) {
        if self.state.swap(READY, Ordering::AcqRel) == ASLEEP
            && let Some(thread) = self.thread.get()
        {
            thread.unpark();
        }
    }

    /// Returns when the worker has done its piece.
    fn wait(&self) {
        let mut patience = Patience::default();
        while self.state.load(Ordering::Acquire) == READY {
            if patience.is_over() {
                // The worker may be waiting for this processor.
                thread::yield_now();
            }
        }
    }

    /// The worker's side: does its piece.
    fn run(&self) {
        self.piece.with_mut(|place| {
            // SAFETY: the state is `READY`, so the piece is the worker's.
            let Some(piece) = (unsafe { &mut *place }) else { return };
            // SAFETY: whoever called `parallel_for` allowed the task on any thread and any piece.
            piece.status = unsafe { (piece.task)(piece.data, piece.begin, piece.end) };
        });
    }
}

/// The life of a worker.
fn work(slot: &Slot) {
    // Set before the first sleep, hence before anybody looks.
    let _ = slot.thread.set(thread::current());
    loop {
        match await_change(slot) {
            READY => {
                slot.run();
                // `EXIT` cannot come in between: the pool is borrowed while a loop runs.
                slot.state.store(IDLE, Ordering::Release);
            }
            EXIT => return,
            _ => {}
        }
    }
}

/// Spins, then sleeps, until the state is neither `IDLE` nor `ASLEEP`; returns it.
fn await_change(slot: &Slot) -> u32 {
    let mut patience = Patience::default();
    loop {
        let state = slot.state.load(Ordering::Acquire);
        if state != IDLE && state != ASLEEP {
            return state;
        }
        if patience.is_over() {
            let order = (Ordering::AcqRel, Ordering::Acquire);
            // Fails when work has come in the meantime: then there is nothing to sleep for.
            if slot.state.compare_exchange(IDLE, ASLEEP, order.0, order.1).is_ok()
                || state == ASLEEP
            {
                thread::park();
            }
        }
    }
}

/// What `tenon_parallel.parallel_for` points to.
///
/// # Safety
/// `pool` must be the one beside this function in a [`RawParallel`] whose [`ThreadPool`] is alive;
/// for the rest see [`ThreadPool::parallel_for`].
unsafe extern "C" fn parallel_for(
    pool: *mut c_void,
    task: RawTask,
    data: *mut c_void,
    begin: i64,
    end: i64,
) -> i32 {
    // SAFETY: by contract a `Shared` that lives through the call, and shared references suffice.
    let shared = unsafe { &*pool.cast_const().cast::<Shared>() };
    // SAFETY: passed on to the caller.
    unsafe { shared.parallel_for(task, data, begin, end) }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicI64;

    use super::super::sync::SPIN;
    use super::*;

    fn pool(threads: usize) -> ThreadPool {
        ThreadPool::new(NonZeroUsize::new(threads).unwrap()).unwrap()
    }

    /// Counts how often each index is visited. `data` is a slice of counters.
    unsafe extern "C" fn count(data: *mut c_void, begin: i64, end: i64) -> i32 {
        for index in begin..end {
            // SAFETY: the tests give ranges within the counters.
            let counter = unsafe { &*data.cast::<AtomicI64>().add(index as usize) };
            counter.fetch_add(1, Ordering::Relaxed);
        }
        0
    }

    unsafe extern "C" fn fail_from_five(_: *mut c_void, _: i64, end: i64) -> i32 {
        if end > 5 { 7 } else { 0 }
    }

    /// Runs a loop inside of a loop, on the same pool.
    unsafe extern "C" fn nested(data: *mut c_void, begin: i64, end: i64) -> i32 {
        // SAFETY: the test gives this type.
        let (pool, counters) = unsafe { &*data.cast::<(ThreadPool, Vec<AtomicI64>)>() };
        for _ in begin..end {
            let data = counters.as_ptr().cast_mut().cast();
            // SAFETY: `count` is made for these counters.
            unsafe { pool.parallel_for(count, data, 0, counters.len() as i64) };
        }
        0
    }

    fn counters(length: usize) -> Vec<AtomicI64> {
        (0..length).map(|_| AtomicI64::new(0)).collect()
    }

    fn visits(counters: &[AtomicI64]) -> Vec<i64> {
        counters.iter().map(|counter| counter.load(Ordering::Relaxed)).collect()
    }

    #[test]
    fn every_index_is_visited_once() {
        for threads in [1, 2, 3, 8] {
            let pool = pool(threads);
            assert_eq!(pool.threads(), threads);
            for length in [0, 1, 2, 3, 7, 100] {
                let counters = counters(length);
                let data = counters.as_ptr().cast_mut().cast();
                // SAFETY: `count` is made for these counters.
                let status = unsafe { pool.parallel_for(count, data, 0, length as i64) };
                assert_eq!(status, 0);
                assert_eq!(visits(&counters), vec![1; length], "{threads} threads");
            }
        }
    }

    #[test]
    fn generated_code_reaches_it_through_the_struct() {
        let pool = pool(2);
        let raw = *pool.raw();
        assert_eq!(raw.threads, 2);
        let counters = counters(10);
        let data = counters.as_ptr().cast_mut().cast();
        // SAFETY: the pool is alive, and `count` is made for these counters.
        let status = unsafe { (raw.parallel_for)(raw.pool, count, data, 2, 9) };
        assert_eq!((status, visits(&counters)), (0, vec![0, 0, 1, 1, 1, 1, 1, 1, 1, 0]));
    }

    #[test]
    fn a_failing_piece_fails_the_loop() {
        let pool = pool(3);
        // SAFETY: the task touches nothing.
        let run = |end| unsafe { pool.parallel_for(fail_from_five, std::ptr::null_mut(), 0, end) };
        assert_eq!([run(5), run(6), run(30), run(4)], [0, 7, 7, 0]);
    }

    #[test]
    fn an_empty_or_reversed_range_does_nothing() {
        let pool = pool(2);
        // SAFETY: the task touches nothing.
        let run = |begin, end| unsafe {
            pool.parallel_for(fail_from_five, std::ptr::null_mut(), begin, end)
        };
        assert_eq!([run(9, 9), run(9, 8), run(i64::MAX, i64::MIN)], [0, 0, 0]);
        assert_eq!(run(i64::MIN, i64::MAX), 7);
    }

    #[test]
    fn a_loop_inside_of_a_loop_is_serial() {
        let data = (pool(2), counters(5));
        let raw = (&raw const data).cast_mut().cast();
        // SAFETY: `nested` is made for this pair.
        let status = unsafe { data.0.parallel_for(nested, raw, 0, 4) };
        assert_eq!((status, visits(&data.1)), (0, vec![4; 5]));
    }

    #[test]
    fn several_callers_and_sleeping_workers() {
        let pool = pool(2);
        let rounds = if cfg!(miri) { 5 } else { 2000 };
        let counters = counters(16);
        thread::scope(|scope| {
            for caller in 0..2 {
                let (pool, counters) = (&pool, &counters);
                scope.spawn(move || {
                    for round in 0..rounds {
                        let data = counters.as_ptr().cast_mut().cast();
                        // SAFETY: `count` is made for these counters.
                        unsafe { pool.parallel_for(count, data, 0, 16) };
                        if round % 100 == caller {
                            thread::sleep(SPIN * 3);
                        }
                    }
                });
            }
        });
        assert_eq!(visits(&counters), vec![2 * rounds as i64; 16]);
    }
}
