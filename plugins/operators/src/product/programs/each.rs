//! A matrix product of any form, one element after the other.

use super::fixed::Product;
use crate::program::fixed::{Block, Loops, Stmt};
use crate::program::layout_index::Coordinate;

pub(super) fn each(product: &Product<'_, '_>) -> Stmt {
    let kernel = product.kernel;
    kernel.parallel("p", product.batch * product.rows, |p| {
        let mut task = Block::new(kernel);
        let batch = task.bind("batch", p / product.rows);
        let row = task.bind("m", p % product.rows);
        task.push(kernel.serial("n", product.columns, |n| {
            let mut body = Block::new(kernel);
            let at = [kernel.index(0)];
            let acc = body.local("acc", product.dtype, &[1]);
            body.push(acc.set(&at, kernel.literal(product.dtype, 0.0)));
            let column = Coordinate::whole(n);
            body.push(kernel.serial("k", product.depth, |k| {
                let term = (product.left)(batch, row, k) * (product.right)(batch, k, column);
                acc.set(&at, acc.at(&at) + term)
            }));
            body.push((product.write)(batch, row, column, acc.at(&at)));
            body.finish()
        }));
        task.finish()
    })
}
