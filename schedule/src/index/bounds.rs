//! What the ranges of variables say about sums.

use smallvec::SmallVec;

use super::sum::Product;
use super::{Atom, AtomId, Space, Sum};

/// So many variables are taken out of a sum, one after the other, before its bounds count as unknown.
const MAX_STEPS: usize = 64;

#[derive(Clone, Copy, PartialEq)]
enum Side {
    Low,
    High,
}

impl Side {
    fn of(self, is_negative: bool) -> Self {
        match (self, is_negative) {
            (side, false) => side,
            (Side::Low, true) => Side::High,
            (Side::High, true) => Side::Low,
        }
    }
}

impl Space {
    /// The least value, in numbers and symbols.
    pub(crate) fn lowest(&self, sum: &Sum) -> Option<Sum> {
        self.extreme(sum, Side::Low, &|_| false)
    }

    /// The greatest value, in numbers and symbols.
    pub(crate) fn highest(&self, sum: &Sum) -> Option<Sum> {
        self.extreme(sum, Side::High, &|_| false)
    }

    /// The least and the greatest value while the nodes that `is_fixed` names stay what they are.
    pub(crate) fn extremes(
        &self,
        sum: &Sum,
        is_fixed: &dyn Fn(AtomId) -> bool,
    ) -> Option<[Sum; 2]> {
        Some([self.extreme(sum, Side::Low, is_fixed)?, self.extreme(sum, Side::High, is_fixed)?])
    }

    /// Whether it is known to be at least zero.
    pub(crate) fn is_natural(&self, sum: &Sum) -> bool {
        if let Some(value) = sum.value() {
            return value >= 0;
        }
        self.lowest(sum).is_some_and(|low| self.is_natural_in_symbols(&low))
    }

    /// Whether both are known to be equal, or `a` to be below `b`.
    pub(crate) fn is_less(&self, a: &Sum, b: &Sum) -> bool {
        self.is_natural(&b.sub(a).add_int(-1))
    }

    /// A sum over symbols, which are at least 1, and quotients of them.
    fn is_natural_in_symbols(&self, sum: &Sum) -> bool {
        let least = |sum: &Sum| {
            let mut total = 0i64;
            for (atoms, coefficient) in sum.terms() {
                let is_positive = atoms.iter().all(|&atom| self.is_positive(atom));
                let at_least_zero = atoms.iter().all(|&atom| self.is_natural_atom(atom));
                match (atoms.is_empty() || is_positive, at_least_zero, *coefficient >= 0) {
                    (true, _, true) => total = total.saturating_add(*coefficient),
                    (_, true, true) => {}
                    _ if atoms.is_empty() => total = total.saturating_add(*coefficient),
                    _ => return false,
                }
            }
            total >= 0
        };
        let smaller = |sum: &Sum| self.without_quotient(sum);
        std::iter::successors(Some(sum.clone()), smaller).take(MAX_STEPS).any(|sum| least(&sum))
    }

    /// A sum that is no larger, with one quotient less. What is added of `x // c` is at least `d // c` times `x // d` where that is taken
    /// away. Else `k * (x // c)` is what it is at least: for the quotient that was made last, since `x` may hold others that then cancel.
    fn without_quotient(&self, sum: &Sum) -> Option<Sum> {
        let quotient = |(atoms, coefficient): &(Product, i64)| match atoms.as_slice() {
            &[atom] => match self.atom(atom) {
                Atom::Div(x, c) => Some((atom, *coefficient, x, c.value()?)),
                _ => None,
            },
            _ => None,
        };
        let quotients: Vec<_> = sum.terms().iter().filter_map(quotient).collect();
        let with = |term: (AtomId, i64), least: &Sum, times: i64| {
            sum.plus(&Sum::atom(term.0), -term.1).plus(least, times)
        };
        for &(fine, added, x, c) in quotients.iter().filter(|it| it.1 > 0) {
            let is_coarser =
                |it: &&(AtomId, i64, &Sum, i64)| it.1 < 0 && it.2 == x && it.3 % c == 0;
            if let Some(&(coarse, _, _, d)) = quotients.iter().find(is_coarser) {
                return Some(with((fine, added), &Sum::atom(coarse), added * (d / c)));
            }
        }
        let whole = quotients.into_iter().filter(|&(_, scale, _, c)| scale % c == 0);
        let (atom, scale, x, c) = whole.max_by_key(|&(atom, ..)| atom)?;
        let least = if scale > 0 { x.add_int(1 - c) } else { x.clone() };
        Some(with((atom, scale), &least, scale / c))
    }

