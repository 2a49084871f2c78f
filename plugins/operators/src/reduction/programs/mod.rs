//! The programs of reductions.
//!
//! ```text
//! sum(a: f32[n, m], axis = 1)     acc[i] = acc[i] + a[i, r];  out[i] = acc[i]
//! ```

mod extreme;
mod plain;

pub(super) use extreme::{extreme, is_better};
pub(super) use plain::{Reduction, reduce, reduces};
