//! The place of the largest or the smallest element along an axis: the first of equal ones, and the first that is no number.

use tenon_plugin_api::ir::BinaryOp;
use tenon_plugin_api::op::Result;
use tenon_plugin_api::program::{Program, Reducer, Scalar};

use crate::program::index::axis_of;

/// Each result as the place of the best of its elements.
pub(crate) fn extreme<'p>(program: &'p Program, axis: i64, is_max: bool) -> Result<()> {
    let (data, out) = (program.input(0), program.output(0));
    let axis = axis_of(axis, data.shape().len())?;
    let keeps_axis = out.shape().len() == data.shape().len();
    let element = |i: &[Scalar<'p>], place| {
        let mut indices = i.to_vec();
        match keeps_axis {
            true => indices[axis] = place,
            false => indices.insert(axis, place),
        }
        data.wide(&indices)
    };
    let worst = if is_max { Reducer::Max } else { Reducer::Min };
    let first = [worst.identity(program, data.compute_dtype()), program.index(0)];
    let [_, place] = program.fold_by(
        if is_max { "argmax" } else { "argmin" },
        ["best", "place"],
        out.shape(),
        &[data.shape()[axis]],
        first,
        |i, r, [best, place]| {
            let value = element(i, r[0]);
            let is_better = is_better(value, best, is_max);
            [is_better.select(value, best), is_better.select(r[0], place)]
        },
    );
    program.set(&out, |i| place.at(i));
    Ok(())
}

/// Of elements that are no numbers, which alone differ from themselves, the first is the best.
pub(crate) fn is_better<'p>(value: Scalar<'p>, held: Scalar<'p>, is_max: bool) -> Scalar<'p> {
    let is_past = if is_max { value.gt(held) } else { value.lt(held) };
    if !value.dtype().is_float() {
        return is_past;
    }
    let is_nan = value.binary(BinaryOp::Ne, value);
    let is_open = held.binary(BinaryOp::Eq, held);
    is_open.and(is_past.binary(BinaryOp::Or, is_nan))
}
