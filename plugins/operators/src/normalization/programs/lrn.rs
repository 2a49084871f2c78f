//! Normalization by the channels nearby, of any extents.

use tenon_plugin_api::program::{Extent, Program, Reducer, Scalar, Stmt};

use crate::normalization::lrn::Lrn;
use crate::program::layout_index::{Coordinate, coordinate, dim_extent, place};

/// One element after the other.
pub(crate) fn program<'p>(op: &Lrn, program: &'p Program) -> Stmt {
    let (data, out) = (program.input(0), program.output(0));
    let dtype = data.compute_dtype();
    let channels = dim_extent(program, &op.layout, data.shape(), b'C').index(program);
    let before = (op.size - 1) / 2;
    program.each(out.shape(), |i| {
        let own = |axis| coordinate(&op.layout, i, axis).map(Coordinate::index);
        let zero = program.index(0);
        let element = |channel: Scalar<'p>| {
            data.wide(&place(&op.layout, |axis| match axis {
                b'C' => Coordinate::whole(channel),
                axis => Coordinate::whole(own(axis).unwrap_or(zero)),
            }))
        };
        let channel = own(b'C').unwrap_or(zero);
        let mut body = program.block();
        let squares = body.reduce("squares", Reducer::Sum, dtype, &[op.size], |k| {
            let near = channel + k[0] - before;
            let value = element(near.max(0).min(channels - 1));
            let is_there = near.ge(0).and(near.lt(channels));
            is_there.select(value * value, program.literal(dtype, 0.0))
        });
        body.push(out.set(i, normalize(op, data.wide(i), squares)));
        body.finish()
    })
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
