//! From a lowered module to something that runs.
//!
//! ```ignore
//! let executable = Executable::compile(&module, &target, &CompileOptions::default())?;
//! let model = executable.jit()?;                                // runs in this process
//! let files = executable.export("resnet50.so".as_ref(), None)?; // one library and its header
//! ```
//!
//! The module is one whose graph function has been planned: its bindings call tensor programs that
//! write to memory, and nothing else is left to do. [`plan`] reads it into addresses and calls;
//! [`compile`] makes objects of the programs, one for those that are the same, and of the function
//! that calls them; `export` and `header` write what users of the library need.

mod compile;
mod error;
mod export;
mod header;
mod identical;
mod plan;
#[cfg(test)]
mod tests;

pub use compile::{CompileOptions, Executable, Unit, emit};
pub use error::{CompileError, PlanProblem};
pub use export::{ExportedFiles, prefix_of};
