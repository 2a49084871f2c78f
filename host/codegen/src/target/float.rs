//! How far float arithmetic may be rearranged.

use std::fmt;

/// Whether float arithmetic is computed as it is written; `docs/numerics.md` says what follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum FloatMode {
    /// As written, and sums in the order in which programs add.
    Strict,
    /// In f32 and f64 a product and the sum that it is an operand of, in one expression, are rounded once where the
    /// processor has an instruction for both; sums may be added in parts.
    #[default]
    Contract,
}

impl FloatMode {
    /// All of them.
    pub const ALL: [FloatMode; 2] = [FloatMode::Strict, FloatMode::Contract];

    /// As it stands in the text of a target.
    pub fn name(self) -> &'static str {
        match self {
            FloatMode::Strict => "strict",
            FloatMode::Contract => "contract",
        }
    }

    pub(super) fn of(name: &str) -> Option<FloatMode> {
        FloatMode::ALL.into_iter().find(|mode| mode.name() == name)
    }
}

impl fmt::Display for FloatMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
