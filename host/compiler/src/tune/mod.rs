//! Tuning: which schedules of a model's programs are fastest on this machine, by measuring.
//!
//! ```text
//! Tuning ── tasks (task.rs): the different programs of a model, by what they are known by
//!   │
//!   ├── Search (search.rs): which candidates of a task come next: knobs of its rule (space.rs), or its trace in another way
//!   │
//!   ├── Measurer (measurer.rs) ═ a pipe ═ Trials (trial.rs) in a process of its own: compiles, compares, takes times
//!   │
//!   └── the database (crate `tenon-tuning`): each result is appended when it is there
//! ```
//!
//! A pass that has schedules measured asks for all of this by a service of the border (asked.rs).
//!
//! `docs/tuning.md` says what is searched, and how.

mod asked;
mod measurer;
mod message;
mod network;
mod search;
mod space;
mod task;
mod trial;
mod tuning;

pub(crate) use asked::measure_for_pass;
pub use asked::{Laboratory, Measuring, MeasuringError};
pub use measurer::TRIAL_COMMAND;
pub use network::{NetworkTimes, compare_network};
pub use search::Strategy;
pub use trial::serve_trials;
pub use tuning::{Budget, Event, Outcome, TaskReport, TuneError, Tuning};
