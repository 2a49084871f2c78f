//! Operators on each element by itself.

pub mod abs;
pub mod cast;
pub mod ceil;
pub mod clip;
pub mod cos;
pub mod dropout;
pub mod erf;
pub mod exp;
pub mod floor;
pub mod gelu;
pub mod leaky_relu;
pub mod log;
pub mod logical_not;
pub mod negative;
pub mod relu;
pub mod round;
pub mod rsqrt;
pub mod sigmoid;
pub mod silu;
mod simplify;
pub mod sin;
pub mod sqrt;
pub mod tanh;
pub(crate) mod types;
