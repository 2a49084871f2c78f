//! What the evaluation of several operators is made of: plain loops that say what an operator means.
//!
//! They share nothing with tensor programs or the code generator. Floats are summed and put through functions in f64 and
//! rounded once; integers wrap around. Large tensors are worked on by several threads.

pub(crate) mod convert;
pub(crate) mod elements;
pub(crate) mod groups;
pub(crate) mod moves;
pub(crate) mod parallel;
pub(crate) mod rows;
pub(crate) mod space;
pub(crate) mod strided;
pub(crate) mod window;
