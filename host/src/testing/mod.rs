//! What tests of passes need besides the library itself: the conformance kit's, and the house's own.

mod random;

pub use random::{Random, random_module};

use crate::ir::Cx;
use crate::ops::linked;

/// An empty context with the operators that are linked into this program, which `use … as _` of a plugin's crate does.
pub fn cx() -> Cx {
    Cx::with_operators(linked())
}
