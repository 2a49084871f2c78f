//! The tensor programs of the operators.
//!
//! A program reads the buffers of the arguments, with tuples flattened, and writes those of the results.
//! It says by its attribute [`OP_PATTERN`] how it may be fused, and keeps what goes with that:
//!
//! * **Element-wise, broadcast and injective** programs are one serial loop for each axis of the result
//!   around one store, whose indices are the loop variables. Such a program can be folded into one that
//!   reads its result: a load of an element becomes the stored expression at its indices.
//! * **Reductions and out-fusable** programs sum into buffers of scope `local` and write every element of
//!   the result once, by one store statement, at the end of a tile. Element-wise work on the result can be
//!   folded into that statement.
//! * **Opaque** programs are left alone.
//!
//! Loops say how they are meant to run. The outermost loop of a program that is not element-wise is
//! parallel, over all that is independent at once. Innermost loops are vectorized where neighbours lie
//! side by side, by as many lanes as the target has or fewer, always a power of two. The loops of a tile
//! are unrolled, so that a local buffer is only touched at constant places and becomes registers.
//! Arithmetic on floats narrower than f32 is done in f32.
//!
//! [`kernel`] is the language the programs are written in; each other file is one family of operators.

mod kernel;
mod layout_index;
mod program;
mod scalar;
mod tile;

mod fold;
mod reshape;

mod conv2d;
mod elementwise;
mod global_pool;
mod group_norm;
mod groups;
mod index_add;
mod injective;
mod join;
mod lrn;
mod matmul;
mod pool;
mod reduce;
mod softmax;
mod symbolic;
mod table;

pub use program::{OP_NAME, OP_PATTERN};
pub(crate) use table::find;
pub use table::has_program;

use super::{Layout, LegalizeCx, OpError};

/// The layout in attribute `name`.
fn layout_attr(cx: &LegalizeCx<'_>, name: &'static str) -> Result<Layout, OpError> {
    Ok(Layout::parse(cx.attrs.str(name)?)?)
}
