//! Sums of products of atoms.

use smallvec::{SmallVec, smallvec};

use super::AtomId;

/// Sums of more terms than this are not multiplied out.
pub(super) const MAX_TERMS: usize = 64;

/// Atoms that are multiplied. Nearly all products have one or two, and sums few of them: they are made by the million, so those need
/// no memory of their own.
pub(crate) type Product = SmallVec<[AtomId; 4]>;

/// A sum of products of atoms with integer coefficients. The terms are sorted by their atoms, none has coefficient zero.
#[derive(Clone, Default, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Sum {
    terms: SmallVec<[(Product, i64); 2]>,
}

impl Sum {
    pub(crate) fn int(value: i64) -> Self {
        Self::product(Product::new(), value)
    }

    pub(crate) fn atom(atom: AtomId) -> Self {
        Self::product(smallvec![atom], 1)
    }

    pub(crate) fn product(mut atoms: Product, coefficient: i64) -> Self {
        atoms.sort();
        Self {
            terms: if coefficient == 0 { SmallVec::new() } else { smallvec![(atoms, coefficient)] },
        }
    }

    pub(crate) fn terms(&self) -> &[(Product, i64)] {
        &self.terms
    }

    /// The value, when it is a constant.
    pub(crate) fn value(&self) -> Option<i64> {
        match self.terms.as_slice() {
            [] => Some(0),
            [(atoms, value)] if atoms.is_empty() => Some(*value),
            _ => None,
        }
    }

    /// The part without atoms.
    pub(crate) fn constant(&self) -> i64 {
        match self.terms.first() {
            Some((atoms, value)) if atoms.is_empty() => *value,
            _ => 0,
        }
    }

    /// The atom that it is.
    pub(crate) fn as_atom(&self) -> Option<AtomId> {
        match self.terms.as_slice() {
            [(atoms, 1)] => match atoms.as_slice() {
                &[atom] => Some(atom),
                _ => None,
            },
            _ => None,
        }
    }

    /// All atoms, with repetitions.
    pub(crate) fn atoms(&self) -> impl Iterator<Item = AtomId> {
        self.terms.iter().flat_map(|(atoms, _)| atoms.iter().copied())
    }

    /// `self + factor * other`; arithmetic that does not fit wraps, as that of the program does.
    pub(crate) fn plus(&self, other: &Sum, factor: i64) -> Sum {
        let mut terms = SmallVec::with_capacity(self.terms.len() + other.terms.len());
        let (mut left, mut right) = (self.terms.iter().peekable(), other.terms.iter().peekable());
        loop {
            let order = match (left.peek(), right.peek()) {
                (None, None) => break,
                (Some(_), None) => std::cmp::Ordering::Less,
                (None, Some(_)) => std::cmp::Ordering::Greater,
                (Some(a), Some(b)) => a.0.cmp(&b.0),
            };
            let mut coefficient = 0i64;
            let mut atoms = None;
            if order.is_le()
                && let Some((key, value)) = left.next()
            {
                coefficient = *value;
                atoms = Some(key);
            }
            if order.is_ge()
                && let Some((key, value)) = right.next()
            {
                coefficient = coefficient.wrapping_add(value.wrapping_mul(factor));
                atoms = Some(key);
            }
            if let Some(atoms) = atoms.filter(|_| coefficient != 0) {
                terms.push((atoms.clone(), coefficient));
            }
        }
        Sum { terms }
    }

    pub(crate) fn add(&self, other: &Sum) -> Sum {
        self.plus(other, 1)
    }

    pub(crate) fn sub(&self, other: &Sum) -> Sum {
        self.plus(other, -1)
    }

    pub(crate) fn add_int(&self, value: i64) -> Sum {
        self.plus(&Sum::int(value), 1)
    }

    pub(crate) fn times(&self, factor: i64) -> Sum {
        Sum::default().plus(self, factor)
    }

    /// The product; `None` where it would have too many terms.
    pub(crate) fn mul(&self, other: &Sum) -> Option<Sum> {
        if self.terms.len() * other.terms.len() > MAX_TERMS {
            return None;
        }
        let mut product = Sum::default();
        for (atoms, factor) in &self.terms {
            for (others, coefficient) in &other.terms {
                let atoms = atoms.iter().chain(others).copied().collect();
                product = product.add(&Sum::product(atoms, factor.wrapping_mul(*coefficient)));
            }
        }
        Some(product)
    }

    /// `self` as `factor * atom + rest`; `None` where the atom occurs in another power.
    pub(crate) fn linear_in(&self, atom: AtomId) -> Option<(Sum, Sum)> {
        let (mut factor, mut rest) = (Sum::default(), Sum::default());
        for (atoms, coefficient) in &self.terms {
            let place = atoms.iter().position(|&other| other == atom);
            let mut others = atoms.clone();
            match place {
                None => rest = rest.add(&Sum::product(others, *coefficient)),
                Some(place) => {
                    others.remove(place);
                    if others.contains(&atom) {
                        return None;
                    }
                    factor = factor.add(&Sum::product(others, *coefficient));
                }
            }
        }
        Some((factor, rest))
    }

    /// The greatest number that divides all coefficients but that of the constant; 0 where there are none.
    pub(crate) fn common_factor(&self) -> i64 {
        let with_atoms = self.terms.iter().filter(|(atoms, _)| !atoms.is_empty());
        with_atoms.fold(0, |factor, (_, coefficient)| gcd(factor, *coefficient))
    }

    /// The quotient by `divisor` of the terms that it divides, and the terms that it does not.
    pub(crate) fn divide_terms(&self, divisor: &(Product, i64)) -> (Sum, Sum) {
        let (mut quotient, mut rest) = (Sum::default(), Sum::default());
        for (atoms, coefficient) in &self.terms {
            if atoms.is_empty() && divisor.0.is_empty() {
                let value = (coefficient.div_euclid(divisor.1), coefficient.rem_euclid(divisor.1));
                quotient = quotient.add_int(value.0);
                rest = rest.add_int(value.1);
                continue;
            }
            let mut left = atoms.clone();
            let is_multiple = coefficient % divisor.1 == 0
                && divisor.0.iter().all(|atom| {
                    left.iter().position(|other| other == atom).map(|at| left.remove(at)).is_some()
                });
            match is_multiple {
                true => quotient = quotient.add(&Sum::product(left, coefficient / divisor.1)),
                false => rest = rest.add(&Sum::product(atoms.clone(), *coefficient)),
            }
        }
        (quotient, rest)
    }
}

pub(super) fn gcd(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    i64::try_from(a).unwrap_or(1)
}
