//! Decision trees.

pub mod leaves;
