//! Operators on the bits of integers.

pub mod bitwise_and;
pub mod bitwise_not;
pub mod bitwise_or;
pub mod bitwise_xor;
mod integers;
pub mod left_shift;
pub mod right_shift;

use integers::integers;
