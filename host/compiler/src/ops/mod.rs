//! The books of operators: those of plugins that are opened, and those that are linked into this program.

mod book;
mod extended;

pub use book::{Combined, Linked, linked};
pub use extended::Extended;
pub use tenon_ir::ops::*;
