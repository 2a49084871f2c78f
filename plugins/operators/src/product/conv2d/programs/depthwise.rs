//! Convolution with one filter for each channel, in vectors of channels.
//!
//! ```text
//! acc[tx, o] += data[n, ob, y + ky, x + tx + kx, o] * weight[ob, 0, ky, kx, 0, o]
//! ```

use super::fixed::{Args, Conv};
use super::padding::source;
use super::pixel_tile::{TileShape, for_each_tile};
use crate::program::fixed::tile::{Tile, vectors_of};
use crate::program::fixed::{Block, Loops, Stmt};
use crate::program::layout_index::Coordinate;

/// Taps of a row that are written out, so that an element that neighbouring pixels see is loaded once.
const UNROLLED_TAPS: i64 = 3;

pub(super) fn depthwise(args: Args<'_, '_>, conv: &Conv) -> Stmt {
    let Args { kernel, data, weight, .. } = args;
    let size = conv.kernel_layout.block(b'O').unwrap_or(1);
    let vectors = vectors_of(size, conv.lanes);
    // A quarter of the registers is for the data.
    let tile = Tile::best(conv.out[1], vectors, vectors, conv.registers * 3 / 4);
    let shape = TileShape { height: 1, width: tile.rows, blocks: 1, size };

    let mut program = Block::new(kernel);
    let source = source(kernel, &mut program, conv, data, size);
    program.push(for_each_tile(&args, conv, &shape, |tile, body, acc| {
        let zero = kernel.index(0);
        let row = |ky| {
            let tap = |kx| {
                tile.each(|ty, tx, b, o| {
                    let channel = Coordinate::split(tile.block + b, o, size);
                    let (y, x) = (tile.data_row(ty, ky), tile.data_column(tx, kx));
                    let value = source.at(tile.n, channel, y, x);
                    let weight = weight.wide(&[tile.block + b, zero, ky, kx, zero, o]);
                    let at = [ty, tx, b, o];
                    acc.set(&at, acc.at(&at) + value * weight)
                })
            };
            match conv.taps[1] <= UNROLLED_TAPS {
                true => kernel.unrolled("kx", conv.taps[1], tap),
                false => kernel.serial("kx", conv.taps[1], tap),
            }
        };
        body.push(kernel.serial("ky", conv.taps[0], row));
    }));
    program.finish()
}
