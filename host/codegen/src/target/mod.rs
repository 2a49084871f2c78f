//! Targets: what code is made for, as values that can be named, listed, shown and asked.
//!
//! ```text
//! native                                          this machine; `llvm` and `cpu` mean the same
//! native,vector-width=256                         this machine, at most 256-bit vectors
//! znver4                                          one of the list, see `tenon targets list`
//! x86_64-linux-gnu,cpu=znver4,l3=16M              the same, and less of a cache
//! x86_64-linux-gnu,cpu=x86-64-v3,features=+avx512f,+avx512vl
//! ```
//!
//! The head is this machine, a name of the list (`targets.txt`), or a triple. With a triple the
//! processor is the architecture's baseline, so that what is compiled for a triple runs on all of
//! its machines. What is not known is an error that names what may be meant.
//!
//! [`Targets`] are those of one library, with code for each.
//!
//! What a processor can do is asked of the code generator; caches and threads are read from the
//! system for this machine, and from the list for others.

mod architecture;
mod caches;
mod cpuid;
mod error;
mod float;
mod list;
mod of_function;
mod request;
mod several;
#[cfg(all(test, feature = "llvm"))]
mod tests;
mod value;

pub use architecture::{Architecture, Device};
pub use caches::Caches;
pub use cpuid::{asked_features, cpu_needs};
pub use error::{TargetError, TargetProblem};
pub use float::FloatMode;
pub use list::{NamedTarget, named};
pub use of_function::TargetsOfFunctions;
pub use several::Targets;
pub use value::platform;
pub use value::{Abilities, Processor, Target, normalized};
