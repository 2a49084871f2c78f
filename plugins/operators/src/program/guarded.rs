//! Sums of elements that may not be there: an axis that is a symbol may be empty when something is asked of it.
//!
//! ```text
//! if t > 0 { for i in … { sum = 0; for k in … { sum += term(i, k) }; out[i] = sum } } else { for i in … { out[i] = 0 } }
//! ```

use tenon_plugin_api::ir::{DType, Dim};
use tenon_plugin_api::program::{Buffer, Extent, Program, Reducer, Scalar, Stmt};

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
/// the extents `read`. Where these may be empty, the program must be opaque to fusion.
pub(crate) fn sums<'p>(
    program: &'p Program,
    read: &[Dim],
    dtype: DType,
    reduced: &[impl Extent],
    term: impl Fn(&[Scalar<'p>], &[Scalar<'p>]) -> Scalar<'p>,
    finish: impl Fn(&[Scalar<'p>], Scalar<'p>) -> Scalar<'p>,
) {
    let out = program.output(0);
    if !may_be_empty(program, read) {
        let sum = program.reduce("acc", Reducer::Sum, dtype, out.shape(), reduced, term);
        return program.set(&out, |i| finish(i, sum.at(i)));
    }
    let extents: Vec<Scalar<'p>> = out.shape().iter().map(|dim| dim.index(program)).collect();
    let taps: Vec<Scalar<'p>> = reduced.iter().map(|extent| extent.index(program)).collect();
    let zero = program.literal(dtype, 0.0);
    let sum_at = |i: &[Scalar<'p>]| {
        let mut body = program.block();
        let sum: Buffer<'p> = body.local("sum", dtype, &[1]);
        let at = [program.index(0)];
        body.push(sum.set(&at, zero));
        body.push(nest(program, &taps, &mut Vec::new(), &|k| {
            sum.set(&at, sum.at(&at) + term(i, k))
        }));
        body.push(out.set(i, finish(i, sum.at(&at))));
        body.finish()
    };
    let sums = nest(program, &extents, &mut Vec::new(), &sum_at);
    let zeros = nest(program, &extents, &mut Vec::new(), &|i| out.set(i, finish(i, zero)));
    program.run(program.choose(is_there(program, read), sums, zeros));
}

/// Loops one in the other, as many as a tensor has axes.
fn nest<'p>(
    program: &'p Program,
    extents: &[Scalar<'p>],
    place: &mut Vec<Scalar<'p>>,
    body: &dyn Fn(&[Scalar<'p>]) -> Stmt,
) -> Stmt {
    let Some((&first, rest)) = extents.split_first() else { return body(place) };
    program.in_turn(first, |index| {
        place.push(index);
        let inner = nest(program, rest, place, body);
        place.pop();
        inner
    })
}
