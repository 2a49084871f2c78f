//! A matrix product in tiles of rows by vectors of columns that stay in registers.
//!
//! ```text
//! for p in column tiles * row tiles parallel {             n, m from p
//!   alloc acc: f32[14, 2, 16] local                        zeros
//!   for k in depth {
//!     for r in 14 unrolled { for b in 2 unrolled { for c in 16 vectorized {
//!       acc[r, b, c] += left[m + r, k] * right[n + b, k, c]
//!   …                                                      unrolled and vectorized
//!     out[m + r, (n + b) * 16 + c] = acc[r, b, c]
//! ```
//!
//! With so few rows that the multiply-add units would wait for each other, the sum is cut into several
//! that run side by side. The last tile of rows may begin earlier and writes what is left; columns that
//! only fill up the last panel are not written.

use super::fixed::Product;
use crate::program::fixed::tile::{SUMS_IN_FLIGHT, Tile, tiles, vectors_of};
use crate::program::fixed::{Block, Buffer, Loops, MAX_VECTORS, Scalar, Stmt, vector_width};
use crate::program::layout_index::Coordinate;

/// The tile: rows, blocks of `size` columns, and how many sums are added up in the end.
struct Shape {
    rows: i64,
    blocks: i64,
    size: i64,
    sums: i64,
}

impl Shape {
    fn of(product: &Product<'_, '_>, size: i64, tile: Tile) -> Self {
        let sums = SUMS_IN_FLIGHT / (tile.rows * tile.vectors).min(SUMS_IN_FLIGHT);
        Shape {
            rows: tile.rows,
            blocks: tile.vectors / vectors_of(size, product.lanes),
            size,
            sums: vector_width(product.depth, sums),
        }
    }
}

/// The sizes of blocks of a right matrix of `columns` columns that lie row by row: what divides them and
/// is written out as vectors.
pub(super) fn sizes(columns: i64, lanes: i64) -> Vec<i64> {
    (1..=columns.min(MAX_VECTORS * lanes)).filter(|size| columns % size == 0).collect()
}

/// The product in blocks of the best of these sizes.
pub(super) fn tiled(product: &Product<'_, '_>, sizes: &[i64]) -> Stmt {
    let kernel = product.kernel;
    let candidates = sizes.iter().map(|&size| {
        let group = vectors_of(size, product.lanes);
        let vectors = tiles(product.columns, size) * group;
        let tile = Tile::best(product.rows, vectors, group, product.registers);
        let count = tiles(product.rows, tile.rows) * (vectors / tile.vectors);
        (count as f64 * tile.cost(), Shape::of(product, size, tile))
    });
    let best = candidates.min_by(|(a, _), (b, _)| a.total_cmp(b));
    let Some((_, shape)) = best else { return kernel.seq(&[]) };
    let blocks = tiles(product.columns, shape.size);
    let row_tiles = tiles(product.rows, shape.rows);
    let block_tiles = blocks / shape.blocks;
    kernel.parallel("p", product.batch * block_tiles * row_tiles, |p| {
        let mut body = Block::new(kernel);
        let batch = body.bind("batch", p / (block_tiles * row_tiles));
        let block = body.bind("nb", p / row_tiles % block_tiles * shape.blocks);
        let first = p % row_tiles * shape.rows;
        let (row, done) = match product.rows % shape.rows {
            0 => (body.bind("m", first), None),
            _ => {
                let done = body.bind("done", first);
                (body.bind("m", done.min(product.rows - shape.rows)), Some(done))
            }
        };
        let work = Work { product, shape: &shape, batch, block, row, done };
        let acc = work.sum(&mut body);
        work.write(&mut body, &acc);
        body.finish()
    })
}

/// The computation of one tile.
struct Work<'a, 'k> {
    product: &'a Product<'a, 'k>,
    shape: &'a Shape,
    batch: Scalar<'k>,
    block: Scalar<'k>,
    row: Scalar<'k>,
    /// The first row that no tile before this one has written, where that is not `row`.
    done: Option<Scalar<'k>>,
}

