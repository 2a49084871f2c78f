//! A matrix product whose right matrix is stored column by column: dot products, in vectors along the sum.
//!
//! ```text
//! for k in depth / 16 { for r … { for c … { for l in 16 vectorized {
//!   acc[r, c, l] += left[m + r, k * 16 + l] * right[n + c, k * 16 + l]
//! acc[r, c, 0 .. 8] += acc[r, c, 8 .. 16]                  and so on, down to one sum
//! out[m + r, n + c] = acc[r, c, 0]
//! ```

use super::fixed::Product;
use crate::program::fixed::tile::SUMS_IN_FLIGHT;
use crate::program::fixed::{Block, Buffer, Loops, Scalar, Stmt};
use crate::program::layout_index::Coordinate;

pub(super) fn dots(product: &Product<'_, '_>) -> Stmt {
    let kernel = product.kernel;
    // Few of both, so that sums and what they are made of stay in registers.
    let rows = largest_divisor(product.rows, 4);
    let columns = largest_divisor(product.columns, SUMS_IN_FLIGHT / rows.min(2));
    let (row_tiles, column_tiles) = (product.rows / rows, product.columns / columns);
    kernel.parallel("p", product.batch * column_tiles * row_tiles, |p| {
        let mut body = Block::new(kernel);
        let batch = body.bind("batch", p / (column_tiles * row_tiles));
        let column = body.bind("n", p / row_tiles % column_tiles * columns);
        let row = body.bind("m", p % row_tiles * rows);
        let work = Work { product, rows, columns, batch, row, column };
        let acc = work.sum(&mut body);
        body.push(work.each(|r, c| {
            let column = Coordinate::whole(column + c);
            (product.write)(batch, row + r, column, acc.at(&[r, c, kernel.index(0)]))
        }));
        body.finish()
    })
}

fn largest_divisor(extent: i64, limit: i64) -> i64 {
    (1..=limit.min(extent)).rev().find(|count| extent % count == 0).unwrap_or(1)
}

/// The computation of a few dot products.
struct Work<'a, 'k> {
    product: &'a Product<'a, 'k>,
    rows: i64,
    columns: i64,
    batch: Scalar<'k>,
    row: Scalar<'k>,
    column: Scalar<'k>,
}

impl<'k> Work<'_, 'k> {
    /// Sums in a fresh local buffer with the axes row, column and lane; lane 0 has the sum in the end.
    fn sum(&self, body: &mut Block<'k>) -> Buffer<'k> {
        let &Self { product, rows, columns, .. } = self;
        let kernel = product.kernel;
        let lanes = product.lanes;
        let acc = body.local("acc", product.dtype, &[rows, columns, lanes]);
        let zero = kernel.literal(product.dtype, 0.0);
        body.push(self.each(|r, c| kernel.vectorized("l", lanes, |l| acc.set(&[r, c, l], zero))));
        let add = |r, c, l, k| {
            let column = Coordinate::whole(self.column + c);
            let left = (product.left)(self.batch, self.row + r, k);
            let right = (product.right)(self.batch, k, column);
            acc.set(&[r, c, l], acc.at(&[r, c, l]) + left * right)
        };
        let whole = product.depth / lanes;
        if whole > 0 {
            body.push(kernel.serial("k", whole, |k| {
                self.each(|r, c| kernel.vectorized("l", lanes, |l| add(r, c, l, k * lanes + l)))
            }));
        }
        let rest = product.depth % lanes;
        if rest > 0 {
            let first = kernel.index(0);
            body.push(
                kernel.serial("k", rest, |k| self.each(|r, c| add(r, c, first, k + whole * lanes))),
            );
        }
        let mut half = lanes / 2;
        while half >= 1 && whole > 0 {
            body.push(self.each(|r, c| {
                kernel.vectorized("l", half, |l| {
                    acc.set(&[r, c, l], acc.at(&[r, c, l]) + acc.at(&[r, c, l + half]))
                })
            }));
            half /= 2;
        }
        acc
    }

    /// Written out loops over the dot products.
    fn each(&self, body: impl FnOnce(Scalar<'k>, Scalar<'k>) -> Stmt) -> Stmt {
        let kernel = self.product.kernel;
        kernel.unrolled("r", self.rows, |r| kernel.unrolled("c", self.columns, |c| body(r, c)))
    }
}
