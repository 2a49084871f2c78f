//! Symbolic dimension arithmetic: sums of products in a normal form, so that equal polynomials are one
//! term. Other operations fold constants, minima and maxima of what is known to be ordered, and are otherwise kept as they are.
//!
//! ```text
//! (n + 1)*(m + 2)          m*n + 2*n + m + 2
//! (a + b)*(c + d)*…        as it is, where multiplied out it would be beyond all use
//! ```
//!
//! A product of sums grows with each factor by as much as the factor has parts, and one that is multiplied with itself again
//! and again has soon more factors than memory. Beyond a bound a product stays one of sums, or of products. It is told from others
//! by its factors then, so that two equal ones may be two terms; whether they are is no longer known.

use std::collections::BTreeMap;

use crate::ir::{Context, Dim, DimView, Term, TermKind, Terms, dim_choice, dim_division};

/// Factors in all that the parts of a product may have once it is multiplied out.
const LARGEST_PRODUCT: usize = 2048;

/// Factors that a product may have of which some are products.
const MOST_FACTORS: usize = 256;

/// The sum of `coefficient * dimension` over `parts`.
pub(super) fn add(cx: &(impl Context + ?Sized), parts: &[(Dim, i64)]) -> Dim {
    let terms = cx.terms();
    let mut sum = Polynomial::default();
    for &(dim, scale) in parts {
        sum.add(terms, dim, scale);
    }
    let sum = dim_division::rounded(cx, sum);
    dim_choice::spread(cx, &sum).unwrap_or_else(|| sum.build(cx))
}

/// The product of all `parts`.
pub(super) fn mul(cx: &(impl Context + ?Sized), parts: &[Dim]) -> Dim {
    let terms = cx.terms();
    let (factors, coefficient) = factors(cx, parts);
    if let &[factor] = factors.as_slice() {
        return add(cx, &[(factor, coefficient)]);
    }
    let mut product = Polynomial::default();
    if !is_small(terms, &factors) {
        product.insert(terms, factors, coefficient);
        return product.build(cx);
    }
    let is_sum = |factor: &Dim| matches!(terms.dim(*factor), DimView::Add(_));
    let (sums, others) = factors.into_iter().partition::<Vec<Dim>, _>(is_sum);
    product.insert(terms, others, coefficient);
    for sum in sums {
        product = product.times(terms, sum);
    }
    product.build(cx)
}

/// What is multiplied in a product, and the number among it.
fn factors(cx: &(impl Context + ?Sized), parts: &[Dim]) -> (Vec<Dim>, i64) {
    let terms = cx.terms();
    let (mut flat, mut kept, mut coefficient) = (Vec::new(), Vec::new(), 1i64);
    for &part in parts {
        let of_part = match terms.dim(part) {
            DimView::Mul(of_part) => of_part,
            _ => &[part],
        };
        let before = flat.len();
        for &factor in of_part {
            match terms.dim_value(factor) {
                Some(value) => coefficient = coefficient.wrapping_mul(value),
                None => flat.push(factor),
            }
        }
        match &flat[before..] {
            [] => {}
            &[factor] => kept.push(factor),
            own if own.len() == of_part.len() => kept.push(part),
            own => kept.push(product(cx, own)),
        }
    }
    match flat.len() <= MOST_FACTORS || kept.len() == 1 {
        true => (flat, coefficient),
        false => (kept, coefficient),
    }
}

/// Whether a product may be multiplied out.
fn is_small(terms: Terms<'_>, factors: &[Dim]) -> bool {
    let parts = factors.iter().try_fold(1usize, |parts, &factor| match terms.dim(factor) {
        DimView::Add(all) => parts.checked_mul(all.len()),
        _ => Some(parts),
    });
    let size = parts.and_then(|parts| parts.checked_mul(factors.len()));
    parts == Some(1) || size.is_some_and(|size| size <= LARGEST_PRODUCT)
}

