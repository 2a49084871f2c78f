//! What runs without locks, in every order of its threads that the memory model allows.
//!
//! The files under test are taken as they are, and stand on loom's atomics, cells and threads: a model is run again for
//! each order, and what is read without being ordered behind what was written ends it.

#[allow(dead_code, reason = "the models use less of it than the host")]
#[path = "../../../host/runtime/src/parallel.rs"]
mod parallel;
mod pool;
#[path = "../../../plugin-api/src/abi/publication.rs"]
mod publication;
mod sync;
mod terms;

use loom::sync::atomic;

/// Chunks of one, two and four terms, so that few terms need several.
mod records {
    pub(crate) const TERM_CHUNKS: usize = 3;
    pub(crate) const TERM_CHUNK_LOG2: u32 = 0;
}

const MODELS: &[(&str, fn())] = &[
    ("a reader finds the terms that are published", terms::a_reader_finds_what_is_published),
    ("two threads add terms, and a third reads", terms::two_writers_and_a_reader),
    ("each piece of a loop is done once", pool::each_piece_is_done_once),
    ("a worker that sleeps is woken", pool::a_sleeping_worker_is_woken),
    ("two callers share a pool", pool::two_callers_share_it),
];

fn main() {
    for (what, model) in MODELS {
        println!("{what}");
        // Most mistakes show with two preemptions; without a bound the pool takes hours.
        let mut orders = loom::model::Builder::new();
        orders.preemption_bound = Some(3);
        orders.check(model);
    }
    println!("{} models hold in every order", MODELS.len());
}
