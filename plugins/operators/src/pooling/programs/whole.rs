//! Pooling over whole images, of any extents.

use tenon_plugin_api::ir::Context;
use tenon_plugin_api::op::Layout;
use tenon_plugin_api::program::{Extent, Program, Reducer};

use crate::program::layout_index::{Coordinate, coordinate, dim_extent, place};

/// Each element of the result as what its image is reduced to.
pub(crate) fn whole(program: &Program, layout: &Layout, is_max: bool) {
    let (data, out) = (program.input(0), program.output(0));
    let dtype = data.compute_dtype();
    let extents = [b'H', b'W'].map(|axis| dim_extent(program, layout, data.shape(), axis));
    let reducer = if is_max { Reducer::Max } else { Reducer::Sum };
    let acc = program.reduce("acc", reducer, dtype, out.shape(), &extents, |i, r| {
        let zero = Coordinate::whole(program.index(0));
        data.wide(&place(layout, |axis| match axis {
            b'H' => Coordinate::whole(r[0]),
            b'W' => Coordinate::whole(r[1]),
            axis => coordinate(layout, i, axis).unwrap_or(zero),
        }))
    });
    let count = program.cx().dim_mul(extents[0], extents[1]).index(program).cast(dtype);
    program.set(&out, |i| if is_max { acc.at(i) } else { acc.at(i) / count });
}
