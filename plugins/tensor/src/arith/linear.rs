//! Sums of multiples: the normal form of index arithmetic.

use smallvec::{SmallVec, smallvec};
use tenon_plugin_api::ir::Expr;

use super::Interval;

/// More atoms than this are not taken apart, so that no sum of a long chain costs its length again.
const MAX_TERMS: usize = 24;

/// The terms of a sum.
pub(crate) type Terms = SmallVec<[(Expr, i64); 1]>;

/// `coefficient * atom + … + constant`. An atom is a node that is no sum itself; each stands once, and
/// they are in the order of their numbers, which is that of the loops: outer before inner.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Linear {
    /// In place up to one, as most are: forms of all nodes are kept, and a program has millions.
    pub(crate) terms: Terms,
    pub(crate) constant: i64,
}

/// `form // divisor` as `quotient + rest // divisor`.
pub(crate) struct Division {
    pub(crate) quotient: Linear,
    /// What is left; `None` when the quotient says it all.
    pub(crate) rest: Option<Linear>,
    /// What is left of the form after the quotient's part: the remainder, while `rest` is `None`.
    pub(crate) remainder: Linear,
}

impl Linear {
    pub(crate) fn of(constant: i64) -> Self {
        Self { terms: Terms::new(), constant }
    }

    pub(crate) fn atom(expr: Expr) -> Self {
        Self { terms: smallvec![(expr, 1)], constant: 0 }
    }

    /// The value, when no atom is in it.
    pub(crate) fn value(&self) -> Option<i64> {
        self.terms.is_empty().then_some(self.constant)
    }

    /// The only atom, when it stands alone.
    pub(crate) fn as_atom(&self) -> Option<Expr> {
        match self.terms.as_slice() {
            &[(expr, 1)] if self.constant == 0 => Some(expr),
            _ => None,
        }
    }

    /// How often an atom is in it.
    pub(crate) fn coefficient(&self, atom: Expr) -> i64 {
        let place = self.terms.binary_search_by_key(&atom, |&(expr, _)| expr);
        place.map_or(0, |place| self.terms[place].1)
    }

    /// `self + scale * other`; `None` when a number does not fit or there are too many atoms.
    pub(crate) fn plus(&self, other: &Linear, scale: i64) -> Option<Linear> {
        let constant = self.constant.checked_add(other.constant.checked_mul(scale)?)?;
        let mut terms = Terms::with_capacity(self.terms.len() + other.terms.len());
        let (mut left, mut right) = (self.terms.iter().peekable(), other.terms.iter().peekable());
        loop {
            let (expr, coefficient) = match (left.peek(), right.peek()) {
                (Some(&&(a, x)), Some(&&(b, y))) if a == b => {
                    left.next();
                    right.next();
                    (a, x.checked_add(y.checked_mul(scale)?)?)
                }
                (Some(&&(a, x)), Some(&&(b, _))) if a < b => {
                    left.next();
                    (a, x)
                }
                (_, Some(&&(b, y))) => {
                    right.next();
                    (b, y.checked_mul(scale)?)
                }
                (Some(&&(a, x)), None) => {
                    left.next();
                    (a, x)
                }
                (None, None) => break,
            };
            if coefficient != 0 {
                terms.push((expr, coefficient));
            }
        }
        (terms.len() <= MAX_TERMS).then_some(Linear { terms, constant })
    }

    /// What `scale * part` leaves of it, which has each of its terms.
    pub(crate) fn without(&self, part: &Linear, scale: i64) -> Option<Linear> {
        let has = |&(atom, factor): &(Expr, i64)| {
            factor.checked_mul(scale) == Some(self.coefficient(atom))
        };
        (!part.terms.is_empty() && part.terms.iter().all(has))
            .then(|| self.plus(part, scale.checked_neg()?))?
    }

    /// `self * factor`; `None` when a number does not fit.
    pub(crate) fn times(&self, factor: i64) -> Option<Linear> {
        Linear::default().plus(self, factor)
    }

