//! Maps from loops to iterators: whether they take each value once.
//!
//! A binding is *affine* when it is a sum of pieces of loops, each the digits of a loop's variable in a mixed radix, that fit
//! together without gap and overlap: `i0 * 16 + i1` with `i1 in 0..16`, or `f // 128` and `f % 128` of one loop. Several
//! bindings are independent when no piece is used twice.

use super::sum::Product;
use super::{Atom, AtomId, Space, Sum};

/// Digits of what `base` is: `base // lower % extent`.
#[derive(Clone, PartialEq, Debug)]
struct Piece {
    base: AtomId,
    lower: Sum,
    extent: Sum,
}

/// How the pieces of a binding fit together.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fit {
    /// One begins where the other ends: values from the least to the greatest are taken once each.
    Exact,
    /// They may overlap: a value may be taken several times.
    Overlap,
    /// There may be gaps between them: a value is taken once or not at all, as by the first part of each of several rows.
    Gaps,
}

/// What affine bindings cover.
#[derive(Clone, Debug)]
pub(crate) struct Coverage {
    /// The number of values that each binding takes, from its least on.
    pub(crate) extents: Vec<Sum>,
}

impl Space {
    /// What bindings cover, when they are affine in the variables `vars`, whose ranges are known; other nodes are constants.
    /// `None` when they are not.
    pub(crate) fn coverage(&mut self, bindings: &[Sum], vars: &[AtomId]) -> Option<Coverage> {
        self.coverage_with(bindings, vars, Fit::Exact)
    }

    /// As [`Space::coverage`], where pieces of a binding may fit less well.
    pub(crate) fn coverage_with(
        &mut self,
        bindings: &[Sum],
        vars: &[AtomId],
        fit: Fit,
    ) -> Option<Coverage> {
        let mut pieces: Vec<Piece> = Vec::new();
        let mut extents = Vec::new();
        for binding in bindings {
            let (own, extent) = self.pieces_of(binding, vars, fit)?;
            pieces.extend(own);
            extents.push(extent);
        }
        let is_apart = |(at, piece): (usize, &Piece)| {
            pieces[..at].iter().all(|other| {
                other.base != piece.base
                    || self.are_apart(other, piece)
                    || self.are_apart(piece, other)
            })
        };
        pieces.iter().enumerate().all(is_apart).then_some(Coverage { extents })
    }

    /// Whether the digits of `low` end where those of `high` begin, or before.
    fn are_apart(&self, low: &Piece, high: &Piece) -> bool {
        low.lower.mul(&low.extent).is_some_and(|end| self.is_natural(&high.lower.sub(&end)))
    }

    /// The pieces of a binding, and how many values it takes.
    fn pieces_of(&mut self, binding: &Sum, vars: &[AtomId], fit: Fit) -> Option<(Vec<Piece>, Sum)> {
        let mut open: Vec<(Sum, Piece)> = Vec::new();
        for (atoms, coefficient) in binding.terms() {
            let moving: Vec<AtomId> =
                atoms.iter().copied().filter(|&atom| self.moves_with(atom, vars)).collect();
            match moving.as_slice() {
                [] => {}
                &[atom] => {
                    let others: Product =
                        atoms.iter().copied().filter(|other| *other != atom).collect();
                    if others.len() + 1 != atoms.len() || *coefficient <= 0 {
                        return None;
                    }
                    let piece = self.piece(atom, vars)?;
                    if piece.extent.value() != Some(1) {
                        open.push((Sum::product(others, *coefficient), piece));
                    }
                }
                _ => return None,
            }
        }
        let mut extent = Sum::int(1);
        let mut pieces = Vec::new();
        while !open.is_empty() {
            let fits = open.iter().position(|(scale, _)| *scale == extent);
            let next = fits.or_else(|| self.next_of(&open, &extent, fit))?;
            let (scale, piece) = open.swap_remove(next);
            extent = extent.add(&scale.mul(&piece.extent.add_int(-1))?);
            pieces.push(piece);
        }
        Some((pieces, extent))
    }

    /// The piece that comes behind the first `extent` values, where none begins at their end.
    fn next_of(&self, open: &[(Sum, Piece)], extent: &Sum, fit: Fit) -> Option<usize> {
        match fit {
            Fit::Exact => None,
            Fit::Overlap => open.iter().position(|(scale, _)| self.is_less(scale, extent)),
            Fit::Gaps => {
                let is_next = |at: &usize| {
                    let is_least = |(scale, _): &(Sum, Piece)| !self.is_less(scale, &open[*at].0);
                    self.is_less(extent, &open[*at].0) && open.iter().all(is_least)
                };
                (0..open.len()).find(is_next)
            }
        }
    }

    fn piece(&mut self, atom: AtomId, vars: &[AtomId]) -> Option<Piece> {
        match self.atom(atom).clone() {
            Atom::Node(_) => {
                let range = self.range(atom)?;
                Some(Piece { base: atom, lower: Sum::int(1), extent: range.extent.clone() })
            }
            Atom::Div(inner, by) => {
                let inner = self.piece_of_sum(&inner, vars)?;
                let lower = inner.lower.mul(&by)?;
                let extent = self.ceil_div(&inner.extent, &by);
                Some(Piece { lower, extent, ..inner })
            }
            Atom::Mod(inner, by) => {
                let inner = self.piece_of_sum(&inner, vars)?;
                // A remainder that is cut off in its last round does not take each value equally often.
                (self.modulo(&inner.extent, &by).value() == Some(0)).then_some(())?;
                Some(Piece { extent: by, ..inner })
            }
            _ => None,
        }
    }

    fn piece_of_sum(&mut self, sum: &Sum, vars: &[AtomId]) -> Option<Piece> {
        match sum.as_atom() {
            Some(atom) => self.piece(atom, vars),
            None => None,
        }
    }

    fn moves_with(&self, atom: AtomId, vars: &[AtomId]) -> bool {
        self.holds_one(atom, |node| vars.contains(&node))
    }
}

/// Whether a map takes different values to different ones: each output its own piece of the inputs, and all inputs used up.
pub(crate) fn is_injective(space: &mut Space, outputs: &[Sum], inputs: &[AtomId]) -> bool {
    let total = |extents: Vec<Sum>| {
        extents.iter().try_fold(Sum::int(1), |product, extent| product.mul(extent))
    };
    let Some(coverage) = space.coverage(outputs, inputs) else { return false };
    let all: Option<Vec<Sum>> =
        inputs.iter().map(|&id| space.range(id).map(|range| range.extent.clone())).collect();
    let Some(all) = all else { return false };
    let (covered, wanted) = (total(coverage.extents), total(all));
    matches!((covered, wanted), (Some(covered), Some(wanted)) if space.is_natural(&covered.sub(&wanted)))
}