/// A division, remainder, minimum or maximum.
pub(super) fn binary(cx: &(impl Context + ?Sized), kind: TermKind, a: Dim, b: Dim) -> Dim {
    let terms = cx.terms();
    let folded = match (kind, terms.dim_value(a), terms.dim_value(b)) {
        (TermKind::DIM_FLOOR_DIV, Some(a), Some(b)) if b != 0 => Some(a.div_euclid(b)),
        (TermKind::DIM_FLOOR_MOD, Some(a), Some(b)) if b != 0 => Some(a.rem_euclid(b)),
        (TermKind::DIM_MIN, Some(a), Some(b)) => Some(a.min(b)),
        (TermKind::DIM_MAX, Some(a), Some(b)) => Some(a.max(b)),
        (TermKind::DIM_FLOOR_DIV, _, Some(1)) => return a,
        (TermKind::DIM_FLOOR_MOD, _, Some(1)) => Some(0),
        (TermKind::DIM_MIN, ..) if let Some((less, _)) = ordered(cx, a, b) => return less,
        (TermKind::DIM_MAX, ..) if let Some((_, more)) = ordered(cx, a, b) => return more,
        (TermKind::DIM_FLOOR_DIV, _, Some(by @ 2..)) => return dim_division::quotient(cx, a, by),
        (TermKind::DIM_FLOOR_MOD, _, Some(by @ 2..)) => return dim_division::remainder(cx, a, by),
        (TermKind::DIM_FLOOR_DIV, ..) if a == b => Some(1),
        (TermKind::DIM_FLOOR_MOD, ..) if a == b => Some(0),
        _ => None,
    };
    match folded {
        Some(value) => cx.dim(value),
        None => {
            let is_choice = matches!(kind, TermKind::DIM_MIN | TermKind::DIM_MAX);
            let [a, b] = if is_choice { dim_choice::in_order(terms, a, b) } else { [a, b] };
            Dim(cx.intern(kind, 0, 0, &[a.into(), b.into()]).0)
        }
    }
}

/// The two with the one in front that is never more than the other, if one is known to be: `(n, n + 1)`, `(0, n)`,
/// `(min(n, m), n)`.
fn ordered(cx: &(impl Context + ?Sized), a: Dim, b: Dim) -> Option<(Dim, Dim)> {
    let terms = cx.terms();
    let is_no_more = |a: Dim, b: Dim| {
        let is_part = match (terms.dim(a), terms.dim(b)) {
            (DimView::Min(x, y), _) if [x, y].contains(&b) => true,
            (_, DimView::Max(x, y)) => [x, y].contains(&a),
            // What formats write for "all": there is none larger.
            (_, DimView::Const(i64::MAX)) => true,
            _ => false,
        };
        is_part || terms.dim_lower_bound(add(cx, &[(b, 1), (a, -1)])).is_some_and(|room| room >= 0)
    };
    match (a == b || is_no_more(a, b), is_no_more(b, a)) {
        (true, _) => Some((a, b)),
        (_, true) => Some((b, a)),
        _ => None,
    }
}

/// A sum of monomials with their coefficients. They are sorted by their text, so that the order does not depend
/// on term numbers; the numbers tell those apart whose text is cut.
#[derive(Clone, Default)]
pub(super) struct Polynomial {
    monomials: BTreeMap<(String, Vec<Dim>), i64>,
}

impl Polynomial {
    /// That of a dimension.
    pub(super) fn of(terms: Terms<'_>, dim: Dim) -> Self {
        let mut sum = Self::default();
        sum.add(terms, dim, 1);
        sum
    }

    /// How many parts it has.
    pub(super) fn len(&self) -> usize {
        self.monomials.len()
    }

    /// What is multiplied in each part, nothing of the number, and by what.
    pub(super) fn parts(&self) -> impl Iterator<Item = (&[Dim], i64)> {
        self.monomials.iter().map(|((_, atoms), &factor)| (atoms.as_slice(), factor))
    }

    /// Takes away parts that are 0.
    pub(super) fn clean(&mut self) {
        self.monomials.retain(|_, &mut factor| factor != 0);
    }

    /// The number in it.
    pub(super) fn constant(&self) -> i64 {
        self.parts().find(|(atoms, _)| atoms.is_empty()).map_or(0, |(_, value)| value)
    }

    /// The number that it is.
    pub(super) fn constant_alone(&self) -> Option<i64> {
        self.parts().all(|(atoms, _)| atoms.is_empty()).then(|| self.constant())
    }

    /// By what these are multiplied in it.
    pub(super) fn factor_of(&self, terms: Terms<'_>, atoms: &[Dim]) -> i64 {
        let key = Self::key(terms, atoms.to_vec());
        self.monomials.get(&key).copied().unwrap_or(0)
    }

    /// What divides a number and the factors of all parts but the number.
    pub(super) fn common_factor(&self, number: i64) -> i64 {
        let factors = self.parts().filter(|(atoms, _)| !atoms.is_empty());
        factors.fold(number, |common, (_, factor)| gcd(common, factor))
    }

    /// Each part divided by a common factor, and the number rounded down.
    pub(super) fn divided_by(&self, terms: Terms<'_>, by: i64) -> Self {
        let mut result = Self::default();
        self.parts().for_each(|(atoms, factor)| {
            result.insert(terms, atoms.to_vec(), factor.div_euclid(by));
        });
        result
    }

    /// What it is a quotient of and by which number, where there is nothing else in it but a number.
    pub(super) fn quotient_alone(&self, terms: Terms<'_>) -> Option<(Dim, i64)> {
        let mut parts = self.parts().filter(|(atoms, _)| !atoms.is_empty());
        let (Some((&[atom], 1)), None) = (parts.next(), parts.next()) else { return None };
        match terms.dim(atom) {
            DimView::FloorDiv(a, b) => terms.dim_value(b).filter(|&by| by > 1).map(|by| (a, by)),
            _ => None,
        }
    }

