//! Index arithmetic over loops, iterators and symbols, in one normal form.
//!
//! A [`Sum`] is a sum of products of atoms with integer coefficients; an atom is a variable, a symbol of a shape, or a
//! quotient or remainder that the ranges do not resolve. Equal sums are equal values, so `n * 128` and `128 * n` are one
//! thing, and fusing loops that were split gives the loop back. A [`Space`] owns the atoms and says what ranges they have.

mod affine;
mod bounds;
mod convert;
mod divide;
mod invert;
mod rejoin;
mod space;
mod sum;

pub(crate) use affine::{Fit, is_injective};
pub(crate) use space::{Atom, AtomId, Range, Space};
pub(crate) use sum::Sum;
