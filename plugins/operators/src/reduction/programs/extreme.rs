//! The place of the largest or the smallest element along an axis: the first of equal ones, and the first that is no number.

use tenon_plugin_api::ir::{BinaryOp, DType};
use tenon_plugin_api::op::Result;
use tenon_plugin_api::program::{Extent, Program, Reducer, Scalar};

use crate::program::index::axis_of;

/// Each result as the place of the best of its elements: the first that is as good as the best of all, which is no number where one is none.
/// Both are reductions that run in vectors; a state of a value and its place goes from element to element.
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
    let (worst, extent) = (if is_max { Reducer::Max } else { Reducer::Min }, data.shape()[axis]);
    let dtype = data.compute_dtype();
    let best =
        program.reduce("best", worst, dtype, out.shape(), &[extent], |i, r| element(i, r[0]));
    let none = Reducer::Min.identity(program, DType::I64);
    let place =
        program.reduce("place", Reducer::Min, DType::I64, out.shape(), &[extent], |i, r| {
            let value = element(i, r[0]);
            let mut is_best = value.binary(BinaryOp::Eq, best.at(i));
            if dtype.is_float() {
                is_best = is_best.binary(BinaryOp::Or, value.binary(BinaryOp::Ne, value));
            }
            is_best.select(r[0], none)
        });
    // Where there are no elements, there is no place either.
    program.set(&out, |i| place.at(i).min(extent.index(program) - 1).max(0));
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
