//! Programs that decide lanes, tiles and threads while they are written, for extents that are known.
//!
//! Loops say how they are meant to run. The outermost loop is parallel, over all that is independent at once. Innermost loops are
//! vectorized where neighbours lie side by side, by as many lanes as the target has or fewer, always a power of two. The loops of a
//! tile are unrolled, so that a local buffer is only touched at constant places and becomes registers. Arithmetic on floats narrower
//! than f32 is done in f32.
//!
//! Reductions and out-fusable programs sum into buffers of scope `local` and write every element of the result once, by one store
//! statement, at the end of a tile, into which element-wise work on the result can be folded.

mod buffers;
mod loops;
pub(crate) mod tile;

pub(crate) use buffers::{Block, Buffer, Fixed};
pub(crate) use loops::{Loops, MAX_VECTORS, vector_width};
pub(crate) use tenon_plugin_api::program::{Program as Kernel, Scalar, Stmt, compute_dtype};
