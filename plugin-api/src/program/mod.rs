//! The language in which tensor programs are written: scalars with operators, buffers with indices, axes as closures.
//!
//! ```
//! use tenon_plugin_api::program::{Program, Reducer, Stmt};
//!
//! /// The sums of the rows of a matrix.
//! fn row_sums(program: &Program) -> Stmt {
//!     let (x, out) = (program.input(0), program.output(0));
//!     let columns = x.shape()[1];
//!     program.each(out.shape(), |row| {
//!         let mut body = program.block();
//!         let sum = body.reduce("sum", Reducer::Sum, x.compute_dtype(), &[columns], |column| {
//!             x.wide(&[row[0], column[0]])
//!         });
//!         body.push(out.set(row, sum));
//!         body.finish()
//!     })
//! }
//! ```
//!
//! A program says what is computed, and for extents that may be symbols or zero; it does not say how loops run. `docs/programs.md`
//! shows one from its first line on.

mod block;
mod buffer;
mod frame;
mod reducer;
mod scalar;
mod write;

pub use block::Block;
pub use buffer::Buffer;
pub use frame::{OP_NAME, OP_PATTERN, Program};
pub use reducer::Reducer;
pub use scalar::{Operand, Scalar, compute_dtype};
pub use write::{Extent, Stmt, Writer};
