//! Pooling over whole images, of any extents.

use tenon_plugin_api::ir::Context;
use tenon_plugin_api::op::Layout;
use tenon_plugin_api::program::{Extent, Program, Reducer, Stmt};

use crate::program::layout_index::{Coordinate, coordinate, dim_extent, place};

/// One element of the result after the other.
pub(crate) fn whole(program: &Program, layout: &Layout, is_max: bool) -> Stmt {
    let (data, out) = (program.input(0), program.output(0));
    let dtype = data.compute_dtype();
    let extents = [b'H', b'W'].map(|axis| dim_extent(program, layout, data.shape(), axis));
    let reducer = if is_max { Reducer::Max } else { Reducer::Sum };
    program.each(out.shape(), |i| {
        let zero = Coordinate::whole(program.index(0));
        let mut body = program.block();
        let acc = body.reduce("acc", reducer, dtype, &extents, |k| {
            data.wide(&place(layout, |axis| match axis {
                b'H' => Coordinate::whole(k[0]),
                b'W' => Coordinate::whole(k[1]),
                axis => coordinate(layout, i, axis).unwrap_or(zero),
            }))
        });
        let count = program.cx().dim_mul(extents[0], extents[1]).index(program);
        let value = if is_max { acc } else { acc / count.cast(dtype) };
        body.push(out.set(i, value));
        body.finish()
    })
}
