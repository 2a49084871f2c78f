//! Bounds of integers.

/// All integers from `min` to `max`. The least and the greatest `i64` stand for no bound.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Interval {
    pub(crate) min: i64,
    pub(crate) max: i64,
}

impl Interval {
    /// Nothing is known.
    pub(crate) const ALL: Self = Self { min: i64::MIN, max: i64::MAX };
    /// A truth value, or what a condition is as a number.
    pub(crate) const BIT: Self = Self { min: 0, max: 1 };
    /// Nothing is known but that it is not negative.
    pub(crate) const NATURAL: Self = Self { min: 0, max: i64::MAX };

    /// One value.
    pub(crate) fn of(value: i64) -> Self {
        Self { min: value, max: value }
    }

    /// The value, when there is only one.
    pub(crate) fn single(self) -> Option<i64> {
        (self.min == self.max).then_some(self.min)
    }

    pub(crate) fn add(self, other: Self) -> Self {
        let min = match self.min == i64::MIN || other.min == i64::MIN {
            true => i64::MIN,
            false => self.min.saturating_add(other.min),
        };
        let max = match self.max == i64::MAX || other.max == i64::MAX {
            true => i64::MAX,
            false => self.max.saturating_add(other.max),
        };
        Self { min, max }
    }

    pub(crate) fn scale(self, factor: i64) -> Self {
        let at = |bound: i64, unbounded: i64| match bound == unbounded {
            // No bound times a factor is no bound on the side that the sign says.
            true if factor == 0 => 0,
            true if (factor > 0) == (unbounded == i64::MAX) => i64::MAX,
            true => i64::MIN,
            false => bound.saturating_mul(factor),
        };
        let (a, b) = (at(self.min, i64::MIN), at(self.max, i64::MAX));
        Self { min: a.min(b), max: a.max(b) }
    }

    pub(crate) fn mul(self, other: Self) -> Self {
        if let Some(factor) = other.single() {
            return self.scale(factor);
        }
        let bounds = [self.min, self.max, other.min, other.max];
        if bounds.contains(&i64::MIN) || bounds.contains(&i64::MAX) {
            return match self.min >= 0 && other.min >= 0 {
                true => Self { min: self.min.saturating_mul(other.min), max: i64::MAX },
                false => Self::ALL,
            };
        }
        let products = [
            self.min.saturating_mul(other.min),
            self.min.saturating_mul(other.max),
            self.max.saturating_mul(other.min),
            self.max.saturating_mul(other.max),
        ];
        let min = products.into_iter().fold(i64::MAX, i64::min);
        let max = products.into_iter().fold(i64::MIN, i64::max);
        Self { min, max }
    }

    /// Of the quotient by a positive `divisor`, rounded down.
    pub(crate) fn floor_div(self, divisor: i64) -> Self {
        let at = |bound: i64, unbounded: i64| match bound == unbounded {
            true => bound,
            false => bound.div_euclid(divisor),
        };
        Self { min: at(self.min, i64::MIN), max: at(self.max, i64::MAX) }
    }

    /// Of the smaller of two.
    pub(crate) fn lesser(self, other: Self) -> Self {
        Self { min: self.min.min(other.min), max: self.max.min(other.max) }
    }

    /// Of the larger of two.
    pub(crate) fn greater(self, other: Self) -> Self {
        Self { min: self.min.max(other.min), max: self.max.max(other.max) }
    }

    /// Of either of two.
    pub(crate) fn union(self, other: Self) -> Self {
        Self { min: self.min.min(other.min), max: self.max.max(other.max) }
    }

    /// How many integers lie between the bounds, both counted; the most there is when unbounded.
    pub(crate) fn extent(self) -> i64 {
        if self.min == i64::MIN || self.max == i64::MAX {
            return i64::MAX;
        }
        self.max.saturating_sub(self.min).saturating_add(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_bound_stays_no_bound() {
        let natural = Interval::NATURAL;
        assert_eq!(natural.scale(-2), Interval { min: i64::MIN, max: 0 });
        assert_eq!(natural.add(Interval::of(-3)), Interval { min: -3, max: i64::MAX });
        assert_eq!(natural.scale(0), Interval::of(0));
        assert_eq!(natural.floor_div(4), natural);
        assert_eq!(natural.extent(), i64::MAX);
    }

    #[test]
    fn division_rounds_down() {
        let interval = Interval { min: -5, max: 7 };
        assert_eq!(interval.floor_div(4), Interval { min: -2, max: 1 });
        assert_eq!(interval.scale(-1), Interval { min: -7, max: 5 });
    }
}
