//! Tiles of pixels by blocks of output channels: the loops over them, and how one is written.
//!
//! Where the width is no multiple of the tile, the last tile begins earlier, computes some pixels again,
//! and writes only what no tile before it has written.

use super::fixed::{Args, Conv};
use super::padding::out_indices;
use crate::program::fixed::tile::tiles;
use crate::program::fixed::{Block, Buffer, Loops, Scalar, Stmt, compute_dtype};
use crate::program::layout_index::Coordinate;

/// Extents of a tile: `height` by `width` pixels by `blocks` blocks of `size` output channels.
pub(super) struct TileShape {
    pub(super) height: i64,
    pub(super) width: i64,
    pub(super) blocks: i64,
    pub(super) size: i64,
}

/// One tile: its first pixel and block.
pub(super) struct PixelTile<'a, 'k> {
    pub(super) conv: &'a Conv,
    pub(super) shape: &'a TileShape,
    pub(super) n: Scalar<'k>,
    pub(super) block: Scalar<'k>,
    pub(super) y: Scalar<'k>,
    pub(super) x: Scalar<'k>,
    /// The first column that no tile before this one has written, where that is not `x`.
    done: Option<Scalar<'k>>,
}

/// Loops over the tiles of the result. `sum` adds to the local buffer it is given, which holds zeros and
/// has the axes row, column, block and channel.
pub(super) fn for_each_tile<'a, 'k>(
    args: &Args<'a, 'k>,
    conv: &'a Conv,
    shape: &'a TileShape,
    sum: impl FnOnce(&PixelTile<'a, 'k>, &mut Block<'k>, &Buffer<'k>),
) -> Stmt {
    let &Args { kernel, weight, out, .. } = args;
    let block_tiles = conv.out_channels / shape.size / shape.blocks;
    let row_tiles = conv.out[0] / shape.height;
    let width = conv.out[1];
    // The rows of one group of blocks follow each other, so their weights stay in the cache.
    kernel.parallel("p", conv.batch * block_tiles * row_tiles, |p| {
        let mut task = Block::new(kernel);
        let n = task.bind("n", p / (block_tiles * row_tiles));
        let block = task.bind("ob", p / row_tiles % block_tiles * shape.blocks);
        let y = task.bind("y", p % row_tiles * shape.height);
        task.push(kernel.serial("tile", tiles(width, shape.width), |tile| {
            let mut body = Block::new(kernel);
            let first = tile * shape.width;
            let (x, done) = match width % shape.width {
                0 => (body.bind("x", first), None),
                _ => {
                    let done = body.bind("done", first);
                    (body.bind("x", done.min(width - shape.width)), Some(done))
                }
            };
            let tile = PixelTile { conv, shape, n, block, y, x, done };
            let dtype = compute_dtype(weight.dtype);
            let extents = [shape.height, shape.width, shape.blocks, shape.size];
            let acc = body.local("acc", dtype, &extents);
            let zero = kernel.literal(dtype, 0.0);
            body.push(tile.each(|ty, tx, b, o| acc.set(&[ty, tx, b, o], zero)));
            sum(&tile, &mut body, &acc);
            tile.write(&mut body, &acc, out);
            body.finish()
        }));
        task.finish()
    })
}

impl<'k> PixelTile<'_, 'k> {
    /// Written out loops over the tile: row, column, block, and a vector of channels.
    pub(super) fn each(
        &self,
        body: impl FnOnce(Scalar<'k>, Scalar<'k>, Scalar<'k>, Scalar<'k>) -> Stmt,
    ) -> Stmt {
        self.pixels(|ty, tx| self.channels(|b, o| body(ty, tx, b, o)))
    }

    fn pixels(&self, body: impl FnOnce(Scalar<'k>, Scalar<'k>) -> Stmt) -> Stmt {
        let kernel = self.n.program();
        kernel.unrolled("ty", self.shape.height, |ty| {
            kernel.unrolled("tx", self.shape.width, |tx| body(ty, tx))
        })
    }

    fn channels(&self, body: impl FnOnce(Scalar<'k>, Scalar<'k>) -> Stmt) -> Stmt {
        let kernel = self.n.program();
        kernel.unrolled("b", self.shape.blocks, |b| {
            kernel.in_registers("o", self.shape.size, self.conv.lanes, |o| body(b, o))
        })
    }

    /// Row of the data that tap `ky` of row `ty` sees.
    pub(super) fn data_row(&self, ty: Scalar<'k>, ky: Scalar<'k>) -> Scalar<'k> {
        (self.y + ty) * self.conv.strides[0] + ky * self.conv.dilation[0]
    }

    /// Column of the data that tap `kx` of column `tx` sees. What is known once `tx` is comes last.
    pub(super) fn data_column(&self, tx: Scalar<'k>, kx: Scalar<'k>) -> Scalar<'k> {
        let [_, stride] = self.conv.strides;
        self.x * stride + kx * self.conv.dilation[1] + tx * stride
    }

    /// Writes what was summed.
    fn write(&self, body: &mut Block<'k>, acc: &Buffer<'k>, out: &Buffer<'k>) {
        let kernel = self.n.program();
        let store = |ty: Scalar<'k>, tx: Scalar<'k>, b: Scalar<'k>, o: Scalar<'k>, value| {
            let channel = Coordinate::split(self.block + b, o, self.shape.size);
            let indices = out_indices(self.conv, self.n, channel, self.y + ty, self.x + tx);
            out.set(&indices, value)
        };
        if self.conv.writes_channels(self.shape.size) {
            body.push(self.pixels(|ty, tx| {
                let pixel = self.channels(|b, o| store(ty, tx, b, o, acc.at(&[ty, tx, b, o])));
                match self.done {
                    Some(done) => kernel.when((self.x + tx).ge(done), pixel),
                    None => pixel,
                }
            }));
            return;
        }
        // Neighbours in a register are far from each other in the result: the tile goes through memory.
        let tile = body.local("tile", acc.dtype, &acc.shape);
        body.push(self.each(|ty, tx, b, o| tile.set(&[ty, tx, b, o], acc.at(&[ty, tx, b, o]))));
        let first = self.done.map_or(kernel.index(0), |done| done - self.x);
        body.push(kernel.serial("ty", self.shape.height, |ty| {
            kernel.serial("b", self.shape.blocks, |b| {
                kernel.serial("o", self.shape.size, |o| {
                    kernel.range("tx", first, kernel.index(self.shape.width), |tx| {
                        store(ty, tx, b, o, tile.at(&[ty, tx, b, o]))
                    })
                })
            })
        }));
    }
}
