//! Ways to make one value of many.

use crate::ir::DType;

use super::{Program, Scalar};

/// An associative and commutative operation with an identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reducer {
    /// The sum; of nothing it is 0.
    Sum,
    /// The product; of nothing it is 1.
    Product,
    /// The largest; of nothing the least value of the dtype.
    Max,
    /// The smallest; of nothing the greatest value of the dtype.
    Min,
}

impl Reducer {
    /// What leaves every value as it is.
    pub fn identity(self, program: &Program, dtype: DType) -> Scalar<'_> {
        match self {
            Self::Sum => program.literal(dtype, 0.0),
            Self::Product => program.literal(dtype, 1.0),
            Self::Max => program.literal(dtype, f64::NEG_INFINITY),
            Self::Min => program.literal(dtype, f64::INFINITY),
        }
    }

    /// One value of two.
    pub fn combine<'p>(self, a: Scalar<'p>, b: Scalar<'p>) -> Scalar<'p> {
        match self {
            Self::Sum => a + b,
            Self::Product => a * b,
            Self::Max => a.max(b),
            Self::Min => a.min(b),
        }
    }
}
