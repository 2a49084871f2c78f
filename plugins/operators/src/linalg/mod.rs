//! Matrices as maps.

pub mod det;
