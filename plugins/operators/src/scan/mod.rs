//! Operators that go along an axis.

pub mod cumprod;
pub mod cumsum;
mod running;
pub mod topk;
