//! Sums of elements that may not be there: an axis that is a symbol may be empty when something is asked of it.
//!
//! ```text
//! for i in … { sum = 0; for g in 0..min(t, 1) { for k in … { sum += term(i, k) } }; out[i] = sum }
//! ```

use tenon_plugin_api::ir::{Context, DType, Dim};
use tenon_plugin_api::program::{Extent, Program, Reducer, Scalar};

/// Whether one of these axes may turn out to be empty.
pub(crate) fn may_be_empty(program: &Program, read: &[Dim]) -> bool {
    read.iter().any(|&dim| program.dim_value(dim).is_none_or(|extent| extent == 0))
}

/// Whether none of these axes is empty.
pub(crate) fn is_there<'p>(program: &'p Program, read: &[Dim]) -> Scalar<'p> {
    let is_there = |&dim: &Dim| dim.index(program).gt(0);
    let all = read.iter().filter(|&&dim| program.dim_value(dim).is_none_or(|extent| extent == 0));
    all.map(is_there).reduce(Scalar::and).unwrap_or_else(|| program.int(DType::BOOL, 1))
}

/// Writes for each place of the result what `finish` makes of the sum of the terms at all places of `reduced`, which are read from axes of
/// the extents `read`. Where these may be empty there is one axis more to sum along, which is empty as soon as one of them is.
pub(crate) fn sums<'p>(
    program: &'p Program,
    read: &[Dim],
    dtype: DType,
    reduced: &[impl Extent],
    term: impl Fn(&[Scalar<'p>], &[Scalar<'p>]) -> Scalar<'p>,
    finish: impl Fn(&[Scalar<'p>], Scalar<'p>) -> Scalar<'p>,
) {
    let (cx, out) = (program.cx(), program.output(0));
    let guards = usize::from(may_be_empty(program, read));
    let guard = read.iter().fold(cx.dim(1), |least, &extent| cx.dim_min(extent, least));
    let taps = reduced.iter().map(|extent| extent.dim(&cx));
    let axes: Vec<Dim> = std::iter::repeat_n(guard, guards).chain(taps).collect();
    let sum = program
        .reduce("acc", Reducer::Sum, dtype, out.shape(), &axes, |i, k| term(i, &k[guards..]));
    program.set(&out, |i| finish(i, sum.at(i)));
}
