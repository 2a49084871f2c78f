//! The weights that the neighbours of a place have, by their distance.

use tenon_plugin_api::program::Scalar;

/// What reads between elements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kernel {
    /// The two neighbours, by how near they are.
    Linear,
    /// Four of them, by pieces of cubic polynomials (R. Keys, 1981) with this parameter.
    Cubic(f64),
}

impl Kernel {
    /// The distance from which on weights are zero.
    pub(super) fn reach(self) -> f64 {
        match self {
            Self::Linear => 1.0,
            Self::Cubic(_) => 2.0,
        }
    }

    /// The weight at a distance.
    pub(super) fn weight(self, x: f64) -> f64 {
        let x = x.abs();
        match self {
            Self::Linear => (1.0 - x).max(0.0),
            Self::Cubic(a) if x <= 1.0 => (a + 2.0) * x.powi(3) - (a + 3.0) * x.powi(2) + 1.0,
            Self::Cubic(a) if x < 2.0 => a * (x.powi(3) - 5.0 * x.powi(2) + 8.0 * x - 4.0),
            Self::Cubic(_) => 0.0,
        }
    }

    /// It in a program.
    pub(super) fn weight_of(self, x: Scalar<'_>) -> Scalar<'_> {
        let x = x.call("abs");
        match self {
            Self::Linear => (x * -1.0 + 1.0).max(0.0),
            Self::Cubic(a) => {
                let near = (x * (a + 2.0) - (a + 3.0)) * x * x + 1.0;
                let far = (((x - 5.0) * x + 8.0) * x - 4.0) * a;
                let zero = x.program().literal(x.dtype(), 0.0);
                x.gt(1.0).select(x.lt(2.0).select(far, zero), near)
            }
        }
    }
}
