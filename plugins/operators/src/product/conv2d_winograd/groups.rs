//! A convolution by Winograd's algorithm over images whose height or width nobody knows.
//!
//! ```text
//! padded[n, c, y, x]         the data with zeros around it, as far as tiles reach
//! rows[g, s, c, p, x]        what the columns of data of tile s in group g are at point p
//! points[p, q, g, s, c]      what those are at point q, along rows
//! acc[o, p, q, g, s]         the sum over c of points * kernel[p, q, o, c]
//! half[o, g, s, q, y]        the sums that come back, along columns
//! tiles[o, g, s, y, x]       and along rows
//! out[n, o, y, x]            the same, where it belongs
//! ```
//!
//! Tiles of all images are counted together, and stand in groups of a known number, so that a program for any size has whole groups: the
//! last one repeats what its images have no tiles for, which nobody reads. What a group is made of does not depend on where an image ends,
//! hence the copies before and behind, each of which costs as much as an activation.

use tenon_plugin_api::ir::{Context, Dim};
use tenon_plugin_api::program::{Extent, Program, Reducer, Scalar, compute_dtype};

use super::Conv2dWinograd;
use super::program::{Padded, tiles_along};
use crate::product::cook_toom::Points;
use crate::product::winograd_weights::TAPS;
use crate::program::layout_index::{Coordinate, coordinate, dim_extent, place};

/// Tiles in a group: rows of a product in registers, beside two vectors of output channels where there are sixteen registers. Small
/// images have four tiles, of which none is then computed in vain.
const GROUP: i64 = 4;

/// The program; none where the layout of the result is unknown.
pub(super) fn in_groups(op: &Conv2dWinograd, program: &Program) -> Option<()> {
    let (data, kernel, out) = (program.input(0), program.input(1), program.output(0));
    let (cx, dtype) = (program.cx(), compute_dtype(data.dtype()));
    let points = Points::of(op.tile);
    let out_layout = op.result_layout()?;
    let [inputs, outputs] = [&op.data_layout, &out_layout].map(|it| it.block(b'C').unwrap_or(1));
    let of_data = |axis| dim_extent(program, &op.data_layout, data.shape(), axis);
    let of_out = |axis| dim_extent(program, &out_layout, out.shape(), axis);
    let [count, tile, group, input_block, output_block] =
        [points.count() as i64, op.tile, GROUP, inputs, outputs].map(|extent| cx.dim(extent));
    let [input_blocks, output_blocks] = [(of_data(b'C'), inputs), (of_out(b'C'), outputs)]
        .map(|(channels, block)| cx.dim_floor_div(channels, cx.dim(block)));
    let batch = of_data(b'N');
    let along = [b'H', b'W'].map(|axis| tiles_along(program, of_out(axis), op.tile));
    let of_image = cx.dim_mul(along[0], along[1]);
    let all = cx.dim_add(cx.dim_mul(batch, of_image), cx.dim(GROUP - 1));
    let groups = cx.dim_floor_div(all, group);

    let value = Padded { op, data: &data, extents: [b'H', b'W'].map(of_data), block: inputs };
    let reach = along.map(|tiles| cx.dim_add(cx.dim_mul(tiles, tile), cx.dim(TAPS as i64 - 1)));
    let shape = [batch, input_blocks, reach[0], reach[1], input_block];
    let padded = program.map("padded", dtype, &shape, |i| {
        let &[n, c, y, x, lane] = i else { unreachable!("five axes") };
        value.at([n, c, lane], y, x).cast(dtype)
    });
    let shape = [groups, group, input_blocks, count, count, input_block];
    let rows = program.map("rows", dtype, &shape, |i| {
        let &[g, s, c, point, x, lane] = i else { unreachable!("six axes") };
        let [n, ty, tx] = tile_of(g * GROUP + s, [batch, along[0], along[1]], program);
        let column: Vec<Scalar<'_>> = (0..points.count() as i64)
            .map(|k| padded.at(&[n, c, ty * op.tile + k, tx * op.tile + x, lane]))
            .collect();
        points.of_data(point, &column)
    });
    let shape = [count, count, groups, group, input_blocks, input_block];
    let at_points = program.map("points", dtype, &shape, |i| {
        let &[p, q, g, s, c, lane] = i else { unreachable!("six axes") };
        let row: Vec<Scalar<'_>> = (0..points.count() as i64)
            .map(|k| rows.at(&[g, s, c, p, program.index(k), lane]))
            .collect();
        points.of_data(q, &row)
    });
    let shape = [output_blocks, count, count, groups, group, output_block];
    let reduced = [input_blocks, input_block];
    let acc = program.reduce("acc", Reducer::Sum, dtype, &shape, &reduced, |i, k| {
        let &[o, p, q, g, s, lane] = i else { unreachable!("six axes") };
        let kernel = kernel.wide(&place(&op.kernel_layout, |axis| match axis {
            b'O' => Coordinate::split(o, lane, outputs),
            b'I' => Coordinate::split(k[0], k[1], inputs),
            b'H' => Coordinate::whole(p),
            _ => Coordinate::whole(q),
        }));
        at_points.at(&[p, q, g, s, k[0], k[1]]) * kernel
    });
    let shape = [output_blocks, groups, group, count, tile, output_block];
    let half = program.map("half", dtype, &shape, |i| {
        let &[o, g, s, q, y, lane] = i else { unreachable!("six axes") };
        let column: Vec<Scalar<'_>> = (0..points.count() as i64)
            .map(|p| acc.at(&[o, program.index(p), q, g, s, lane]))
            .collect();
        points.sum(y, &column)
    });
    let shape = [output_blocks, groups, group, tile, tile, output_block];
    let tiles = program.map("tiles", dtype, &shape, |i| {
        let &[o, g, s, y, x, lane] = i else { unreachable!("six axes") };
        let row: Vec<Scalar<'_>> = (0..points.count() as i64)
            .map(|q| half.at(&[o, g, s, program.index(q), y, lane]))
            .collect();
        points.sum(x, &row)
    });
    program.set(&out, |i| {
        let at = |axis| coordinate(&out_layout, i, axis).expect("the layout has all axes");
        let [n, y, x] = [b'N', b'H', b'W'].map(|axis| at(axis).index());
        let (o, lane) = at(b'C').in_blocks(outputs);
        let [of_image, across] = [of_image, along[1]].map(|tiles| tiles.index(program));
        let t = n * of_image + y / op.tile * across + x / op.tile;
        tiles.at(&[o, t / GROUP, t % GROUP, y % op.tile, x % op.tile, lane])
    });
    Some(())
}

/// The image of the tile with a number, and where it lies in that; of one behind the last image, some tile of that.
fn tile_of<'p>(
    tile: Scalar<'p>,
    [images, down, across]: [Dim; 3],
    program: &'p Program,
) -> [Scalar<'p>; 3] {
    let [images, down, across] = [images, down, across].map(|extent| extent.index(program));
    let row = tile / across;
    [(row / down).min(images - 1), row % down, tile % across]
}
