//! Indices of one tensor from those of another.

use tenon_plugin_api::ir::{Context, DType, Dim};
use tenon_plugin_api::op::{OpError, Result};
use tenon_plugin_api::program::{Buffer, Extent, Program, Scalar};

/// An axis, counted from the end when negative.
pub(crate) fn axis_of(axis: i64, rank: usize) -> Result<usize> {
    let rank = rank as i64;
    match axis {
        axis if (0..rank).contains(&axis) => Ok(axis as usize),
        axis if (-rank..0).contains(&axis) => Ok((axis + rank) as usize),
        _ => Err(OpError::Unsupported(format!("there is no axis {axis} of {rank}"))),
    }
}

/// The indices of the element of a tensor of shape `shape` that is repeated at `indices`, which run over `out`: aligned at the last
/// axis, and 0 along axes of extent 1. Where only a call tells whether an extent is 1 or that of `out`, so do the indices.
pub(crate) fn broadcast<'p, E: Extent + PartialEq>(
    program: &'p Program,
    shape: &[E],
    out: &[E],
    indices: &[Scalar<'p>],
) -> Vec<Scalar<'p>> {
    let skipped = out.len() - shape.len();
    let at = |(axis, extent): (usize, &E)| {
        let (index, whole) = (indices[skipped + axis], &out[skipped + axis]);
        match extent.value(program) {
            Some(1) => program.index(0),
            None if extent != whole => extent.index(program).gt(1).select(index, program.index(0)),
            _ => index,
        }
    };
    shape.iter().enumerate().map(at).collect()
}

/// An index that a buffer holds, into an axis of `extent`: one below zero counts from the end, one outside is moved to the nearest.
pub(crate) fn index_at<'p>(
    indices: &Buffer<'p>,
    place: &[Scalar<'p>],
    extent: impl Extent,
) -> Scalar<'p> {
    let extent = extent.index(indices.program());
    let at = indices.at(place).cast(DType::I64);
    at.lt(0).select(at + extent, at).max(0).min(extent - 1)
}

/// The extents of what is written into `data` at indices that are moved to the nearest, with none where there is no element to move them to.
/// One more stands in front where there are none.
pub(crate) fn unless_empty(data: &Buffer<'_>, shape: &[Dim]) -> Vec<Dim> {
    let cx = data.program().cx();
    let may_be_zero = |dim: &Dim| cx.terms().dim_lower_bound(*dim).is_none_or(|least| least < 1);
    let open: Vec<Dim> = data.shape().iter().copied().filter(may_be_zero).collect();
    let is_any = cx.dim_min(cx.dim_product(&open), cx.dim(1));
    match shape {
        [] => vec![is_any],
        [first, rest @ ..] => [&[cx.dim_mul(*first, is_any)], rest].concat(),
    }
}

/// The indices of the element of `data` at `place`, but for `axis`, along which `indices` says at `place` where it is.
pub(crate) fn along_axis<'p>(
    data: &Buffer<'p>,
    indices: &Buffer<'p>,
    axis: usize,
    place: &[Scalar<'p>],
) -> Vec<Scalar<'p>> {
    let at = |other: usize| match other == axis {
        true => index_at(indices, place, data.shape()[axis]),
        false => inside(place[other], data.shape()[other], indices.shape()[other], indices),
    };
    (0..place.len()).map(at).collect()
}

/// The indices of the element of `data` that a vector of indices and the last ones of `place` lead to. The first `batch` axes of
/// both go together.
pub(crate) fn along_vector<'p>(
    data: &Buffer<'p>,
    indices: &Buffer<'p>,
    batch: usize,
    place: &[Scalar<'p>],
) -> Vec<Scalar<'p>> {
    let program = indices.program();
    let outer = indices.shape().len() - 1;
    let count = data.shape().len() - batch - (place.len() - outer);
    let common = (0..batch)
        .map(|axis| inside(place[axis], data.shape()[axis], indices.shape()[axis], indices));
    let indexed = (0..count).map(|position| {
        let vector = [&place[..outer], &[program.index(position as i64)]].concat();
        index_at(indices, &vector, data.shape()[batch + position])
    });
    common.chain(indexed).chain(place[outer..].iter().copied()).collect()
}

/// An index that runs over `own`, into an axis of `extent`: where these may differ, one outside is moved to the last.
fn inside<'p>(index: Scalar<'p>, extent: Dim, own: Dim, of: &Buffer<'p>) -> Scalar<'p> {
    let program = of.program();
    match (own.value(program), extent.value(program)) {
        (Some(own), Some(extent)) if own <= extent => index,
        _ if own == extent => index,
        _ => index.min(extent.index(program) - 1),
    }
}

/// The indices in a tensor of shape `to` of the element that has `indices` in one of shape `from`; both have as many elements.
/// Only the axes that are really joined or divided are computed with: where the shapes agree, indices pass through.
pub(crate) fn regroup<'p, E: Extent + PartialEq>(
    program: &'p Program,
    indices: &[Scalar<'p>],
    from: &[E],
    to: &[E],
) -> Vec<Scalar<'p>> {
    let value = |extent: &E| extent.value(program);
    let known = |shape: &[E]| shape.iter().map(value).collect::<Option<Vec<i64>>>();
    if let (Some(from), Some(to)) = (known(from), known(to)) {
        return regroup_known(program, indices, &from, &to);
    }
    let both = || from.iter().zip(to);
    let same = both().take_while(|(a, b)| a == b).count();
    let rest = from.len().min(to.len()) - same;
    let pairs = from.iter().rev().zip(to.iter().rev());
    let behind = pairs.take(rest).take_while(|(a, b)| a == b).count();
    let flat = (same..from.len() - behind)
        .fold(program.index(0), |flat, axis| flat * from[axis].index(program) + indices[axis]);
    let mut result = indices[..same].to_vec();
    let mut divided = Vec::new();
    let mut left = flat;
    for axis in (same..to.len() - behind).rev() {
        let extent = to[axis].index(program);
        let is_first = axis == same;
        divided.push(if is_first { left } else { left % extent });
        left = left / extent;
    }
    result.extend(divided.into_iter().rev());
    result.extend(&indices[from.len() - behind..]);
    result
}

fn regroup_known<'p>(
    program: &'p Program,
    indices: &[Scalar<'p>],
    from: &[i64],
    to: &[i64],
) -> Vec<Scalar<'p>> {
    let mut result = vec![program.index(0); to.len()];
    // An axis of extent 1 has the index 0 and says nothing.
    let mut from_axes = (0..from.len()).filter(|&axis| from[axis] != 1);
    let mut to_axes = (0..to.len()).filter(|&axis| to[axis] != 1);
    while let (Some(first), Some(target)) = (from_axes.next(), to_axes.next()) {
        // The smallest groups of axes with as many elements.
        let (mut flat, mut count) = (indices[first], from[first]);
        let (mut group, mut target_count) = (vec![target], to[target]);
        while count != target_count {
            if count < target_count {
                let Some(axis) = from_axes.next() else { break };
                flat = flat * from[axis] + indices[axis];
                count *= from[axis];
            } else {
                let Some(axis) = to_axes.next() else { break };
                group.push(axis);
                target_count *= to[axis];
            }
        }
        let mut stride = target_count;
        for (position, &axis) in group.iter().enumerate() {
            stride /= to[axis];
            let index = flat / stride;
            result[axis] = if position == 0 { index } else { index % to[axis] };
        }
    }
    result
}
