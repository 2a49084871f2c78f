//! The language in which tensor programs are written: scalars with operators, buffers with indices, axes as closures.
//!
//! ```
//! use tenon_plugin_api::program::{Extent, Program, Reducer};
//!
//! /// The means of the rows of a matrix.
//! fn row_means(program: &Program) {
//!     let (x, out) = (program.input(0), program.output(0));
//!     let [rows, columns] = [x.shape()[0], x.shape()[1]];
//!     let dtype = x.compute_dtype();
//!     let sum = program.reduce("sum", Reducer::Sum, dtype, &[rows], &[columns], |i, r| {
//!         x.wide(&[i[0], r[0]])
//!     });
//!     let count = columns.index(program).cast(dtype);
//!     program.set(&out, |i| sum.at(i) / count);
//! }
//! ```
//!
//! A program says what is computed, and for extents that may be symbols or zero; it does not say how loops run. `docs/programs.md`
//! shows one from its first line on.

mod block;
mod blocks;
mod buffer;
mod frame;
pub(crate) mod intrinsic;
mod reducer;
mod scalar;
mod write;

pub use block::Block;
pub use buffer::Buffer;
pub use frame::{OP_NAME, OP_PATTERN, Program, TARGET};
pub use intrinsic::Intrinsic;
pub use reducer::Reducer;
pub use scalar::{Operand, Scalar, compute_dtype};
pub use write::{Extent, Stmt, Writer};
