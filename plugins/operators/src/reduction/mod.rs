//! Reductions along axes.

pub(crate) mod along;
pub mod argmax;
pub mod argmin;
mod kept;
pub mod max;
pub mod mean;
pub mod min;
pub mod prod;
mod programs;
mod reducers;
pub mod sum;
