//! Programs that do nothing but copy parts of a tensor, or tensors to parts of one.

use tenon_plugin_api::prelude::*;

use crate::index::{Indices, strides};
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
    let mut stores = Vec::new();
    for expr in body.post_order() {
        match body.view(expr) {
            View::Store { value, .. } if body.kind(value) == Kind::LOAD => stores.push(expr),
            View::Store { .. } => return None,
            View::Block(block) if block.predicate.is_some() => return None,
            _ if matches!(
                body.kind(expr),
                Kind::IF_STMT | Kind::LET_STMT | Kind::ALLOC | Kind::EVALUATE
            ) =>
            {
                return None;
            }
            _ => {}
        }
    }
    let uses = Uses::of(body, params);
    let mut indices = Indices::of(body)?;
    let copies: Vec<Copy> = stores
        .iter()
        .map(|&store| copy_of(body, &uses, &mut indices, store))
        .collect::<Option<_>>()?;
    let number = |buffer| params.iter().position(|param| param == buffer);
    let parts = |of: fn(&Copy) -> (Expr, Expr, i64)| -> Option<Vec<Part>> {
        let part = |copy| {
            let (part, whole, offset) = of(copy);
            Some(Part { part: number(part)?, whole: number(whole)?, offset })
        };
        copies
            .iter()
            .filter(|copy| copy.steps == elements(body, of(copy).0).unwrap_or(-1))
            .map(part)
            .collect()
    };
    // Empty ones lie nowhere.
    if params.iter().any(|param| elements(body, param).is_none_or(|count| count == 0)) {
        return None;
    }
    let is_each_once = |parts: &[Part], numbers: std::ops::Range<usize>| {
        let mut found: Vec<usize> = parts.iter().map(|part| part.part).collect();
        found.sort_unstable();
        found.into_iter().eq(numbers)
    };
    let apart = parts(|copy| (copy.to, copy.from, -copy.distance))?;
    let is_of_inputs = apart.iter().all(|part| part.whole < inputs && part.offset >= 0);
    if apart.len() == copies.len() && is_each_once(&apart, inputs..params.len()) && is_of_inputs {
        return Some(Moves::Apart(apart));
    }
    let together = parts(|copy| (copy.from, copy.to, copy.distance))?;
    let is_all = together.len() == copies.len()
        && outputs == 1
        && inputs > 1
        && is_each_once(&together, 0..inputs)
        && is_behind_each_other(body, params.to_vec().as_slice(), &together);
    is_all.then_some(Moves::Together(together))
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

/// One store of what is loaded, each element so many bytes farther than where it comes from.
struct Copy {
    from: Expr,
    to: Expr,
    distance: i64,
    /// How many elements it copies, no place of which is another's.
    steps: i64,
}

fn copy_of(body: BodyView<'_>, uses: &Uses, indices: &mut Indices, store: Expr) -> Option<Copy> {
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
    Some(Copy { from, to, distance, steps })
}

fn elements(body: BodyView<'_>, buffer: Expr) -> Option<i64> {
    let (_, shape) = body.terms().static_tensor(body.ty(buffer)?)?;
    shape.iter().try_fold(1i64, |count, &dim| count.checked_mul(dim))
}

fn bytes(body: BodyView<'_>, buffer: Expr) -> Option<i64> {
    let (dtype, _) = body.terms().tensor(body.ty(buffer)?)?;
    elements(body, buffer)?.checked_mul(i64::from(dtype.bits() / 8))
}
