//! Programs that do nothing but copy parts of a tensor, or tensors to parts of one.

use std::collections::HashMap;
use std::ops::Range;

use tenon_plugin_api::ir::Args;
use tenon_plugin_api::prelude::*;

use crate::index::{Indices, is_plain, strides};
use crate::inplace_update::program::Uses;

/// A tensor that a program copies from a part of another one, or to it.
#[derive(Clone, Copy)]
pub(super) struct Part {
    /// The numbers of the parameters.
    pub(super) part: usize,
    pub(super) whole: usize,
    /// Bytes before it.
    pub(super) offset: i64,
}

/// What a program copies.
#[derive(Clone)]
pub(super) enum Moves {
    /// Each of its results is a part of an argument.
    Apart(Vec<Part>),
    /// All of its arguments lie one behind the other in its only result.
    Together(Vec<Part>),
}

/// What a program copies, where it does nothing else.
pub(super) fn moves(body: BodyView<'_>) -> Option<Moves> {
    let View::PrimFunc { params, outputs, .. } = body.view(body.root()) else { return None };
    let inputs = params.len() - outputs;
    let is_empty = |param| elements(body, param).is_none_or(|count| count == 0);
    if !is_plain(body) || params.iter().any(is_empty) {
        return None;
    }
    let copies = copies(body, params)?;
    let numbers: HashMap<Expr, usize> = params.iter().zip(0..).collect();
    // Those of which all of a tensor is copied, each with what that is a part of.
    let parts = |of: fn(&Copied) -> (Expr, Expr, i64)| -> Option<Vec<Part>> {
        let part = |copied| {
            let (part, whole, offset) = of(copied);
            let is_all = elements(body, part) == Some(copied.steps) && offset >= 0;
            let [part, whole] = [part, whole].map(|param| numbers.get(&param).copied());
            is_all.then_some(Part { part: part?, whole: whole?, offset })
        };
        copies.iter().map(part).collect()
    };
    let apart = parts(|copied| (copied.to, copied.from, -copied.distance));
    if let Some(parts) = apart
        && parts.iter().all(|part| part.whole < inputs)
        && is_each_once(&parts, inputs..params.len())
    {
        return Some(Moves::Apart(parts));
    }
    let together = parts(|copied| (copied.from, copied.to, copied.distance))?;
    let is_all = outputs == 1
        && inputs > 1
        && is_each_once(&together, 0..inputs)
        && is_behind_each_other(body, &params.to_vec(), &together);
    is_all.then_some(Moves::Together(together))
}

/// Whether these parameters are parts, and no others.
fn is_each_once(parts: &[Part], numbers: Range<usize>) -> bool {
    let mut found: Vec<usize> = parts.iter().map(|part| part.part).collect();
    found.sort_unstable();
    found.into_iter().eq(numbers)
}

/// Whether parts fill all of what they are parts of, and have nothing in common.
fn is_behind_each_other(body: BodyView<'_>, params: &[Expr], parts: &[Part]) -> bool {
    let mut parts = parts.to_vec();
    parts.sort_unstable_by_key(|part| part.offset);
    let end = parts.iter().try_fold(0i64, |end, part| {
        (part.offset == end).then_some(end.checked_add(bytes(body, params[part.part])?)?)
    });
    end.is_some() && end == params.last().and_then(|&out| bytes(body, out))
}

/// The stores of a program, where each stores what it loads.
fn copies(body: BodyView<'_>, params: Args<'_>) -> Option<Vec<Copied>> {
    let stores: Vec<Expr> =
        body.post_order().filter(|&expr| body.kind(expr) == Kind::STORE).collect();
    let is_copy = |&store: &Expr| match body.view(store) {
        View::Store { value, .. } => body.kind(value) == Kind::LOAD,
        _ => false,
    };
    if !stores.iter().all(is_copy) {
        return None;
    }
    let (uses, mut indices) = (Uses::of(body, params), Indices::of(body)?);
    stores.into_iter().map(|store| copied(body, &uses, &mut indices, store)).collect()
}

/// One store of what is loaded, each element so many bytes farther than where it comes from.
struct Copied {
    from: Expr,
    to: Expr,
    distance: i64,
    /// How many elements it copies, no place of which is another's.
    steps: i64,
}

fn copied(body: BodyView<'_>, uses: &Uses, indices: &mut Indices, store: Expr) -> Option<Copied> {
    let View::Store { buffer: to, value, indices: at } = body.view(store) else { return None };
    let View::Load { buffer: from, indices: read_at } = body.view(value) else { return None };
    let terms = body.terms();
    let ((dtype, dims), (read_dtype, read_dims)) =
        (terms.tensor(body.ty(to)?)?, terms.tensor(body.ty(from)?)?);
    if dtype != read_dtype || !dtype.bits().is_multiple_of(8) {
        return None;
    }
    let place = indices.place(at, &strides(terms, dims)?)?;
    let read_place = indices.place(read_at, &strides(terms, read_dims)?)?;
    let distance = place.plus(&read_place, -1)?.as_number()?;
    let loops = uses.loops_around(body, store)?;
    if !indices.is_injective(&place, &loops) {
        return None;
    }
    let steps = loops.iter().try_fold(1i64, |steps, &(_, extent)| steps.checked_mul(extent))?;
    let distance = distance.checked_mul(i64::from(dtype.bits() / 8))?;
    Some(Copied { from, to, distance, steps })
}

fn elements(body: BodyView<'_>, buffer: Expr) -> Option<i64> {
    let (_, shape) = body.terms().static_tensor(body.ty(buffer)?)?;
    shape.iter().try_fold(1i64, |count, &dim| count.checked_mul(dim))
}

fn bytes(body: BodyView<'_>, buffer: Expr) -> Option<i64> {
    let (dtype, _) = body.terms().tensor(body.ty(buffer)?)?;
    elements(body, buffer)?.checked_mul(i64::from(dtype.bits() / 8))
}
