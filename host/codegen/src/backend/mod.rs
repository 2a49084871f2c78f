//! Code generators: what makes objects of a planned module.
//!
//! A [`Backend`] says which processors it knows and what they can do, compiles tensor programs and
//! the function that calls them, and loads what it made into this process. Nothing outside of a
//! backend's own folder knows how it does that. [`backend_for`] says which one a target has, [`backend`] which one this machine has.

mod error;
mod generator;
#[cfg(feature = "llvm")]
pub mod llvm;
#[cfg(not(feature = "llvm"))]
mod none;
#[cfg(feature = "llvm")]
mod nvptx;
mod work;

pub use error::from_text;
pub use error::{BackendError, Problem};
pub use generator::{Backend, Names, backend, backend_for};
pub use work::{
    CONSTANTS, Compilation, ConstantPlaces, ConstantTable, Emit, Front, FrontCode, FrontFunction,
    FrontProcessor, Kernel, Launch, LaunchShape, Loadable, Scratch, WEIGHTS, Work,
};
