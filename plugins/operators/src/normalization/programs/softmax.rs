//! Softmax and its logarithm along an axis.
//!
//! ```text
//! max = the largest x[i]                                   so that no power overflows
//! power[i] = exp(x[i] - max)                               0 where that is below the normal numbers
//! out[i] = power[i] * (1 / sum of power)                   or x[i] - (max + log(sum))
//! ```

use tenon_plugin_api::ir::{DType, Dim};
use tenon_plugin_api::op::Result;
use tenon_plugin_api::program::{Program, Reducer, Scalar};

use crate::program::index::axis_of;

/// One row along the axis for each of the other places.
pub(crate) fn softmax<'p>(program: &'p Program, axis: i64, is_log: bool) -> Result<()> {
    let (data, out) = (program.input(0), program.output(0));
    let axis = axis_of(axis, data.shape().len())?;
    let mut rows: Vec<Dim> = data.shape().to_vec();
    let length = [rows.remove(axis)];
    let dtype = data.compute_dtype();
    let at = |i: &[Scalar<'p>], r: &[Scalar<'p>]| [&i[..axis], r, &i[axis..]].concat();
    let row = |i: &[Scalar<'p>]| [&i[..axis], &i[axis + 1..]].concat();
    let max =
        program.reduce("max", Reducer::Max, dtype, &rows, &length, |i, r| data.wide(&at(i, r)));
    let power = program.map("power", dtype, out.shape(), |i| {
        let below = data.wide(i) - max.at(&row(i));
        let nothing = program.literal(dtype, 0.0);
        below.lt(program.literal(dtype, least(dtype))).select(nothing, below.call("exp"))
    });
    let sum =
        program.reduce("sum", Reducer::Sum, dtype, &rows, &length, |i, r| power.at(&at(i, r)));
    let last = program.map("last", dtype, &rows, |i| match is_log {
        true => max.at(i) + sum.at(i).call("log"),
        false => program.literal(dtype, 1.0) / sum.at(i),
    });
    program.set(&out, |i| match is_log {
        true => data.wide(i) - last.at(&row(i)),
        false => power.at(i) * last.at(&row(i)),
    });
    Ok(())
}

/// Below it `exp` is no normal number. Masks add such differences to whole rows, and processors take a hundred times as long for a product
/// with a number below the normal ones.
fn least(dtype: DType) -> f64 {
    if dtype == DType::F64 { -708.0 } else { -87.0 }
}