    /// The remainders by numbers in it, and by what they are multiplied.
    pub(super) fn remainders(&self, terms: Terms<'_>) -> impl Iterator<Item = (Dim, i64)> {
        self.parts().filter_map(move |(atoms, factor)| match atoms {
            &[atom] if dim_division::remainder_of(terms, atom).is_some() => Some((atom, factor)),
            _ => None,
        })
    }

    /// Adds a sum, `scale` times.
    pub(super) fn add_all(&mut self, terms: Terms<'_>, other: &Self, scale: i64) {
        other.parts().for_each(|(atoms, factor)| {
            self.insert(terms, atoms.to_vec(), factor.wrapping_mul(scale));
        });
    }

    pub(super) fn add(&mut self, terms: Terms<'_>, dim: Dim, scale: i64) {
        match terms.dim(dim) {
            DimView::Const(value) => self.insert(terms, Vec::new(), value.wrapping_mul(scale)),
            DimView::Add(parts) => {
                parts.iter().for_each(|&part| self.add_product(terms, part, scale))
            }
            _ => self.add_product(terms, dim, scale),
        }
    }

    fn add_product(&mut self, terms: Terms<'_>, dim: Dim, scale: i64) {
        match terms.dim(dim) {
            DimView::Const(value) => self.insert(terms, Vec::new(), value.wrapping_mul(scale)),
            DimView::Mul(factors) => {
                let mut coefficient = scale;
                let mut atoms = Vec::with_capacity(factors.len());
                for &factor in factors {
                    match terms.dim_value(factor) {
                        Some(value) => coefficient = coefficient.wrapping_mul(value),
                        None => atoms.push(factor),
                    }
                }
                self.insert(terms, atoms, coefficient);
            }
            _ => self.insert(terms, vec![dim], scale),
        }
    }

    fn times(&self, terms: Terms<'_>, sum: Dim) -> Self {
        let (mut right, mut product) = (Self::default(), Self::default());
        right.add(terms, sum, 1);
        for ((_, atoms_a), coefficient_a) in &self.monomials {
            for ((_, atoms_b), coefficient_b) in &right.monomials {
                let atoms = atoms_a.iter().chain(atoms_b).copied().collect();
                product.insert(terms, atoms, coefficient_a.wrapping_mul(*coefficient_b));
            }
        }
        product
    }

    pub(super) fn insert(&mut self, terms: Terms<'_>, atoms: Vec<Dim>, coefficient: i64) {
        let sum = self.monomials.entry(Self::key(terms, atoms)).or_insert(0);
        *sum = sum.wrapping_add(coefficient);
    }

    fn key(terms: Terms<'_>, mut atoms: Vec<Dim>) -> (String, Vec<Dim>) {
        if let &[atom] = atoms.as_slice()
            && let DimView::Mul(factors) = terms.dim(atom)
        {
            atoms = factors.to_vec();
        }
        atoms.sort_by_cached_key(|&atom| (terms.dim_text(atom), atom.0));
        let names: Vec<String> = atoms.iter().map(|&atom| terms.dim_text(atom)).collect();
        // Constants come last: "~" sorts after every name.
        let text = if names.is_empty() { "~".to_owned() } else { names.join("*") };
        (text, atoms)
    }

    pub(super) fn build(self, cx: &(impl Context + ?Sized)) -> Dim {
        let mut parts = Vec::new();
        for ((_, atoms), coefficient) in self.monomials {
            match (coefficient, atoms.as_slice()) {
                (0, _) => {}
                (value, []) => parts.push(cx.dim(value)),
                (1, &[atom]) => parts.push(atom),
                (1, atoms) => parts.push(product(cx, atoms)),
                (value, atoms) => {
                    let factors: Vec<Dim> =
                        [cx.dim(value)].into_iter().chain(atoms.iter().copied()).collect();
                    parts.push(product(cx, &factors));
                }
            }
        }
        match parts.as_slice() {
            [] => cx.dim(0),
            &[part] => part,
            parts => {
                let parts: Vec<Term> = parts.iter().map(|&part| part.into()).collect();
                Dim(cx.intern(TermKind::DIM_ADD, 0, 0, &parts).0)
            }
        }
    }
}

fn gcd(mut a: i64, mut b: i64) -> i64 {
    while b != 0 {
        (a, b) = (b, a.wrapping_rem(b));
    }
    a.wrapping_abs()
}

fn product(cx: &(impl Context + ?Sized), factors: &[Dim]) -> Dim {
    let factors: Vec<Term> = factors.iter().map(|&factor| factor.into()).collect();
    Dim(cx.intern(TermKind::DIM_MUL, 0, 0, &factors).0)
}
