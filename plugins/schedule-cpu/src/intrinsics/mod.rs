//! Instructions that compute a tile: what each computes, which processors have it, and its code.

mod amx;
mod dots;
mod multiply_add;

pub(crate) use amx::ROWS;