    fn is_positive(&self, atom: AtomId) -> bool {
        match self.atom(atom) {
            Atom::Dim(_) => true,
            Atom::Div(x, c) => self.is_natural_in_symbols(&x.sub(c)),
            Atom::Min(a, b) => {
                [a, b].iter().all(|side| self.is_natural_in_symbols(&side.add_int(-1)))
            }
            Atom::Max(a, b) => {
                [a, b].iter().any(|side| self.is_natural_in_symbols(&side.add_int(-1)))
            }
            _ => false,
        }
    }

    fn is_natural_atom(&self, atom: AtomId) -> bool {
        match self.atom(atom) {
            Atom::Mod(..) => true,
            Atom::Div(x, _) => self.is_natural_in_symbols(x),
            Atom::Min(a, b) => [a, b].iter().all(|side| self.is_natural_in_symbols(side)),
            Atom::Max(a, b) => [a, b].iter().any(|side| self.is_natural_in_symbols(side)),
            Atom::Dim(_) | Atom::Node(_) => self.is_positive(atom),
        }
    }

    fn extreme(&self, sum: &Sum, side: Side, is_fixed: &dyn Fn(AtomId) -> bool) -> Option<Sum> {
        let mut sum = match self.with_numbers(sum, side, is_fixed) {
            Some(bound) => return Some(bound),
            None => sum.clone(),
        };
        for _ in 0..MAX_STEPS {
            let moving = sum.atoms().filter(|&atom| self.moves(atom, is_fixed)).max();
            let Some(atom) = moving else { return Some(sum) };
            let (factor, rest) = sum.linear_in(atom)?;
            let is_negative = match factor.value() {
                Some(value) => value < 0,
                None if self.is_natural_in_symbols(&factor) => false,
                None if self.is_natural_in_symbols(&factor.times(-1)) => true,
                None => return None,
            };
            let bound = self.bound(atom, side.of(is_negative), is_fixed)?;
            sum = factor.mul(&bound)?.add(&rest);
        }
        None
    }

    /// A bound of a sum whose terms that move are numbers times atoms with numbers as bounds, as those of nearly all programs are: none
    /// of them can meet another's. It asks nothing that takes more than one look at each atom.
    fn with_numbers(
        &self,
        sum: &Sum,
        side: Side,
        is_fixed: &dyn Fn(AtomId) -> bool,
    ) -> Option<Sum> {
        let (mut fixed, mut bound) = (SmallVec::<[_; 3]>::new(), 0i64);
        for (atoms, factor) in sum.terms() {
            match atoms.as_slice() {
                [] => bound = bound.wrapping_add(*factor),
                &[atom] if self.moves(atom, is_fixed) => {
                    let value = self.number_of(atom, side.of(*factor < 0), is_fixed)?;
                    bound = bound.wrapping_add(value.wrapping_mul(*factor));
                }
                atoms if atoms.iter().any(|&atom| self.moves(atom, is_fixed)) => return None,
                _ => fixed.push((atoms.clone(), *factor)),
            }
        }
        Some(Sum::of_sorted(fixed).add_int(bound))
    }

