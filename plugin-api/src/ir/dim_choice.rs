//! Normal form of minima and maxima: of sums in which something cancels with what is chosen from, and of the order of the two.
//!
//! ```text
//! n + max(256 - n, 0)      max(n, 256)
//! n - max(n - 5, 0)        min(n, 5)
//! n - min(n, 5)            max(n - 5, 0)
//! max(256, n)              max(n, 256)
//! ```

use super::dim::{Polynomial, binary};
use crate::ir::{Context, Dim, DimView, TermKind, Terms};

/// Parts of a sum that is looked at.
const MOST_PARTS: usize = 16;

/// A sum with one minimum or maximum in it as one of sums, where these have fewer parts.
pub(super) fn spread(cx: &(impl Context + ?Sized), sum: &Polynomial) -> Option<Dim> {
    if !(2..=MOST_PARTS).contains(&sum.len()) {
        return None;
    }
    let terms = cx.terms();
    let mut choices = sum.parts().filter_map(|(atoms, factor)| match (atoms, factor) {
        (&[atom], 1 | -1) if is_choice(terms, atom) => Some((atom, factor)),
        _ => None,
    });
    let (Some((choice, factor)), None) = (choices.next(), choices.next()) else { return None };
    let (is_min, of) = match terms.dim(choice) {
        DimView::Min(a, b) => (true, [a, b]),
        DimView::Max(a, b) => (false, [a, b]),
        _ => return None,
    };
    // What was made of sums one inside of the other is left alone: nothing says how deep that goes.
    let parts = of.map(|of| Polynomial::of(terms, of));
    if parts.iter().any(|part| part.len() > MOST_PARTS || part.has_choice(terms)) {
        return None;
    }
    let mut rest = sum.clone();
    rest.insert(terms, vec![choice], -factor);
    rest.clean();
    let before = rest.len() + parts.iter().map(Polynomial::len).sum::<usize>();
    let sums = parts.map(|part| {
        let mut sum = rest.clone();
        sum.add_all(terms, &part, factor);
        sum.clean();
        sum
    });
    if sums.iter().map(Polynomial::len).sum::<usize>() >= before {
        return None;
    }
    let [a, b] = sums.map(|sum| sum.build(cx));
    let kind = if is_min == (factor == 1) { TermKind::DIM_MIN } else { TermKind::DIM_MAX };
    Some(binary(cx, kind, a, b))
}

/// The two in the order in which a choice has them: by their text, numbers last.
pub(super) fn in_order(terms: Terms<'_>, a: Dim, b: Dim) -> [Dim; 2] {
    let key = |dim: Dim| (terms.dim_value(dim).is_some(), terms.dim_text(dim), dim.0);
    if key(b) < key(a) { [b, a] } else { [a, b] }
}

fn is_choice(terms: Terms<'_>, dim: Dim) -> bool {
    matches!(terms.dim(dim), DimView::Min(..) | DimView::Max(..))
}

impl Polynomial {
    /// Whether one of its parts is, or is a multiple of, a minimum or a maximum.
    fn has_choice(&self, terms: Terms<'_>) -> bool {
        self.parts().any(|(atoms, _)| atoms.iter().any(|&atom| is_choice(terms, atom)))
    }
}
