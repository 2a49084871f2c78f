//! The translations of the operators, by family.

pub(super) mod activation;
pub(super) mod cast;
pub(super) mod constant;
pub(super) mod conv;
pub(super) mod elementwise;
pub(super) mod layout;
pub(super) mod matrix;
pub(super) mod normalize;
pub(super) mod pad;
pub(super) mod pool;
pub(super) mod position;
pub(super) mod quantize;
pub(super) mod reduce;
pub(super) mod scalar;
pub(super) mod shape;
pub(super) mod slice;
mod window;
