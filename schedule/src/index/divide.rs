//! Quotients and remainders, as far as the ranges resolve them.

use super::sum::{Product, gcd};
use super::{Atom, AtomId, Space, Sum};

impl Space {
    /// `floor(a / b)`.
    pub(crate) fn div(&mut self, a: &Sum, b: &Sum) -> Sum {
        self.divide(a, b).0
    }

    /// What `floor(a / b)` leaves of `a`.
    pub(crate) fn modulo(&mut self, a: &Sum, b: &Sum) -> Sum {
        self.divide(a, b).1
    }

    /// `ceil(a / b)`.
    pub(crate) fn ceil_div(&mut self, a: &Sum, b: &Sum) -> Sum {
        let above = a.add(b).add_int(-1);
        self.div(&above, b)
    }

    /// Quotient and remainder; `b` is above zero.
    pub(crate) fn divide(&mut self, a: &Sum, b: &Sum) -> (Sum, Sum) {
        let zero = Sum::default();
        if b.value() == Some(1) {
            return (a.clone(), zero);
        }
        if a == b {
            return (Sum::int(1), zero);
        }
        let [divisor] = b.terms() else { return self.unresolved(&zero, a, b) };
        let (quotient, rest) = a.divide_terms(divisor);
        if let Some(step) = self.within(&rest, b) {
            return (quotient.add_int(step), rest.plus(b, -step));
        }
        if let (Some(number), Some(atom)) = (b.value(), rest.as_atom())
            && let Some((inner, modulus)) = self.nested(atom, number)
        {
            return match modulus {
                // (x // a) // b = x // (a * b), and what is left has no shorter form.
                None => self.unresolved_by(&quotient, &rest, b, inner),
                // (x % (a * b)) // b = (x // b) % a, and (x % (a * b)) % b = x % b.
                Some(steps) => {
                    let (whole, left) = self.divide(&inner, b);
                    let part = self.modulo(&whole, &Sum::int(steps));
                    (quotient.add(&part), left)
                }
            };
        }
        if let Some(number) = b.value()
            && let Some((whole, left)) = self.divide_in_steps(&rest, number)
        {
            return (quotient.add(&whole), left);
        }
        self.unresolved(&quotient, &rest, b)
    }

    /// `(k * x + r) // (k * c)` is `x // c` where `r` is within zero and `k`, and leaves `x % c * k + r`.
    fn divide_in_steps(&mut self, sum: &Sum, number: i64) -> Option<(Sum, Sum)> {
        let mut steps: Vec<i64> = sum.terms().iter().map(|(_, scale)| scale.abs()).collect();
        steps.retain(|&step| step > 1 && step < number && number % step == 0);
        steps.sort_unstable();
        for step in steps.into_iter().rev() {
            let (whole, rest) = sum.divide_terms(&(Product::one(), step));
            if rest.value() == Some(0) || self.within(&rest, &Sum::int(step)) != Some(0) {
                continue;
            }
            let (quotient, left) = self.divide(&whole, &Sum::int(number / step));
            return Some((quotient, left.times(step).add(&rest)));
        }
        None
    }

    /// The `k` with `k * b <= rest < (k + 1) * b`, where the bounds tell.
    fn within(&self, rest: &Sum, b: &Sum) -> Option<i64> {
        let last = b.sub(rest).add_int(-1);
        if self.is_natural(rest) && self.is_natural(&last) {
            return Some(0);
        }
        let (low, high) = (self.lowest(rest)?.value()?, self.highest(rest)?.value()?);
        let number = b.value().filter(|&number| number != 0)?;
        let step = low.div_euclid(number);
        (step == high.div_euclid(number)).then_some(step)
    }

    /// What the quotient or remainder `atom` is of, where dividing it by `number` is dividing that; of a remainder also its
    /// divisor over `number`.
    fn nested(&mut self, atom: AtomId, number: i64) -> Option<(Sum, Option<i64>)> {
        match self.atom(atom) {
            Atom::Div(inner, by) => {
                let whole = by.value()?.checked_mul(number)?;
                let inner = inner.clone();
                Some((self.div(&inner, &Sum::int(whole)), None))
            }
            Atom::Mod(inner, by) if by.value()? % number == 0 => {
                Some((inner.clone(), Some(by.value()? / number)))
            }
            _ => None,
        }
    }

    fn unresolved_by(&mut self, quotient: &Sum, rest: &Sum, b: &Sum, whole: Sum) -> (Sum, Sum) {
        let left = Sum::atom(self.intern(Atom::Mod(rest.clone(), b.clone())));
        (quotient.add(&whole), left)
    }

    /// Quotient and remainder as atoms, with common factors taken out.
    fn unresolved(&mut self, quotient: &Sum, rest: &Sum, b: &Sum) -> (Sum, Sum) {
        let (mut rest, mut b, mut scale) = (rest.clone(), b.clone(), 1);
        if let Some(number) = b.value() {
            let factor = gcd(rest.common_factor(), number);
            if factor > 1 && rest.constant() % factor == 0 {
                rest = rest.divide_terms(&(Product::one(), factor)).0;
                b = Sum::int(number / factor);
                scale = factor;
            }
        }
        let whole = Sum::atom(self.intern(Atom::Div(rest.clone(), b.clone())));
        let left = Sum::atom(self.intern(Atom::Mod(rest, b)));
        (quotient.add(&whole), left.times(scale))
    }

    /// The smaller of two.
    pub(crate) fn min(&mut self, a: &Sum, b: &Sum) -> Sum {
        match (self.is_natural(&b.sub(a)), self.is_natural(&a.sub(b))) {
            (true, _) => a.clone(),
            (_, true) => b.clone(),
            _ => Sum::atom(self.intern(Atom::Min(a.clone(), b.clone()))),
        }
    }

    /// The larger of two.
    pub(crate) fn max(&mut self, a: &Sum, b: &Sum) -> Sum {
        match (self.is_natural(&a.sub(b)), self.is_natural(&b.sub(a))) {
            (true, _) => a.clone(),
            (_, true) => b.clone(),
            _ => Sum::atom(self.intern(Atom::Max(a.clone(), b.clone()))),
        }
    }
}
