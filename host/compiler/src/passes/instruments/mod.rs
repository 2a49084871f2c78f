//! The built-in instruments.

mod dump;
mod limit;
mod plugin;
mod print_ir;
mod record;
mod statistics;
mod timing;
mod validate;
mod verify;

pub use dump::Dump;
pub use limit::PassLimit;
pub use plugin::FromPlugin;
pub use print_ir::{PrintIr, PrintWhen};
pub use record::{Record, Snapshot};
pub use statistics::{Hashes, Statistics};
pub use timing::{Timing, Trace};
pub use validate::Validate;
pub use verify::VerifyEach;
