//! The built-in instruments.

mod print_ir;
mod record;
mod timing;
mod validate;
mod verify;

pub use print_ir::{PrintIr, PrintWhen};
pub use record::{Record, Snapshot};
pub use timing::Timing;
pub use validate::Validate;
pub use verify::VerifyEach;
