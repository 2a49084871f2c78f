//! A convolution by Winograd's algorithm over images of a known size.
//!
//! ```text
//! rows[n, ty, c, p, x]       what the columns of data that tile row ty reaches are at point p
//! points[n, p, q, ty, tx, c] what those are at point q, along the rows of tile tx
//! acc[n, o, p, q, ty, tx]    the sum over c of points * kernel[p, q, o, c]
//! half[n, o, ty, tx, q, y]   the sums that come back, along columns
//! out[n, o, y, x]            and along rows
//! ```

use tenon_plugin_api::ir::{Context, Dim};
use tenon_plugin_api::program::{Buffer, Extent, Program, Reducer, Scalar, compute_dtype};

use super::Conv2dWinograd;
use crate::product::cook_toom::Points;
use crate::product::winograd_weights::TAPS;
use crate::program::layout_index::{Coordinate, coordinate, dim_extent, place};

/// The program; none where the layout of the result is unknown.
pub(super) fn in_images(op: &Conv2dWinograd, program: &Program) -> Option<()> {
    let (data, kernel, out) = (program.input(0), program.input(1), program.output(0));
    let (cx, dtype) = (program.cx(), compute_dtype(data.dtype()));
    let points = Points::of(op.tile);
    let count = cx.dim(points.count() as i64);
    let out_layout = op.result_layout()?;
    let [inputs, outputs] = [&op.data_layout, &out_layout].map(|it| it.block(b'C').unwrap_or(1));
    let of_data = |axis| dim_extent(program, &op.data_layout, data.shape(), axis);
    let of_out = |axis| dim_extent(program, &out_layout, out.shape(), axis);
    let tiles = [b'H', b'W'].map(|axis| tiles_along(program, of_out(axis), op.tile));
    let blocks = [(of_data(b'C'), inputs), (of_out(b'C'), outputs)]
        .map(|(channels, block)| cx.dim_floor_div(channels, cx.dim(block)));
    let (batch, tile) = (of_data(b'N'), cx.dim(op.tile));
    let [input_block, output_block] = [inputs, outputs].map(|block| cx.dim(block));
    let reach = cx.dim_add(cx.dim_mul(tiles[1], tile), cx.dim(TAPS as i64 - 1));
    let value = Padded { op, data: &data, extents: [b'H', b'W'].map(of_data), block: inputs };
    let shape = [batch, tiles[0], blocks[0], count, reach, input_block];
    let rows = program.map("rows", dtype, &shape, |i| {
        let &[n, ty, c, point, x, lane] = i else { unreachable!("six axes") };
        let column: Vec<Scalar<'_>> = (0..points.count() as i64)
            .map(|k| value.at([n, c, lane], ty * op.tile + k, x).cast(dtype))
            .collect();
        points.of_data(point, &column)
    });
    let shape = [batch, count, count, tiles[0], tiles[1], blocks[0], input_block];
    let at_points = program.map("points", dtype, &shape, |i| {
        let &[n, p, q, ty, tx, c, lane] = i else { unreachable!("seven axes") };
        let row: Vec<Scalar<'_>> = (0..points.count() as i64)
            .map(|k| rows.at(&[n, ty, c, p, tx * op.tile + k, lane]))
            .collect();
        points.of_data(q, &row)
    });
    let shape = [batch, blocks[1], count, count, tiles[0], tiles[1], output_block];
    let reduced = [blocks[0], input_block];
    let acc = program.reduce("acc", Reducer::Sum, dtype, &shape, &reduced, |i, k| {
        let &[n, o, p, q, ty, tx, lane] = i else { unreachable!("seven axes") };
        let kernel = kernel.wide(&place(&op.kernel_layout, |axis| match axis {
            b'O' => Coordinate::split(o, lane, outputs),
            b'I' => Coordinate::split(k[0], k[1], inputs),
            b'H' => Coordinate::whole(p),
            _ => Coordinate::whole(q),
        }));
        at_points.at(&[n, p, q, ty, tx, k[0], k[1]]) * kernel
    });
    let shape = [batch, blocks[1], tiles[0], tiles[1], count, tile, output_block];
    let half = program.map("half", dtype, &shape, |i| {
        let &[n, o, ty, tx, q, y, lane] = i else { unreachable!("seven axes") };
        let column: Vec<Scalar<'_>> = (0..points.count() as i64)
            .map(|p| acc.at(&[n, o, program.index(p), q, ty, tx, lane]))
            .collect();
        points.sum(y, &column)
    });
    program.set(&out, |i| {
        let at = |axis| coordinate(&out_layout, i, axis).expect("the layout has all axes");
        let [n, y, x] = [b'N', b'H', b'W'].map(|axis| at(axis).index());
        let (o, lane) = at(b'C').in_blocks(outputs);
        let row: Vec<Scalar<'_>> = (0..points.count() as i64)
            .map(|q| {
                let q = program.index(q);
                half.at(&[n, o, y / op.tile, x / op.tile, q, y % op.tile, lane])
            })
            .collect();
        points.sum(x % op.tile, &row)
    });
    Some(())
}

/// Tiles along an axis of the result.
pub(super) fn tiles_along(program: &Program, extent: Dim, tile: i64) -> Dim {
    let cx = program.cx();
    cx.dim_floor_div(cx.dim_add(extent, cx.dim(tile - 1)), cx.dim(tile))
}

/// The data with zeros around it.
pub(super) struct Padded<'a, 'p> {
    pub(super) op: &'a Conv2dWinograd,
    pub(super) data: &'a Buffer<'p>,
    /// Rows and columns of the data.
    pub(super) extents: [Dim; 2],
    /// Channels in a block.
    pub(super) block: i64,
}

impl<'p> Padded<'_, 'p> {
    /// The element of an image, a block of channels and a channel in it, at a row and a column that count from the padding's first.
    pub(super) fn at(
        &self,
        [n, c, lane]: [Scalar<'p>; 3],
        y: Scalar<'p>,
        x: Scalar<'p>,
    ) -> Scalar<'p> {
        let program = self.data.program();
        let extents = self.extents.map(|extent| extent.index(program));
        let (y, x) = (y - self.op.padding[0], x - self.op.padding[1]);
        let nearest =
            [(y, extents[0]), (x, extents[1])].map(|(at, extent)| at.max(0).min(extent - 1));
        let element = self.data.at(&place(&self.op.data_layout, |axis| match axis {
            b'N' => Coordinate::whole(n),
            b'C' => Coordinate::split(c, lane, self.block),
            b'H' => Coordinate::whole(nearest[0]),
            _ => Coordinate::whole(nearest[1]),
        }));
        let inside = y.ge(0).and(y.lt(extents[0])).and(x.ge(0).and(x.lt(extents[1])));
        inside.select(element, program.literal(self.data.dtype(), 0.0))
    }
}