impl<'k> Work<'_, 'k> {
    /// Sums a tile in a fresh local buffer, with the axes sum, row, block and column; the first sum is
    /// the whole one in the end.
    fn sum(&self, body: &mut Block<'k>) -> Buffer<'k> {
        let Self { product, shape, .. } = self;
        let kernel = product.kernel;
        let extents = [shape.sums, shape.rows, shape.blocks, shape.size];
        let acc = body.local("acc", product.dtype, &extents);
        let zero = kernel.literal(product.dtype, 0.0);
        body.push(
            kernel.unrolled("s", shape.sums, |s| self.each(|r, b, c| acc.set(&[s, r, b, c], zero))),
        );
        body.push(kernel.serial("k", product.depth / shape.sums, |k| {
            kernel.unrolled("s", shape.sums, |s| {
                let k = k * shape.sums + s;
                self.each(|r, b, c| {
                    let column = Coordinate::split(self.block + b, c, shape.size);
                    let left = (product.left)(self.batch, self.row + r, k);
                    let right = (product.right)(self.batch, k, column);
                    acc.set(&[s, r, b, c], acc.at(&[s, r, b, c]) + left * right)
                })
            })
        }));
        if shape.sums > 1 {
            let first = kernel.index(0);
            body.push(kernel.unrolled("s", shape.sums - 1, |s| {
                self.each(|r, b, c| {
                    let sum = acc.at(&[first, r, b, c]) + acc.at(&[s + 1, r, b, c]);
                    acc.set(&[first, r, b, c], sum)
                })
            }));
        }
        acc
    }

    /// Writes what was summed.
    fn write(&self, body: &mut Block<'k>, acc: &Buffer<'k>) {
        let Self { product, shape, .. } = self;
        let kernel = product.kernel;
        let whole = kernel.index(0);
        let guarded = |r: Scalar<'k>, row: Stmt| match self.done {
            Some(done) => kernel.when((self.row + r).ge(done), row),
            None => row,
        };
        if product.columns % shape.size == 0 {
            body.push(kernel.unrolled("r", shape.rows, |r| {
                let row = self.columns(|b, c| {
                    let column = Coordinate::split(self.block + b, c, shape.size);
                    (product.write)(self.batch, self.row + r, column, acc.at(&[whole, r, b, c]))
                });
                guarded(r, row)
            }));
            return;
        }
        // How much of the tile is written is known only at run time, so it goes through memory.
        let width = shape.blocks * shape.size;
        let tile = body.local("tile", acc.dtype, &[shape.rows, width]);
        body.push(
            self.each(|r, b, c| tile.set(&[r, b * shape.size + c], acc.at(&[whole, r, b, c]))),
        );
        let first = body.bind("n", self.block * shape.size);
        let end = body.bind("end", (first * -1 + product.columns).min(width));
        let step = vector_width(product.columns, product.lanes.min(shape.size));
        body.push(kernel.serial("r", shape.rows, |r| {
            let row = kernel.range("c", kernel.index(0), end / step, |outer| {
                kernel.vectorized("cv", step, |inner| {
                    let c = outer * step + inner;
                    let column = Coordinate::whole(first + c);
                    (product.write)(self.batch, self.row + r, column, tile.at(&[r, c]))
                })
            });
            guarded(r, row)
        }));
    }

    /// Written out loops over the tile: row, block, and a vector of columns.
    fn each(&self, body: impl FnOnce(Scalar<'k>, Scalar<'k>, Scalar<'k>) -> Stmt) -> Stmt {
        let kernel = self.product.kernel;
        kernel.unrolled("r", self.shape.rows, |r| self.columns(|b, c| body(r, b, c)))
    }

    /// Written out loops over the columns of the tile.
    fn columns(&self, body: impl FnOnce(Scalar<'k>, Scalar<'k>) -> Stmt) -> Stmt {
        let kernel = self.product.kernel;
        kernel.unrolled("b", self.shape.blocks, |b| {
            kernel.in_registers("c", self.shape.size, self.product.lanes, |c| body(b, c))
        })
    }
}
