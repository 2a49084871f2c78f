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

/// The attributes by which a program that was made for a call says what the call must find of dimensions, each a shape of pairs of
/// them, extent and wanted; and whether 1 does as well for the first.
pub const FITS: [(&str, bool); 2] = [("taken_equal", false), ("taken_repeated", true)];
