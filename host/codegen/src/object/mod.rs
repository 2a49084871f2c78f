//! Objects and libraries as files, whoever made the code in them.
//!
//! [`constants`] lays large constants into an object, [`link`] makes one library or one object of
//! many with the [`linker`] that the machine has, and [`symbols`] says what may be left undefined.

pub mod constants;
mod error;
pub mod externals;
#[cfg(feature = "static-llvm")]
pub mod inside;
pub mod link;
pub mod linker;
mod own;
mod rename;
pub mod symbols;

pub use error::{ObjectError, names_text};
pub use rename::with_suffix;
