//! Convolution of channels in blocks, in tiles that stay in registers.
//!
//! ```text
//! for p in batch * out blocks * rows parallel {            n, ob, y from p
//!   for tile in … {                                        14 pixels by 2 blocks of output channels
//!     alloc acc: f32[14, 2, 16] local                      zeros
//!     for ic … { for ky … { for kx … { for ici in 16 {
//!       for tx in 14 unrolled { for b in 2 unrolled { for o in 16 vectorized {
//!         acc[tx, b, o] += data[n, ic, y + ky, x + tx + kx, ici] * weight[ob + b, ic, ky, kx, ici, o]
//!     …                                                    unrolled and vectorized
//!       out[n, ob + b, y, x + tx, o] = acc[tx, b, o]
//! ```

use super::fixed::{Args, Conv};
use super::padding::source;
use super::pixel_tile::{TileShape, for_each_tile};
use crate::program::fixed::tile::{Tile, tiles, vectors_of};
use crate::program::fixed::{Block, Loops, Stmt};
use crate::program::layout_index::Coordinate;

/// A narrow image is cut into several whole rows, up to so many.
const MAX_ROWS: i64 = 8;

pub(super) fn blocked(args: Args<'_, '_>, conv: &Conv) -> Stmt {
    let Args { kernel, data, weight, .. } = args;
    let input_size = conv.kernel_layout.block(b'I').unwrap_or(1);
    let size = conv.kernel_layout.block(b'O').unwrap_or(1);
    let shape = best_shape(conv, size);
    let depth = conv.depth() / input_size;
    let blocks_of_group = conv.out_channels / conv.groups / size;

    let mut program = Block::new(kernel);
    let source = source(kernel, &mut program, conv, data, input_size);
    program.push(for_each_tile(&args, conv, &shape, |tile, body, acc| {
        let first = match conv.groups {
            1 => kernel.index(0),
            _ => body.bind("ic0", tile.block / blocks_of_group * depth),
        };
        body.push(kernel.serial("ic", depth, |ic| {
            kernel.serial("ky", conv.taps[0], |ky| {
                kernel.serial("kx", conv.taps[1], |kx| {
                    kernel.serial("ici", input_size, |ici| {
                        tile.each(|ty, tx, b, o| {
                            let channel = Coordinate::split(first + ic, ici, input_size);
                            let (y, x) = (tile.data_row(ty, ky), tile.data_column(tx, kx));
                            let value = source.at(tile.n, channel, y, x);
                            let weight = weight.wide(&[tile.block + b, ic, ky, kx, ici, o]);
                            let at = [ty, tx, b, o];
                            acc.set(&at, acc.at(&at) + value * weight)
                        })
                    })
                })
            })
        }));
    }));
    program.finish()
}

fn best_shape(conv: &Conv, size: i64) -> TileShape {
    // Vectors of a block stay together, and the blocks of a tile lie in one group of channels.
    let block = vectors_of(size, conv.lanes);
    let vectors = conv.out_channels / conv.groups / size * block;
    let [height, width] = conv.out;
    let shape = |height: i64, tile: Tile| TileShape {
        height,
        width: tile.rows / height,
        blocks: tile.vectors / block,
        size,
    };
    let count = |rows: i64, tile: Tile| tiles(rows, tile.rows) * (vectors / tile.vectors);

    let flat = Tile::best(width, vectors, block, conv.registers);
    let mut best = shape(1, flat);
    let mut cost = (height * count(width, flat)) as f64 * flat.cost();
    for rows in (2..=height.min(MAX_ROWS)).filter(|rows| height % rows == 0) {
        let tile = Tile::best(rows * width, vectors, block, conv.registers);
        let tile_cost = (height / rows * count(rows * width, tile)) as f64 * tile.cost();
        if tile.rows == rows * width && tile_cost < cost {
            (best, cost) = (shape(rows, tile), tile_cost);
        }
    }
    best
}
