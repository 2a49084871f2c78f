//! Questions about symbolic dimensions.

use std::collections::HashMap;

use super::{Context, Dim, DimView, Terms};

/// Dimensions larger than this are the work of a model that means harm: each step can square their size.
const LARGEST_DIM: usize = 200;

impl Terms<'_> {
    /// Whether a dimension has few enough parts to go on with.
    pub fn is_small_dim(self, dim: Dim) -> bool {
        is_small(self, dim)
    }

    /// A number that a dimension is not below, whatever its symbols stand for: they are not negative.
    pub fn dim_lower_bound(self, dim: Dim) -> Option<i64> {
        let mut budget = LARGEST_DIM;
        bound_within(self, dim, &mut budget)
    }
}

fn is_small(terms: Terms<'_>, dim: Dim) -> bool {
    let mut stack = vec![dim];
    let mut parts = 0;
    while let Some(dim) = stack.pop() {
        parts += 1;
        if parts + stack.len() > LARGEST_DIM {
            return false;
        }
        match terms.dim(dim) {
            DimView::Add(all) | DimView::Mul(all) => stack.extend(all),
            DimView::FloorDiv(a, b)
            | DimView::FloorMod(a, b)
            | DimView::Min(a, b)
            | DimView::Max(a, b) => stack.extend([a, b]),
            DimView::Const(_) | DimView::Symbol(_) | DimView::Unknown(_) => {}
        }
    }
    true
}

/// Looks at no more than `budget` parts, so that neither deep dimensions nor wide ones take long.
fn bound_within(terms: Terms<'_>, dim: Dim, budget: &mut usize) -> Option<i64> {
    *budget = budget.checked_sub(1)?;
    let mut bound = |dim| bound_within(terms, dim, budget);
    match terms.dim(dim) {
        DimView::Const(value) => Some(value),
        DimView::Symbol(_) => Some(0),
        DimView::Add(parts) => {
            parts.iter().try_fold(0i64, |sum, &part| sum.checked_add(bound(part)?))
        }
        DimView::Mul(factors) => factors.iter().try_fold(1i64, |product, &factor| {
            let factor = bound(factor).filter(|&factor| factor >= 0)?;
            product.checked_mul(factor)
        }),
        DimView::FloorDiv(a, b) => {
            match terms.dim_value(b) {
                Some(divisor) if divisor > 0 => Some(bound(a)?.div_euclid(divisor)),
                Some(_) => None,
                // As much as is left of a divisor that may be anything.
                None => (bound(b)? >= 0 && bound(a)? >= 0).then_some(0),
            }
        }
        DimView::FloorMod(_, b) => terms.dim_value(b).filter(|&divisor| divisor > 0).map(|_| 0),
        DimView::Min(a, b) => Some(bound(a)?.min(bound(b)?)),
        DimView::Max(a, b) => match (bound(a), bound(b)) {
            (Some(a), Some(b)) => Some(a.max(b)),
            (one, other) => one.or(other),
        },
        DimView::Unknown(_) => None,
    }
}

/// The quotient of two products, as [`Context::dim_quotient`] has it.
pub(super) fn quotient(
    cx: &(impl Context + ?Sized),
    dividend: &[Dim],
    divisor: &[Dim],
) -> Option<Dim> {
    let (above, over) = factors(cx, dividend)?;
    let (below, under) = factors(cx, divisor)?;
    let mut counts: HashMap<Dim, usize> = HashMap::new();
    above.iter().for_each(|&factor| *counts.entry(factor).or_default() += 1);
    let mut take = |factor: &Dim| match counts.get_mut(factor) {
        Some(count @ 1..) => {
            *count -= 1;
            true
        }
        _ => false,
    };
    let rest: Vec<Dim> = below.into_iter().filter(|factor| !take(factor)).collect();
    let above: Vec<Dim> = above.into_iter().filter(|factor| take(factor)).collect();
    if under == 0 {
        return None;
    }
    let product =
        |number: i64, factors: &[Dim]| cx.dim_product(&[&[cx.dim(number)], factors].concat());
    if over % under == 0 {
        let above = product(over / under, &above);
        return Some(cx.dim_floor_div(above, product(1, &rest)));
    }
    match rest.is_empty() && above.is_empty() {
        true => None,
        false => Some(cx.dim_floor_div(product(over, &above), product(under, &rest))),
    }
}

/// What is multiplied in a product of dimensions: parts that are no numbers, and the number.
fn factors(cx: &(impl Context + ?Sized), dims: &[Dim]) -> Option<(Vec<Dim>, i64)> {
    let terms = cx.terms();
    let (mut found, mut number) = (Vec::new(), 1i64);
    for &dim in dims {
        let parts = match terms.dim(dim) {
            DimView::Mul(parts) => parts,
            _ => &[dim],
        };
        for &part in parts {
            match terms.dim_value(part) {
                Some(value) => number = number.checked_mul(value)?,
                None => found.push(part),
            }
        }
    }
    Some((found, number))
}
