//! From a lowered module to something that runs.
//!
//! ```ignore
//! let executable = Executable::compile(&module, &target, &CompileOptions::default())?;
//! let model = executable.jit()?;                                // runs in this process
//! let (path, outputs) = ("resnet50.so".as_ref(), Outputs::default());
//! executable.export(path, LinkForm::Library, None, outputs)?;   // one library and its header
//! ```
//!
//! The module is one whose graph function has been planned: its bindings call tensor programs that
//! write to memory, and nothing else is left to do. [`crate::plan`] reads it into addresses and calls;
//! [`compile`] makes objects of the programs, one for those that are the same, and of the function
//! that calls them; `export` and `header` write what users of the library need.

mod compile;
mod device;
mod error;
mod export;
mod header;
mod identical;
mod intrinsics;
mod saved;
mod scheduled;
mod scratch;
mod several;
mod sources;
#[cfg(all(test, feature = "llvm"))]
mod tests;

pub use crate::object::link::LinkForm;
pub use compile::{CompileOptions, Executable, KernelRun, Unit, emit};
pub use device::DeviceProgram;
pub use error::CompileError;
pub use export::{ExportOptions, ExportedFiles, header_path, library_weights_path, prefix_of};
pub use saved::{SavedDescription, SavedError, is_saved};
pub use scheduled::Scheduled;
