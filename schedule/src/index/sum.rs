//! Sums of products of atoms.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use smallvec::{SmallVec, smallvec};

use super::AtomId;

/// Sums of more terms than this are not multiplied out.
pub(super) const MAX_TERMS: usize = 64;

/// Atoms that are multiplied, in order. Nearly all products have one or two: they are made by the million, so those need no memory of
/// their own, and are copied as they lie.
#[derive(Clone)]
pub(crate) struct Product(Atoms);

#[derive(Clone)]
enum Atoms {
    Few(u8, [AtomId; FEW]),
    Many(Arc<[AtomId]>),
}

const FEW: usize = 3;

impl Product {
    /// The empty product, which is 1.
    pub(crate) fn one() -> Self {
        Self::of(&[])
    }

    /// `atoms` are in order.
    fn of(atoms: &[AtomId]) -> Self {
        if atoms.len() > FEW {
            return Self(Atoms::Many(atoms.into()));
        }
        let mut few = [AtomId::default(); FEW];
        few[..atoms.len()].copy_from_slice(atoms);
        Self(Atoms::Few(atoms.len() as u8, few))
    }

    pub(crate) fn as_slice(&self) -> &[AtomId] {
        match &self.0 {
            Atoms::Few(len, atoms) => &atoms[..usize::from(*len)],
            Atoms::Many(atoms) => atoms,
        }
    }

    /// The product of both.
    pub(super) fn times(&self, other: &Product) -> Product {
        match (self.as_slice(), other.as_slice()) {
            ([], _) => other.clone(),
            (_, []) => self.clone(),
            (a, b) => a.iter().chain(b).copied().collect(),
        }
    }

    /// What is left without the atom at a place.
    pub(super) fn without(&self, place: usize) -> Product {
        let atoms = self.as_slice();
        match atoms {
            [_] => Product::one(),
            _ => atoms[..place].iter().chain(&atoms[place + 1..]).copied().collect(),
        }
    }

    /// The quotient by a product that is a part of it.
    fn over(&self, divisor: &Product) -> Option<Product> {
        let mut left = self.clone();
        for atom in divisor.as_slice() {
            let place = left.as_slice().iter().position(|other| other == atom)?;
            left = left.without(place);
        }
        Some(left)
    }
}

impl std::ops::Deref for Product {
    type Target = [AtomId];

    fn deref(&self) -> &[AtomId] {
        self.as_slice()
    }
}

impl FromIterator<AtomId> for Product {
    fn from_iter<I: IntoIterator<Item = AtomId>>(atoms: I) -> Self {
        let mut atoms: SmallVec<[AtomId; 8]> = atoms.into_iter().collect();
        atoms.sort_unstable();
        Self::of(&atoms)
    }
}

impl PartialEq for Product {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for Product {}

impl PartialOrd for Product {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Product {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_slice().cmp(other.as_slice())
    }
}

impl Hash for Product {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_slice().hash(state);
    }
}

impl fmt::Debug for Product {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_slice().fmt(f)
    }
}

/// A sum of products of atoms with integer coefficients. The terms are sorted by their atoms, none has coefficient zero.
#[derive(Clone, Default, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Sum {
    terms: SmallVec<[(Product, i64); 1]>,
}

impl Sum {
    pub(crate) fn int(value: i64) -> Self {
        Self::product(Product::one(), value)
    }

    pub(crate) fn atom(atom: AtomId) -> Self {
        Self::product(Product::of(&[atom]), 1)
    }

    pub(crate) fn product(atoms: Product, coefficient: i64) -> Self {
        Self {
            terms: if coefficient == 0 { SmallVec::new() } else { smallvec![(atoms, coefficient)] },
        }
    }

    /// Terms as [`Sum::terms`] gives them, without some.
    pub(super) fn of_sorted(terms: impl IntoIterator<Item = (Product, i64)>) -> Self {
        Self { terms: terms.into_iter().collect() }
    }