    /// The bound of an atom that moves, where that is a number.
    fn number_of(
        &self,
        atom: AtomId,
        side: Side,
        is_fixed: &dyn Fn(AtomId) -> bool,
    ) -> Option<i64> {
        let number = |sum: &Sum| match sum.value() {
            Some(value) => Some(value),
            None => self.with_numbers(sum, side, is_fixed)?.value(),
        };
        Some(match self.atom(atom) {
            Atom::Node(_) => {
                let range = self.range(atom)?;
                let (min, extent) = (range.min.value()?, range.extent.value()?);
                match side {
                    Side::Low => min,
                    Side::High => min.wrapping_add(extent).wrapping_sub(1),
                }
            }
            Atom::Mod(..) if side == Side::Low => 0,
            Atom::Mod(x, c) => {
                let (last, c) = (number(x)?, c.value().filter(|&c| c > 0)?);
                if last >= 0 { last.min(c - 1) } else { c - 1 }
            }
            // Over nothing a program divides by an extent of zero, and never comes by.
            Atom::Div(x, c) => number(x)?.div_euclid(c.value().filter(|&c| c > 0)?),
            Atom::Min(a, b) => number(a)?.min(number(b)?),
            Atom::Max(a, b) => number(a)?.max(number(b)?),
            Atom::Dim(_) => return None,
        })
    }

    /// Whether an atom holds a variable with a range.
    fn moves(&self, atom: AtomId, is_fixed: &dyn Fn(AtomId) -> bool) -> bool {
        self.holds_one(atom, |node| !is_fixed(node))
    }

    fn bound(&self, atom: AtomId, side: Side, is_fixed: &dyn Fn(AtomId) -> bool) -> Option<Sum> {
        match self.atom(atom) {
            Atom::Node(_) => {
                let range = self.range(atom)?;
                Some(match side {
                    Side::Low => range.min.clone(),
                    Side::High => range.min.add(&range.extent).add_int(-1),
                })
            }
            Atom::Mod(x, c) => match side {
                Side::Low => Some(Sum::default()),
                Side::High => {
                    match (self.extreme(x, side, is_fixed).and_then(|x| x.value()), c.value()) {
                        (Some(x), Some(c)) if x >= 0 => Some(Sum::int(x.min(c - 1))),
                        _ => Some(c.add_int(-1)),
                    }
                }
            },
            Atom::Div(_, c) if c.value() == Some(0) => None,
            Atom::Div(x, c) => {
                let x = self.extreme(x, side, is_fixed)?;
                match (x.value(), c.value()) {
                    (Some(x), Some(c)) => Some(Sum::int(x.div_euclid(c))),
                    // Only quotients that are there already: bounds make no atoms.
                    _ => {
                        self.known(&Atom::Div(x.clone(), c.clone())).map(Sum::atom).or_else(|| {
                            let c = c.value()?;
                            let (quotient, rest) = x.divide_terms(&(Product::one(), c));
                            let whole = rest.value().map(|rest| Sum::int(rest.div_euclid(c)));
                            let known = || self.known(&Atom::Div(rest, Sum::int(c)));
                            whole.or_else(|| known().map(Sum::atom)).map(|part| quotient.add(&part))
                        })
                    }
                }
            }
            Atom::Min(a, b) | Atom::Max(a, b) => {
                let is_min = matches!(self.atom(atom), Atom::Min(..));
                let (a, b) = (self.extreme(a, side, is_fixed), self.extreme(b, side, is_fixed));
                match (a, b) {
                    (Some(a), Some(b)) => match (a.value(), b.value()) {
                        (Some(a), Some(b)) if is_min => Some(Sum::int(a.min(b))),
                        (Some(a), Some(b)) => Some(Sum::int(a.max(b))),
                        // Either is a bound on the side to which the choice goes.
                        _ if is_min == (side == Side::High) => Some(a),
                        _ => None,
                    },
                    (Some(a), None) | (None, Some(a)) if is_min == (side == Side::High) => Some(a),
                    _ => None,
                }
            }
            Atom::Dim(_) => Some(Sum::atom(atom)),
        }
    }
}
