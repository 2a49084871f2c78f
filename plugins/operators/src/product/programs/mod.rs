//! The programs of matrix products: for any extents, and in tiles where the extents are known.
//!
//! * [`tiled`]: the right matrix in vectors of columns, either row by row, `[K, N]`, or in panels, `NK16n`, what constant weights
//!   are packed into. Tiles of rows by columns are summed in registers.
//! * [`dots`]: the right matrix column by column, `[N, K]`: vectors along the sum.
//! * [`each`]: everything else, one element after the other.

mod dots;
mod each;
mod fixed;
mod plain;
mod tiled;

pub(super) use fixed::{dense as dense_fixed, matmul as matmul_fixed};
pub(super) use plain::{dense, matmul};
