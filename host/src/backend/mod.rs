//! Code generators: what makes objects of a planned module.
//!
//! A [`Backend`] says which processors it knows and what they can do, compiles tensor programs and
//! the function that calls them, and loads what it made into this process. Nothing outside of a
//! backend's own folder knows how it does that; [`backend`] is the one that this program has.

mod error;
mod generator;
#[cfg(feature = "llvm")]
pub mod llvm;
#[cfg(not(feature = "llvm"))]
mod none;
mod work;

pub use error::{BackendError, Problem};
pub use generator::{Backend, Names, backend};
pub use work::{Compilation, Emit, Front, Kernel, Work};
