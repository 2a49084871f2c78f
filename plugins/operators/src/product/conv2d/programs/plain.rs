//! Convolution of any extents.
//!
//! ```text
//! acc += data[n, g * depth + ic, y * s + ky - before, x * s + kx - before] * weight[oc, ic, ky, kx]      where that is inside
//! ```

use tenon_plugin_api::ir::{Context, Dim};
use tenon_plugin_api::program::{Extent, Program, Reducer, Scalar, compute_dtype};

use super::super::Conv2d;
use crate::program::layout_index::{Coordinate, coordinate, dim_extent, place};

pub(crate) fn plain<'p>(op: &Conv2d, program: &'p Program) -> Option<()> {
    let (data, weight, out) = (program.input(0), program.input(1), program.output(0));
    let dtype = compute_dtype(weight.dtype());
    let out_layout = op.result_layout()?;
    let of_data = |axis| dim_extent(program, &op.data_layout, data.shape(), axis);
    let of_weight = |axis| dim_extent(program, &op.kernel_layout, weight.shape(), axis);
    let cx = program.cx();
    let outputs = cx.dim_floor_div(of_weight(b'O'), cx.dim(op.groups)).index(program);
    let depth = cx.dim_floor_div(of_data(b'C'), cx.dim(op.groups));
    let image = [b'H', b'W'].map(|axis| of_data(axis).index(program));
    let taps: [Dim; 3] = [depth, of_weight(b'H'), of_weight(b'W')];
    let is_padded = op.padding != [0; 4];
    let sum = program.reduce("acc", Reducer::Sum, dtype, out.shape(), &taps, |i, k| {
        let zero = program.index(0);
        let own = |axis| coordinate(&out_layout, i, axis).map_or(zero, Coordinate::index);
        let (n, channel) = (own(b'N'), own(b'C'));
        let tap = |axis: usize, k: Scalar<'p>| {
            let first = own([b'H', b'W'][axis]) * op.strides[axis] - op.padding[axis];
            first + k * op.dilation[axis]
        };
        let first = match op.groups {
            1 => zero,
            _ => channel / outputs * depth.index(program),
        };
        let at = [0, 1].map(|axis| tap(axis, k[axis + 1]));
        let nearest = |axis: usize| match is_padded {
            true => at[axis].max(0).min(image[axis] - 1),
            false => at[axis],
        };
        let value = data.at(&place(&op.data_layout, |axis| {
            Coordinate::whole(match axis {
                b'N' => n,
                b'C' => first + k[0],
                b'H' => nearest(0),
                _ => nearest(1),
            })
        }));
        let weight = weight.wide(&place(&op.kernel_layout, |axis| {
            Coordinate::whole(match axis {
                b'O' => channel,
                b'I' => k[0],
                b'H' => k[1],
                _ => k[2],
            })
        }));
        let value = value.cast(dtype);
        if !is_padded {
            return value * weight;
        }
        let [y, x] = [0, 1].map(|axis| at[axis].ge(0).and(at[axis].lt(image[axis])));
        y.and(x).select(value, program.literal(dtype, 0.0)) * weight
    });
    program.set(&out, |i| sum.at(i));
    Some(())
}
