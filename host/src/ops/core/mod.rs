//! The core set of operators: attributes and type inference. Their evaluation is in [`crate::eval`].

mod broadcast;
pub mod compiler;
mod conv;
mod elementwise;
mod group_norm;
mod layout_transform;
mod matmul;
mod normalize;
mod pad;
mod pool;
mod reduce;
mod shape;
pub(crate) mod slice;
pub mod vm;
