//! Contexts for tests.

use crate::ir::Cx;
use crate::ops::linked;

/// An empty context with the operators that are linked into this program, which `use … as _` of a plugin's crate does.
pub fn cx() -> Cx {
    Cx::with_operators(linked())
}
