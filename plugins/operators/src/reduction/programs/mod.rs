//! The programs of reductions: for any extents, and in vectors where the extents are known.
//!
//! ```text
//! sum(a: f32[n, m], axis = 1)     for i in n { acc = 0; for j in m { acc += a[i, j] }; out[i] = acc }
//! ```

mod extreme;
mod plain;
mod rows;

pub(super) use extreme::{extreme, extreme_fixed};
pub(super) use plain::{Reduction, reduce, reduces};
pub(super) use rows::fixed;
