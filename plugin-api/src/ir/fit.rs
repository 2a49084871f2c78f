//! What type inference takes for granted of dimensions.

use super::Dim;

/// That two dimensions fit, which depends on what their symbols stand for: an operator takes it for granted, and each call is
/// checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fit {
    /// The extent of a tensor along an axis.
    pub extent: Dim,
    /// What it must be.
    pub wanted: Dim,
    /// Whether 1 does as well, since the tensor is repeated then.
    pub may_be_one: bool,
}
