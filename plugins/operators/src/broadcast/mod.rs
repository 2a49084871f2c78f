//! Operators on tensors whose shapes are broadcast against each other.

pub mod add;
pub mod choose;
pub mod divide;
pub mod equal;
pub mod fma;
pub mod greater;
pub mod greater_equal;
pub mod less;
pub mod less_equal;
pub mod logical_and;
pub mod logical_or;
pub mod maximum;
pub mod minimum;
pub mod multiply;
pub mod not_equal;
pub mod power;
pub mod remainder;
pub(crate) mod simplify;
pub mod subtract;
pub(crate) mod types;
