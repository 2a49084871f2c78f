//! Operators that go along an axis.

mod by_digits;
pub mod cumprod;
pub mod cumsum;
mod running;
pub mod topk;