    /// The bounds, given those of the atoms.
    pub(crate) fn interval(&self, of: impl Fn(Expr) -> Interval) -> Interval {
        self.terms.iter().fold(Interval::of(self.constant), |sum, &(expr, coefficient)| {
            sum.add(of(expr).scale(coefficient))
        })
    }

    /// The coefficients of the atoms.
    pub(crate) fn coefficients(&self) -> impl Iterator<Item = i64> {
        self.terms.iter().map(|&(_, coefficient)| coefficient)
    }

    /// The greatest number that divides every coefficient; 0 when there is none.
    pub(crate) fn common_factor(&self) -> i64 {
        self.terms.iter().fold(0, |common, &(_, coefficient)| gcd(common, coefficient))
    }

    /// Divides by a positive number, rounding down: multiples of the divisor leave the fraction, and so
    /// does all the rest when its bounds lie between two neighbouring multiples.
    pub(crate) fn divide(&self, divisor: i64, of: impl Fn(Expr) -> Interval) -> Division {
        let (whole, broken): (Vec<_>, Vec<_>) =
            self.terms.iter().partition(|&&(_, coefficient)| coefficient % divisor == 0);
        let mut quotient = Linear {
            terms: whole.iter().map(|&&(expr, x)| (expr, x / divisor)).collect(),
            constant: self.constant.div_euclid(divisor),
        };
        let mut remainder = Linear {
            terms: broken.into_iter().copied().collect(),
            constant: self.constant.rem_euclid(divisor),
        };
        let bounds = remainder.interval(of);
        let (low, high) = (bounds.min.div_euclid(divisor), bounds.max.div_euclid(divisor));
        let is_bounded = bounds.min != i64::MIN && bounds.max != i64::MAX;
        if is_bounded
            && low == high
            && let Some(constant) = quotient.constant.checked_add(low)
            && let Some(left) =
                low.checked_mul(divisor).and_then(|whole| remainder.constant.checked_sub(whole))
        {
            quotient.constant = constant;
            remainder.constant = left;
            return Division { quotient, rest: None, remainder };
        }
        Division { quotient, rest: Some(remainder.clone()), remainder }
    }

    /// `self // divisor` with the common factor of both taken out.
    pub(crate) fn reduce_fraction(&self, divisor: i64) -> (Linear, i64) {
        let factor = gcd(self.common_factor(), divisor);
        if factor <= 1 {
            return (self.clone(), divisor);
        }
        let terms = self.terms.iter().map(|&(expr, x)| (expr, x / factor)).collect();
        let constant = self.constant.div_euclid(factor);
        (Linear { terms, constant }, divisor / factor)
    }
}

fn gcd(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    i64::try_from(a).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(terms: &[(u32, i64)], constant: i64) -> Linear {
        Linear { terms: terms.iter().map(|&(id, x)| (Expr(id), x)).collect(), constant }
    }

    #[test]
    fn equal_atoms_meet_and_cancel() {
        let a = sum(&[(1, 2), (3, 5)], 1);
        let b = sum(&[(1, -2), (2, 4)], 3);
        assert_eq!(a.plus(&b, 1), Some(sum(&[(2, 4), (3, 5)], 4)));
        assert_eq!(a.plus(&a, -1), Some(Linear::of(0)));
    }

    #[test]
    fn division_takes_out_multiples_and_what_is_bounded() {
        let below_four = |_| Interval { min: 0, max: 3 };
        let exact = sum(&[(1, 8), (2, 2)], 17).divide(8, below_four);
        assert_eq!(exact.quotient, sum(&[(1, 1)], 2));
        assert_eq!((exact.rest, exact.remainder), (None, sum(&[(2, 2)], 1)));
        let open = sum(&[(1, 8), (2, 4)], 0).divide(8, below_four);
        assert_eq!(open.rest.map(|rest| rest.reduce_fraction(8)), Some((sum(&[(2, 1)], 0), 2)));
    }
}
