//! Normalization by the channels nearby, of any extents.

use tenon_plugin_api::program::{Extent, Program, Reducer, Scalar};

use crate::normalization::lrn::Lrn;
use crate::program::layout_index::{Coordinate, coordinate, dim_extent, place};

/// Of any extents.
pub(crate) fn program(op: &Lrn, program: &Program) {
    let (data, out) = (program.input(0), program.output(0));
    let dtype = data.compute_dtype();
    let channels = dim_extent(program, &op.layout, data.shape(), b'C').index(program);
    let before = (op.size - 1) / 2;
    let reducer = Reducer::Sum;
    let squares = program.reduce("squares", reducer, dtype, out.shape(), &[op.size], |i, r| {
        let zero = program.index(0);
        let own = |axis| coordinate(&op.layout, i, axis).map_or(zero, Coordinate::index);
        let near = own(b'C') + r[0] - before;
        let nearest = near.max(0).min(channels - 1);
        let value = data.wide(&place(&op.layout, |axis| match axis {
            b'C' => Coordinate::whole(nearest),
            axis => Coordinate::whole(own(axis)),
        }));
        let is_there = near.ge(0).and(near.lt(channels));
        is_there.select(value * value, program.literal(dtype, 0.0))
    });
    program.set(&out, |i| normalize(op, data.wide(i), squares.at(i)));
}

/// The element divided by the power of what its window sums up to; roots are used where they do.
pub(crate) fn normalize<'p>(op: &Lrn, value: Scalar<'p>, squares: Scalar<'p>) -> Scalar<'p> {
    let base = squares * (op.alpha / op.size as f64) + op.bias;
    // A root of minus infinity is no number, and a power of it is.
    let is_positive = op.alpha >= 0.0 && op.bias >= 0.0;
    if op.beta == 0.75 && is_positive {
        let root = base.call("sqrt");
        return value / (root * root.call("sqrt"));
    }
    if op.beta == 0.5 && is_positive {
        return value / base.call("sqrt");
    }
    if op.beta == 1.0 {
        return value / base;
    }
    let beta = base.program().literal(base.dtype(), op.beta);
    value / base.call_with("pow", beta)
}
