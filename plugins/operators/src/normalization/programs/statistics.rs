//! Normalizations by the statistics of the tensor itself, of any extents.
//!
//! ```text
//! mean = sum of x[i] / n
//! inverse = 1 / sqrt(sum of (x[i] - mean)^2 / n + epsilon)
//! out[i] = (x[i] - mean) * inverse * gamma[i] + beta[i]
//! ```
//!
//! The mean is taken away before squaring, so that nothing cancels.

use tenon_plugin_api::ir::Dim;
use tenon_plugin_api::program::{Buffer, Extent, Program, Reducer, Scalar};

use super::GroupAxes;

/// By mean and variance, with scale and shift.
pub(crate) fn standardize<'p>(program: &'p Program, groups: &GroupAxes<Dim>, epsilon: f64) {
    let [data, gamma, beta] = [0, 1, 2].map(|index| program.input(index));
    let (out, dtype) = (program.output(0), data.compute_dtype());
    let (outer, inner) = (groups.extents(false), groups.extents(true));
    let count = inner.iter().map(|extent| extent.index(program));
    let count = count.fold(program.index(1), |a, b| a * b).cast(dtype);
    let element =
        |i: &[Scalar<'p>], r: &[Scalar<'p>]| data.wide(&of_data(groups, &joined(groups, i, r)));
    let sum = program.reduce("sum", Reducer::Sum, dtype, &outer, &inner, element);
    let mean = program.map("mean", dtype, &outer, |i| sum.at(i) / count);
    let squares = program.reduce("squares", Reducer::Sum, dtype, &outer, &inner, |i, r| {
        let centred = element(i, r) - mean.at(i);
        centred * centred
    });
    let inverse = program.map("inverse", dtype, &outer, |i| {
        program.literal(dtype, 1.0) / (squares.at(i) / count + epsilon).call("sqrt")
    });
    program.each(&groups.shape, |place| {
        let (own, params) = (of_data(groups, place), of_params(groups, place, &gamma));
        let group = groups.pick(place, false);
        let normal = (data.wide(&own) - mean.at(&group)) * inverse.at(&group);
        out.set(&own, normal * gamma.wide(&params) + beta.wide(&params))
    });
}

/// By the root of the sum of squares.
pub(crate) fn l2_normalize(program: &Program, groups: &GroupAxes<Dim>, epsilon: f64) {
    let (data, out) = (program.input(0), program.output(0));
    let dtype = data.compute_dtype();
    let (outer, inner) = (groups.extents(false), groups.extents(true));
    let squares = program.reduce("squares", Reducer::Sum, dtype, &outer, &inner, |i, r| {
        let element = data.wide(&of_data(groups, &joined(groups, i, r)));
        element * element
    });
    let inverse = program.map("inverse", dtype, &outer, |i| {
        program.literal(dtype, 1.0) / squares.at(i).max(epsilon).call("sqrt")
    });
    program.each(&groups.shape, |place| {
        let own = of_data(groups, place);
        out.set(&own, data.wide(&own) * inverse.at(&groups.pick(place, false)))
    });
}

/// The place in the shape of the groups, of a place among them and one within.
fn joined<'p>(
    groups: &GroupAxes<Dim>,
    outer: &[Scalar<'p>],
    inner: &[Scalar<'p>],
) -> Vec<Scalar<'p>> {
    let (mut outer, mut inner) = (outer.iter(), inner.iter());
    let next = |is_inner: &bool| if *is_inner { inner.next() } else { outer.next() }.copied();
    groups.is_inner.iter().filter_map(next).collect()
}

/// The indices in the data.
fn of_data<'p>(groups: &GroupAxes<Dim>, place: &[Scalar<'p>]) -> Vec<Scalar<'p>> {
    let mut indices = place.to_vec();
    if let Some(axis) = groups.divided {
        indices.splice(axis..axis + 2, [channel(groups, place, axis)]);
    }
    indices
}

/// The indices in scale and shift, which have one axis for the channels, or the axes of the groups.
fn of_params<'p>(
    groups: &GroupAxes<Dim>,
    place: &[Scalar<'p>],
    params: &Buffer<'p>,
) -> Vec<Scalar<'p>> {
    match groups.divided {
        Some(axis) => vec![channel(groups, place, axis)],
        None => {
            let own: Vec<Scalar<'p>> = groups.params.iter().map(|&axis| place[axis]).collect();
            let shape = params.shape();
            crate::program::index::broadcast(params.program(), shape, shape, &own)
        }
    }
}

/// The channel of two axes: the groups of channels, and those of one group.
fn channel<'p>(groups: &GroupAxes<Dim>, place: &[Scalar<'p>], axis: usize) -> Scalar<'p> {
    let each = groups.shape[axis + 1].index(place[axis].program());
    place[axis] * each + place[axis + 1]
}
