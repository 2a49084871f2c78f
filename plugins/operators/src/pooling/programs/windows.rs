//! Pooling over windows, of any extents: one element of the result after the other.
//!
//! ```text
//! acc = the least value, or zero
//! for ky … { for kx … { acc = max(acc, data[n, c, y * s + ky - before, x * s + kx - before]) where that is inside } }
//! ```

use tenon_plugin_api::program::{Extent, Program, Reducer, Scalar, Stmt};

use super::{Method, Windows};
use crate::program::layout_index::{Coordinate, coordinate, dim_extent, place};

pub(crate) fn windows<'p>(program: &'p Program, by: &Windows<'_>) -> Stmt {
    let (data, out) = (program.input(0), program.output(0));
    let dtype = data.compute_dtype();
    let layout = by.layout;
    let extents =
        [b'H', b'W'].map(|axis| dim_extent(program, layout, data.shape(), axis).index(program));
    program.each(out.shape(), |i| {
        let zero = program.index(0);
        let own = |axis| coordinate(layout, i, axis).map_or(zero, Coordinate::index);
        // Where a tap meets the data, and whether that is inside; behind it there may be padding.
        let tap = |axis: usize, k: Scalar<'p>| {
            let first = own([b'H', b'W'][axis]) * by.strides[axis] - by.padding[axis];
            first + k * by.dilation[axis]
        };
        let is_inside = |k: &[Scalar<'p>]| {
            let [y, x] = [0, 1].map(|axis| {
                let at = tap(axis, k[axis]);
                at.ge(0).and(at.lt(extents[axis]))
            });
            y.and(x)
        };
        let value = |k: &[Scalar<'p>]| {
            let [y, x] = [0, 1].map(|axis| tap(axis, k[axis]).max(0).min(extents[axis] - 1));
            data.wide(&place(layout, |axis| match axis {
                b'H' => Coordinate::whole(y),
                b'W' => Coordinate::whole(x),
                axis => coordinate(layout, i, axis).unwrap_or(Coordinate::whole(zero)),
            }))
        };
        let mut body = program.block();
        let reducer = match by.method {
            Method::Max => Reducer::Max,
            Method::Mean { .. } => Reducer::Sum,
        };
        let acc = body.reduce("acc", reducer, dtype, &by.size, |k| {
            is_inside(k).select(value(k), reducer.identity(program, dtype))
        });
        let value = match by.method {
            Method::Max => acc,
            Method::Mean { counts_padding } => {
                let [one, none] = [1.0, 0.0].map(|value| program.literal(dtype, value));
                let count = body.reduce("count", Reducer::Sum, dtype, &by.size, |k| {
                    let counts = match counts_padding {
                        true => {
                            let [y, x] = [0, 1].map(|axis| {
                                tap(axis, k[axis]).lt(extents[axis] + by.padding[axis + 2])
                            });
                            y.and(x)
                        }
                        false => is_inside(k),
                    };
                    counts.select(one, none)
                });
                acc / count
            }
        };
        body.push(out.set(i, value));
        body.finish()
    })
}