    /// Terms in any order, of which none has the atoms of another.
    fn of_terms(mut terms: SmallVec<[(Product, i64); 1]>) -> Self {
        terms.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        Self { terms }
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
        let scaled = |(atoms, value): &(Product, i64)| (atoms.clone(), value.wrapping_mul(factor));
        let mut terms = SmallVec::new();
        let mut push = |term: (Product, i64)| {
            if term.1 != 0 {
                terms.push(term);
            }
        };
        let (mut left, mut right) = (self.terms.as_slice(), other.terms.as_slice());
        while let ([a, behind_a @ ..], [b, behind_b @ ..]) = (left, right) {
            match a.0.cmp(&b.0) {
                Ordering::Less => {
                    push(a.clone());
                    left = behind_a;
                }
                Ordering::Greater => {
                    push(scaled(b));
                    right = behind_b;
                }
                Ordering::Equal => {
                    let sum = a.1.wrapping_add(b.1.wrapping_mul(factor));
                    if sum != 0 {
                        push((a.0.clone(), sum));
                    }
                    (left, right) = (behind_a, behind_b);
                }
            }
        }
        left.iter().for_each(|term| push(term.clone()));
        right.iter().for_each(|term| push(scaled(term)));
        Sum { terms }
    }

    pub(crate) fn add(&self, other: &Sum) -> Sum {
        self.plus(other, 1)
    }

    pub(crate) fn sub(&self, other: &Sum) -> Sum {
        self.plus(other, -1)
    }

    pub(crate) fn add_int(&self, value: i64) -> Sum {
        let mut sum = self.clone();
        match sum.terms.first_mut() {
            _ if value == 0 => {}
            Some((atoms, constant)) if atoms.is_empty() => {
                *constant = constant.wrapping_add(value);
                if *constant == 0 {
                    sum.terms.remove(0);
                }
            }
            _ => sum.terms.insert(0, (Product::one(), value)),
        }
        sum
    }

    pub(crate) fn times(&self, factor: i64) -> Sum {
        let mut sum = self.clone();
        sum.terms.retain(|(_, coefficient)| {
            *coefficient = coefficient.wrapping_mul(factor);
            *coefficient != 0
        });
        sum
    }

    /// The product; `None` where it would have too many terms.
    pub(crate) fn mul(&self, other: &Sum) -> Option<Sum> {
        if self.terms.len() * other.terms.len() > MAX_TERMS {
            return None;
        }
        if let Some(factor) = other.value() {
            return Some(self.times(factor));
        }
        let mut product = Sum::default();
        for (atoms, factor) in &self.terms {
            let times = |(others, coefficient): &(Product, i64)| {
                (atoms.times(others), factor.wrapping_mul(*coefficient))
            };
            let part = other.terms.iter().map(times).filter(|(_, coefficient)| *coefficient != 0);
            product = product.add(&Sum::of_terms(part.collect()));
        }
        Some(product)
    }

    /// `self` as `factor * atom + rest`; `None` where the atom occurs in another power.
    pub(crate) fn linear_in(&self, atom: AtomId) -> Option<(Sum, Sum)> {
        let (mut factor, mut rest) = (SmallVec::new(), SmallVec::new());
        for (atoms, coefficient) in &self.terms {
            match atoms.iter().position(|&other| other == atom) {
                None => rest.push((atoms.clone(), *coefficient)),
                Some(place) => {
                    let others = atoms.without(place);
                    if others.contains(&atom) {
                        return None;
                    }
                    factor.push((others, *coefficient));
                }
            }
        }
        Some((Sum::of_terms(factor), Sum { terms: rest }))
    }

    /// The greatest number that divides all coefficients but that of the constant; 0 where there are none.
    pub(crate) fn common_factor(&self) -> i64 {
        let with_atoms = self.terms.iter().filter(|(atoms, _)| !atoms.is_empty());
        with_atoms.fold(0, |factor, (_, coefficient)| gcd(factor, *coefficient))
    }

    /// The quotient by `divisor` of the terms that it divides, and the terms that it does not.
    pub(crate) fn divide_terms(&self, divisor: &(Product, i64)) -> (Sum, Sum) {
        let (mut quotient, mut rest) = (SmallVec::new(), SmallVec::new());
        for (atoms, coefficient) in &self.terms {
            if atoms.is_empty() && divisor.0.is_empty() {
                let parts = (coefficient.div_euclid(divisor.1), coefficient.rem_euclid(divisor.1));
                quotient.extend((parts.0 != 0).then(|| (Product::one(), parts.0)));
                rest.extend((parts.1 != 0).then(|| (Product::one(), parts.1)));
                continue;
            }
            let left = atoms.over(&divisor.0).filter(|_| coefficient % divisor.1 == 0);
            match left {
                Some(left) => quotient.push((left, coefficient / divisor.1)),
                None => rest.push((atoms.clone(), *coefficient)),
            }
        }
        (Sum::of_terms(quotient), Sum { terms: rest })
    }
}

pub(super) fn gcd(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    i64::try_from(a).unwrap_or(1)
}
