//! Normal forms of quotients and remainders by a number, so that sizes which are computed in several ways are one term.
//!
//! ```text
//! floordiv(n - 10, 5)                  floordiv(n, 5) - 2
//! floordiv(2*n + 1, 4)                 floordiv(n, 2)
//! floordiv(floordiv(n, 4) + 1, 2)      floordiv(n + 4, 8)
//! floormod(7 - floormod(n, 7), 7)      floormod(-1*n, 7)
//! n + floormod(-1*n, 7)                7*floordiv(n + 6, 7)
//! ```
//!
//! Quotients are rounded down and remainders are not negative: divisors are larger than 0 here. A sum of very many parts stays as
//! it is.

use crate::ir::{Context, Dim, DimView, Term, TermKind, Terms};

use super::dim::Polynomial;

/// Parts of a sum that is looked at.
const MOST_PARTS: usize = 16;

/// `a` divided by `divisor`, which is more than 1, rounded down.
pub(super) fn quotient(cx: &(impl Context + ?Sized), a: Dim, divisor: i64) -> Dim {
    let as_it_is = || binary(cx, TermKind::DIM_FLOOR_DIV, a, divisor);
    divided(cx, Polynomial::of(cx.terms(), a), divisor).unwrap_or_else(as_it_is)
}

/// What is left of `a` when it is divided by `divisor`, which is more than 1.
pub(super) fn remainder(cx: &(impl Context + ?Sized), a: Dim, divisor: i64) -> Dim {
    let rest = reduced(cx.terms(), Polynomial::of(cx.terms(), a), divisor);
    match rest {
        Some(rest) => match rest.constant_alone() {
            Some(value) => cx.dim(value),
            None => binary(cx, TermKind::DIM_FLOOR_MOD, rest.build(cx), divisor),
        },
        None => binary(cx, TermKind::DIM_FLOOR_MOD, a, divisor),
    }
}

/// A sum in which a number and how much it lacks to a multiple of another one have become that multiple.
pub(super) fn rounded(cx: &(impl Context + ?Sized), mut sum: Polynomial) -> Polynomial {
    sum.clean();
    // Each step takes a remainder away.
    while sum.len() <= MOST_PARTS {
        let remainders: Vec<(Dim, i64)> = sum.remainders(cx.terms()).collect();
        let next = remainders.into_iter().find_map(|of| multiple(cx, &sum, of));
        match next {
            Some(next) => sum = next,
            None => break,
        }
    }
    sum
}

fn binary(cx: &(impl Context + ?Sized), kind: TermKind, a: Dim, divisor: i64) -> Dim {
    Dim(cx.intern(kind, 0, 0, &[a.into(), Term(cx.dim(divisor).0)]).0)
}

/// A sum divided by a number. Multiples of this come before the division, a division within becomes one with it, and what
/// all parts have in common with it is cancelled.
fn divided(cx: &(impl Context + ?Sized), mut sum: Polynomial, mut divisor: i64) -> Option<Dim> {
    let terms = cx.terms();
    let mut whole = Polynomial::default();
    loop {
        if sum.len() > MOST_PARTS {
            return None;
        }
        let mut rest = Polynomial::default();
        for (atoms, factor) in sum.parts() {
            let (times, left) = match atoms {
                [] => (factor.div_euclid(divisor), factor.rem_euclid(divisor)),
                _ if factor % divisor == 0 => (factor / divisor, 0),
                _ => (0, factor),
            };
            whole.insert(terms, atoms.to_vec(), times);
            rest.insert(terms, atoms.to_vec(), left);
        }
        rest.clean();
        let constant = rest.constant();
        if rest.constant_alone().is_some() {
            return Some(whole.build(cx));
        }
        let common = rest.common_factor(divisor);
        if common > 1 {
            sum = rest.divided_by(terms, common);
            divisor /= common;
            if divisor == 1 {
                whole.add_all(terms, &sum, 1);
                return Some(whole.build(cx));
            }
            continue;
        }
        if let Some((inner, by)) = rest.quotient_alone(terms) {
            sum = Polynomial::of(terms, inner);
            sum.insert(terms, Vec::new(), constant.checked_mul(by)?);
            divisor = divisor.checked_mul(by)?;
            continue;
        }
        let quotient = binary(cx, TermKind::DIM_FLOOR_DIV, rest.build(cx), divisor);
        whole.insert(terms, vec![quotient], 1);
        return Some(whole.build(cx));
    }
}

/// A sum without what is a multiple of `divisor`: factors are between half of it below and above zero, and remainders within are what
/// they are remainders of. None where it has too many parts.
fn reduced(terms: Terms<'_>, mut sum: Polynomial, divisor: i64) -> Option<Polynomial> {
    loop {
        if sum.len() > MOST_PARTS {
            return None;
        }
        let (mut rest, mut is_done) = (Polynomial::default(), true);
        for (atoms, factor) in sum.parts() {
            let factor = factor.rem_euclid(divisor);
            let factor = match atoms {
                [] => factor,
                _ if factor > divisor / 2 => factor - divisor,
                _ => factor,
            };
            match atoms {
                &[atom]
                    if let Some((inner, by)) = remainder_of(terms, atom)
                        && by % divisor == 0 =>
                {
                    rest.add(terms, inner, factor);
                    is_done = false;
                }
                _ => rest.insert(terms, atoms.to_vec(), factor),
            }
        }
        rest.clean();
        if is_done {
            return Some(rest);
        }
        sum = rest;
    }
}

/// What a remainder is one of, and by which number.
pub(super) fn remainder_of(terms: Terms<'_>, dim: Dim) -> Option<(Dim, i64)> {
    match terms.dim(dim) {
        DimView::FloorMod(a, b) => terms.dim_value(b).filter(|&by| by > 1).map(|by| (a, by)),
        _ => None,
    }
}

/// The sum `scale*x + scale*floormod(e, c) + …`, where `e` is `-x` but for multiples of `c` and a number: a multiple of `c` is in
/// the place of both.
fn multiple(
    cx: &(impl Context + ?Sized),
    sum: &Polynomial,
    (atom, scale): (Dim, i64),
) -> Option<Polynomial> {
    let terms = cx.terms();
    let (inner, by) = remainder_of(terms, atom)?;
    let inner = Polynomial::of(terms, inner);
    if inner.len() > MOST_PARTS || scale == i64::MIN {
        return None;
    }
    let (mut x, mut rest) = (Polynomial::default(), sum.clone());
    rest.insert(terms, vec![atom], -scale);
    for (atoms, factor) in inner.parts().filter(|(atoms, _)| !atoms.is_empty()) {
        let own = sum.factor_of(terms, atoms);
        let times = own / scale;
        if own % scale != 0 || times.checked_add(factor)? % by != 0 {
            return None;
        }
        x.insert(terms, atoms.to_vec(), times);
        rest.insert(terms, atoms.to_vec(), -own);
    }
    let offset = inner.constant();
    rest.insert(terms, Vec::new(), scale.checked_mul(offset)?);
    let mut up = Polynomial::default();
    let quotient = match scale > 0 {
        true => {
            up.add_all(terms, &x, 1);
            up.insert(terms, Vec::new(), by - 1 - offset);
            divided(cx, up, by)?
        }
        // Of the other sign: what is above a multiple is taken away.
        false => {
            up.add_all(terms, &x, -1);
            up.insert(terms, Vec::new(), offset);
            divided(cx, up, by)?
        }
    };
    rest.add(terms, quotient, scale.checked_abs()?.checked_mul(by)?);
    rest.clean();
    Some(rest)
}
