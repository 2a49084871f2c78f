//! Operators that put tensors together and take parts of them.

pub mod col2im;
pub mod concatenate;
pub mod dynamic_slice;
pub mod gather_elements;
pub mod gather_nd;
pub mod index_add;
pub mod pad;
pub(crate) mod places;
mod reduced;
pub mod scatter_elements;
pub mod scatter_nd;
mod slice_at;
mod slice_range;
pub mod split;
pub mod strided_slice;
pub mod take;
