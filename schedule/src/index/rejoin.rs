//! Quotients and remainders of one number in a sum, as that number again.
//!
//! Loops that are fused and split again leave an index in pieces, each of which was simplified by itself: with `F = p*3520 + q` and `q`
//! below 3520,
//!
//! ```text
//! F // 48400 * 48400  +  (p*4 + q // 880) % 55 * 880  +  q // 16 % 55 * 16  +  q % 16   =   F
//! ```
//!
//! The pieces are its digits. They are put together from the lowest on: what stands for `x % m` takes the term whose factor is `m`.

use super::{Atom, AtomId, Space, Sum};

impl Space {
    /// Puts quotients and remainders together: `(x // c) * c + x % c = x`, and `(z % b) * c + x % c = (z * c + x % c) % (b * c)`.
    pub(crate) fn rejoin(&mut self, mut sum: Sum) -> Sum {
        while sum.terms().len() > 1
            && let Some(joined) = self.rejoin_once(&sum)
        {
            sum = joined;
        }
        sum
    }

    /// The sum with fewer terms, where there is one.
    fn rejoin_once(&mut self, sum: &Sum) -> Option<Sum> {
        let remainders = self.remainders(sum, None);
        remainders.into_iter().find_map(|remainder| self.join_digits(sum, remainder))
    }

    /// The terms that are remainders, of a factor if that is given.
    fn remainders(&self, sum: &Sum, factor: Option<&Sum>) -> Vec<Remainder> {
        let with_atoms = sum.terms().iter().filter_map(|(atoms, scale)| {
            let (at, inner, by) =
                atoms.iter().enumerate().find_map(|(at, &id)| self.as_mod(at, id))?;
            let factor = Sum::product(atoms.without(at), *scale);
            let term = Sum::product(atoms.clone(), *scale);
            Some(Remainder { term, inner: inner.clone(), by: by.clone(), factor })
        });
        with_atoms.filter(|each| factor.is_none_or(|factor| each.factor == *factor)).collect()
    }

    fn as_mod(&self, at: usize, id: AtomId) -> Option<(usize, &Sum, &Sum)> {
        match self.atom(id) {
            Atom::Mod(inner, by) => Some((at, inner, by)),
            _ => None,
        }
    }

    /// What the sum is with the terms that go on from its term `first`.
    fn join_digits(&mut self, sum: &Sum, first: Remainder) -> Option<Sum> {
        let mut rest = sum.sub(&first.term);
        // The value so far is what `modulus` leaves of `whole`, in units of the first factor.
        let (unit, mut whole, mut modulus) = (first.factor, first.inner, first.by);
        loop {
            let step = modulus.mul(&unit)?;
            let quotient = self.quotient(&whole, &modulus)?;
            if let Some(left) = self.without(&rest, &quotient.mul(&step)?) {
                return Some(left.add(&whole.mul(&unit)?));
            }
            let next = self.remainders(&rest, Some(&step)).into_iter().find_map(|next| {
                let above = self.without(&next.inner, &quotient)?;
                Some((next, above))
            });
            let Some((next, above)) = next else { break };
            rest = rest.sub(&next.term);
            whole = above.mul(&modulus)?.add(&whole);
            modulus = next.by.mul(&modulus)?;
        }
        let joined = rest.add(&self.modulo(&whole, &modulus).mul(&unit)?);
        (joined.terms().len() < sum.terms().len()).then_some(joined)
    }

    /// `floor(a / b)`, where `b` is above zero.
    fn quotient(&mut self, a: &Sum, b: &Sum) -> Option<Sum> {
        self.is_natural(&b.add_int(-1)).then(|| self.div(a, b))
    }

    /// What `part` leaves of a sum that has all its terms.
    fn without(&self, sum: &Sum, part: &Sum) -> Option<Sum> {
        let has = |term| sum.terms().contains(term);
        (!part.terms().is_empty() && part.terms().iter().all(has)).then(|| sum.sub(part))
    }
}

/// `factor * (inner % by)`.
struct Remainder {
    term: Sum,
    inner: Sum,
    by: Sum,
    factor: Sum,
}
