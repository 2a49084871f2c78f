//! Schedules of tensor programs: how they run, apart from what they compute.
//!
//! A [`Schedule`] is a program and what was done to it. Each *primitive* changes how it runs and checks that it computes the
//! same: one that would not, or that lowering could not follow, is refused with a reason and leaves the program as it was. What
//! was applied is a [`Trace`], which prints, parses as a [`Script`] and replays.
//!
//! ```no_run
//! # use tenon_plugin_api::pass::{PassError, PrimFunc};
//! use tenon_schedule::{Schedule, Tail};
//!
//! fn rows_in_parallel(program: &PrimFunc) -> Result<PrimFunc, PassError> {
//!     let mut schedule = Schedule::of(program)?;
//!     let done = (|| {
//!         let block = schedule.anchor()?;
//!         let loops = schedule.loops(block)?;
//!         let rows = schedule.split(loops[0], &[None, Some(16)], Tail::Guard)?;
//!         schedule.parallel(rows[0])
//!     })();
//!     match done {
//!         Ok(()) => schedule.finish(),
//!         Err(refusal) => Err(schedule.explain(&refusal)),
//!     }
//! }
//! ```
//!
//! `docs/schedules.md` lists the primitives.

#![deny(missing_docs)]

mod access;
mod align;
mod bind_threads;
mod compact;
mod conditions;
mod exprs;
mod index;
mod machine;
mod primitives;
mod query;
mod random;
mod refusal;
mod reindex;
mod rule;
mod schedule;
mod scope;
mod steps;
mod trace;
mod tree;
mod write;

pub use bind_threads::bind_threads;
pub use compact::compact_buffers;
pub use machine::{Machine, Total};
pub use primitives::{SETTLED, all as primitives};
pub use query::{Stride, Work};
pub use refusal::{Refusal, Result};
pub use rule::{Answered, Asked, OfProgram, Task, ask};
pub use schedule::{Block, Loop, Schedule, Snapshot};
pub use steps::{Axis, Holes, Memory, Tail};
pub use trace::{Handle, Number, Place, Primitive, Script, Trace, TraceError};
