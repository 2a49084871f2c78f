//! Symbolic dimension arithmetic: sums of products in a normal form, so that equal polynomials are one
//! term. Other operations fold constants and are otherwise kept as they are.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::type_text::{LONGEST_TEXT, cut};
use crate::ir::{Context, Dim, DimView, Term, TermKind, Terms};

/// The sum of `coefficient * dimension` over `parts`.
pub(super) fn add(cx: &(impl Context + ?Sized), parts: &[(Dim, i64)]) -> Dim {
    let terms = cx.terms();
    let mut sum = Polynomial::default();
    for &(dim, scale) in parts {
        sum.add(terms, dim, scale);
    }
    sum.build(cx)
}

/// The product of two dimensions.
pub(super) fn mul(cx: &(impl Context + ?Sized), a: Dim, b: Dim) -> Dim {
    let terms = cx.terms();
    let (mut left, mut right) = (Polynomial::default(), Polynomial::default());
    left.add(terms, a, 1);
    right.add(terms, b, 1);
    let mut product = Polynomial::default();
    for ((_, atoms_a), coefficient_a) in &left.monomials {
        for ((_, atoms_b), coefficient_b) in &right.monomials {
            let atoms = atoms_a.iter().chain(atoms_b).copied().collect();
            product.insert(terms, atoms, coefficient_a.wrapping_mul(*coefficient_b));
        }
    }
    product.build(cx)
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
        (TermKind::DIM_MIN | TermKind::DIM_MAX, ..) if a == b => return a,
        (TermKind::DIM_FLOOR_DIV, ..) if a == b => Some(1),
        (TermKind::DIM_FLOOR_MOD, ..) if a == b => Some(0),
        _ => None,
    };
    match folded {
        Some(value) => cx.dim(value),
        None => Dim(cx.intern(kind, 0, 0, &[a.into(), b.into()]).0),
    }
}

/// A sum of monomials with their coefficients. They are sorted by their text, so that the order does not depend
/// on term numbers; the numbers tell those apart whose text is cut.
#[derive(Default)]
struct Polynomial {
    monomials: BTreeMap<(String, Vec<Dim>), i64>,
}

impl Polynomial {
    fn add(&mut self, terms: Terms<'_>, dim: Dim, scale: i64) {
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

    fn insert(&mut self, terms: Terms<'_>, mut atoms: Vec<Dim>, coefficient: i64) {
        atoms.sort_by_cached_key(|&atom| (terms.dim_text(atom), atom.0));
        let names: Vec<String> = atoms.iter().map(|&atom| terms.dim_text(atom)).collect();
        // Constants come last: "~" sorts after every name.
        let text = if names.is_empty() { "~".to_owned() } else { names.join("*") };
        let sum = self.monomials.entry((text, atoms)).or_insert(0);
        *sum = sum.wrapping_add(coefficient);
    }

    fn build(self, cx: &(impl Context + ?Sized)) -> Dim {
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

fn product(cx: &(impl Context + ?Sized), factors: &[Dim]) -> Dim {
    let factors: Vec<Term> = factors.iter().map(|&factor| factor.into()).collect();
    Dim(cx.intern(TermKind::DIM_MUL, 0, 0, &factors).0)
}

impl Terms<'_> {
    /// The text form of a dimension: `4*n + 1`, `floordiv(n - 1, 2) + 1`. For messages: a long one is cut,
    /// and ends in `…`. Does not recurse.
    pub fn dim_text(self, dim: Dim) -> String {
        enum Step {
            Dim(Dim, bool),
            Text(&'static str),
        }
        let mut out = String::new();
        let mut stack = vec![Step::Dim(dim, false)];
        while let Some(step) = stack.pop() {
            if out.len() > LONGEST_TEXT {
                break;
            }
            let (dim, is_factor) = match step {
                Step::Text(text) => {
                    out.push_str(text);
                    continue;
                }
                Step::Dim(dim, is_factor) => (dim, is_factor),
            };
            let mut call = |name: &'static str, a: Dim, b: Dim| {
                out.push_str(name);
                stack.extend([
                    Step::Text(")"),
                    Step::Dim(b, false),
                    Step::Text(", "),
                    Step::Dim(a, false),
                ]);
            };
            match self.dim(dim) {
                DimView::Const(value) => write!(out, "{value}").expect("a string takes all"),
                DimView::Symbol(name) => out.push_str(self.str(name)),
                DimView::Add(parts) => {
                    if is_factor {
                        out.push('(');
                        stack.push(Step::Text(")"));
                    }
                    for (i, &part) in parts.iter().enumerate().rev() {
                        stack.push(Step::Dim(part, false));
                        if i > 0 {
                            stack.push(Step::Text(" + "));
                        }
                    }
                }
                DimView::Mul(factors) => {
                    for (i, &factor) in factors.iter().enumerate().rev() {
                        stack.push(Step::Dim(factor, true));
                        if i > 0 {
                            stack.push(Step::Text("*"));
                        }
                    }
                }
                DimView::FloorDiv(a, b) => call("floordiv(", a, b),
                DimView::FloorMod(a, b) => call("floormod(", a, b),
                DimView::Min(a, b) => call("min(", a, b),
                DimView::Max(a, b) => call("max(", a, b),
                DimView::Unknown(kind) => {
                    write!(out, "unknown<{}>", kind.0).expect("a string takes all");
                }
            }
        }
        cut(out)
    }
}
