//! A border of zeros around the data.

use super::fixed::Conv;
use crate::program::fixed::{Block, Buffer, Kernel, Loops, Scalar, Stmt};
use crate::program::layout_index::{Coordinate, place};
use tenon_plugin_api::op::Layout;

/// Data that all windows of a convolution lie inside of.
pub(super) struct Source<'k> {
    buffer: Buffer<'k>,
    layout: Layout,
}

impl<'k> Source<'k> {
    /// The element of a channel at a place of the padded data, in the dtype that is summed in.
    pub(super) fn at(
        &self,
        n: Scalar<'k>,
        channel: Coordinate<'k>,
        y: Scalar<'k>,
        x: Scalar<'k>,
    ) -> Scalar<'k> {
        self.buffer.wide(&indices(&self.layout, n, channel, y, x))
    }
}

/// The data itself where every window lies inside of it, and a padded copy otherwise. The copy has channel
/// blocks of `size`; with 1 it is not blocked.
pub(super) fn source<'k>(
    kernel: &'k Kernel,
    block: &mut Block<'k>,
    conv: &Conv,
    data: &Buffer<'k>,
    size: i64,
) -> Source<'k> {
    let reach = [conv.reach(0), conv.reach(1)];
    if conv.before == [0, 0] && reach[0] <= conv.data[0] && reach[1] <= conv.data[1] {
        return Source { buffer: data.clone(), layout: conv.data_layout.clone() };
    }
    let blocks = conv.channels / size;
    let (layout, shape) = match size {
        1 => ("NCHW".to_owned(), vec![conv.batch, blocks, reach[0], reach[1]]),
        _ => (format!("NCHW{size}c"), vec![conv.batch, blocks, reach[0], reach[1], size]),
    };
    let layout = Layout::parse(&layout).expect("a layout of the usual form");
    let padded = Source { buffer: block.global("padded", data.dtype, &shape), layout };
    block.push(copy(kernel, conv, data, &padded, size));
    padded
}

/// Fills the padded copy, row by row.
fn copy<'k>(
    kernel: &'k Kernel,
    conv: &Conv,
    data: &Buffer<'k>,
    padded: &Source<'k>,
    size: i64,
) -> Stmt {
    let [height, width] = [conv.reach(0), conv.reach(1)];
    let [top, left] = conv.before;
    let blocks = conv.channels / size;
    // The windows need not see all of the data.
    let columns = conv.data[1].min(width - left).max(0);
    let rows = conv.data[0].min(height - top).max(0);
    kernel.parallel("p", conv.batch * blocks * height, |p| {
        let mut block = Block::new(kernel);
        let n = block.bind("n", p / (blocks * height));
        let c = block.bind("c", p / height % blocks);
        let y = block.bind("y", p % height);
        let zero = kernel.literal(data.dtype, 0.0);
        let fill = |first: i64, count: i64| {
            cells(kernel, count, size, |x, inner| {
                let channel = Coordinate::split(c, inner, size);
                let target = indices(&padded.layout, n, channel, y, x + first);
                padded.buffer.set(&target, zero)
            })
        };
        let copied = cells(kernel, columns, size, |x, inner| {
            let channel = Coordinate::split(c, inner, size);
            let from = indices(&conv.data_layout, n, channel, y - top, x);
            let target = indices(&padded.layout, n, channel, y, x + left);
            padded.buffer.set(&target, data.at(&from))
        });
        let right = width - left - columns;
        let row = kernel.seq(&[fill(0, left), copied, fill(left + columns, right)]);
        block.push(match rows == height {
            true => row,
            false => kernel.choose(y.ge(top).and(y.lt(top + rows)), row, fill(0, width)),
        });
        block.finish()
    })
}

/// Loops over `count` places of a row and the channels of a block, in vectors of what is innermost.
fn cells<'k>(
    kernel: &'k Kernel,
    count: i64,
    size: i64,
    body: impl FnOnce(Scalar<'k>, Scalar<'k>) -> Stmt,
) -> Stmt {
    match (count, size) {
        (0, _) => kernel.seq(&[]),
        (_, 1) => kernel.vectorized("x", count, |x| body(x, kernel.index(0))),
        _ => kernel.serial("x", count, |x| kernel.vectorized("ci", size, |inner| body(x, inner))),
    }
}

fn indices<'k>(
    layout: &Layout,
    n: Scalar<'k>,
    channel: Coordinate<'k>,
    y: Scalar<'k>,
    x: Scalar<'k>,
) -> Vec<Scalar<'k>> {
    place(layout, |axis| match axis {
        b'N' => Coordinate::whole(n),
        b'C' => channel,
        b'H' => Coordinate::whole(y),
        _ => Coordinate::whole(x),
    })
}

/// The indices of an element of the result.
pub(super) fn out_indices<'k>(
    conv: &Conv,
    n: Scalar<'k>,
    channel: Coordinate<'k>,
    y: Scalar<'k>,
    x: Scalar<'k>,
) -> Vec<Scalar<'k>> {
    indices(&conv.out_layout, n, channel, y, x)
}
