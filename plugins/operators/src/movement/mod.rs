//! Operators that put tensors together and take parts of them.

pub mod concatenate;
pub mod dynamic_slice;
pub mod index_add;
pub mod pad;
mod places;
pub mod split;
pub mod strided_slice;
pub mod take;
