//! What is known about the size of an integer while code is emitted.
//!
//! The bounds of loops are literals as a rule, so that the range of most index arithmetic is known
//! exactly. A division of something that cannot be negative is a plain one, and a sum that cannot
//! overflow may be said not to.

use tenon_ir::{BinaryOp, DType};

/// All values an integer may have, ends included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Range {
    pub(super) low: i64,
    pub(super) high: i64,
}

impl Range {
    pub(super) fn exactly(value: i64) -> Range {
        Range { low: value, high: value }
    }

    pub(super) fn is_never_negative(self) -> bool {
        self.low >= 0
    }

    /// The one value, where there is one only.
    pub(super) fn value(self) -> Option<i64> {
        (self.low == self.high).then_some(self.low)
    }

    /// The smallest range that holds both.
    pub(super) fn union(self, other: Range) -> Range {
        Range { low: self.low.min(other.low), high: self.high.max(other.high) }
    }

    /// The range of the sum, in mathematics; `None` when it leaves 64 bits.
    pub(super) fn plus(self, other: Range) -> Option<Range> {
        let low = self.low.checked_add(other.low)?;
        Some(Range { low, high: self.high.checked_add(other.high)? })
    }

    fn minus(self, other: Range) -> Option<Range> {
        let low = self.low.checked_sub(other.high)?;
        Some(Range { low, high: self.high.checked_sub(other.low)? })
    }

    /// The range of the product, in mathematics; `None` when it leaves 64 bits.
    pub(super) fn times(self, other: Range) -> Option<Range> {
        let corners = [
            self.low.checked_mul(other.low)?,
            self.low.checked_mul(other.high)?,
            self.high.checked_mul(other.low)?,
            self.high.checked_mul(other.high)?,
        ];
        let low = corners.into_iter().min()?;
        Some(Range { low, high: corners.into_iter().max()? })
    }

    /// Whether every value of it is one of `dtype`.
    pub(super) fn fits(self, dtype: DType) -> bool {
        let bits = dtype.bits();
        match (dtype.is_int(), dtype.is_signed()) {
            (false, _) => dtype.is_bool() && self.low >= 0 && self.high <= 1,
            (true, true) if bits >= 64 => true,
            (true, true) => self.low >= -(1 << (bits - 1)) && self.high < 1 << (bits - 1),
            (true, false) if bits >= 64 => self.low >= 0,
            (true, false) => self.low >= 0 && self.high < 1 << bits,
        }
    }
}

/// The range of `a op b` in `dtype`. `None` when nothing is known, and then, for a sum, a
/// difference or a product, it may overflow.
pub(super) fn of_binary(
    op: BinaryOp,
    dtype: DType,
    a: Option<Range>,
    b: Option<Range>,
) -> Option<Range> {
    let range = match op {
        BinaryOp::Add => a?.plus(b?)?,
        BinaryOp::Sub => a?.minus(b?)?,
        BinaryOp::Mul => a?.times(b?)?,
        BinaryOp::Min => Range { low: a?.low.min(b?.low), high: a?.high.min(b?.high) },
        BinaryOp::Max => Range { low: a?.low.max(b?.low), high: a?.high.max(b?.high) },
        BinaryOp::FloorMod => {
            let by = b.filter(|by| by.low > 0)?;
            match a {
                Some(a) if a.low >= 0 && a.high < by.low => a,
                _ => Range { low: 0, high: by.high - 1 },
            }
        }
        BinaryOp::FloorDiv | BinaryOp::Div => {
            let (a, by) = (a?, b?.value().filter(|&by| by > 0)?);
            let divide = |value: i64| match op {
                BinaryOp::Div => value / by,
                _ => value.div_euclid(by),
            };
            Range { low: divide(a.low), high: divide(a.high) }
        }
        BinaryOp::Eq
        | BinaryOp::Ne
        | BinaryOp::Lt
        | BinaryOp::Le
        | BinaryOp::Gt
        | BinaryOp::Ge
        | BinaryOp::And
        | BinaryOp::Or => return None,
    };
    range.fits(dtype).then_some(range)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(low: i64, high: i64) -> Option<Range> {
        Some(Range { low, high })
    }

    #[test]
    fn ranges_follow_arithmetic() {
        let of = |op, a, b| of_binary(op, DType::I64, a, b);
        assert_eq!(of(BinaryOp::Add, range(0, 3), range(-1, 4)), range(-1, 7));
        assert_eq!(of(BinaryOp::Sub, range(0, 3), range(-1, 4)), range(-4, 4));
        assert_eq!(of(BinaryOp::Mul, range(-2, 3), range(-5, 4)), range(-15, 12));
        assert_eq!(of(BinaryOp::FloorDiv, range(-1, 7), range(2, 2)), range(-1, 3));
        assert_eq!(of(BinaryOp::Div, range(-1, 7), range(2, 2)), range(0, 3));
        assert_eq!(of(BinaryOp::FloorMod, None, range(4, 4)), range(0, 3));
        assert_eq!(of(BinaryOp::FloorMod, range(1, 2), range(4, 4)), range(1, 2));
        assert_eq!(of(BinaryOp::FloorMod, range(1, 2), range(-4, 4)), None);
        assert_eq!(of(BinaryOp::Max, range(1, 2), range(-4, 4)), range(1, 4));
    }

    #[test]
    fn what_may_overflow_is_not_known() {
        assert_eq!(
            of_binary(BinaryOp::Add, DType::I64, range(i64::MAX, i64::MAX), range(0, 1)),
            None
        );
        assert_eq!(of_binary(BinaryOp::Mul, DType::I8, range(0, 16), range(0, 8)), None);
        assert_eq!(of_binary(BinaryOp::Sub, DType::U8, range(0, 16), range(0, 8)), None);
        assert_eq!(
            of_binary(BinaryOp::Add, DType::U8, range(0, 127), range(0, 128)),
            range(0, 255)
        );
    }
}
