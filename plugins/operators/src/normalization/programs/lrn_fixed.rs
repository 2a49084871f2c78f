//! Normalization by the channels nearby, where the extents are known.
//!
//! Where channels lie side by side, the squares of one pixel go into a row with zeros at both ends, so that
//! the window of a vector of channels is a few neighbouring vectors of the row. Elsewhere the channels of
//! the window are added in a loop.

use tenon_plugin_api::op::Layout;

use super::lrn::normalize;
use crate::pooling::programs::channel_block;
use crate::program::fixed::{Block, Buffer, Fixed, Kernel, Loops, Scalar, Stmt, vector_chunk};
use crate::program::layout_index::{Coordinate, extent, place};

/// Channels of a window that are written out, at most.
const MAX_UNROLLED: i64 = 9;

/// A normalization whose extents are known.
pub(crate) struct Lrn<'a> {
    layout: &'a Layout,
    batch: i64,
    channels: i64,
    height: i64,
    width: i64,
    /// Channels that lie side by side.
    block: i64,
    size: i64,
    by: &'a crate::normalization::lrn::Lrn,
    lanes: i64,
}

impl<'a> Lrn<'a> {
    /// That of a call.
    pub(crate) fn of(by: &'a crate::normalization::lrn::Lrn, args: &Fixed<'_>) -> Self {
        let out = &args.outputs[0];
        let (layout, lanes) = (&by.layout, args.lanes_of(out.dtype));
        let [batch, channels, height, width] =
            [b'N', b'C', b'H', b'W'].map(|axis| extent(layout, &out.shape, axis));
        let block = channel_block(layout, channels, lanes);
        Self { layout, batch, channels, height, width, block, size: by.size, by, lanes }
    }

    /// The program.
    pub(crate) fn program(&self, args: &Fixed<'_>) -> Stmt {
        match self.block {
            1 => self.across_planes(args.kernel, &args.inputs[0], &args.outputs[0]),
            _ => self.along_pixels(args.kernel, &args.inputs[0], &args.outputs[0]),
        }
    }

    fn indices<'k>(
        &self,
        n: Scalar<'k>,
        channel: Coordinate<'k>,
        y: Scalar<'k>,
        x: Scalar<'k>,
    ) -> Vec<Scalar<'k>> {
        place(self.layout, |axis| match axis {
            b'N' => Coordinate::whole(n),
            b'C' => channel,
            b'H' => Coordinate::whole(y),
            _ => Coordinate::whole(x),
        })
    }

    /// How many channels of the window stand before its own.
    fn before(&self) -> i64 {
        (self.size - 1) / 2
    }

    fn along_pixels<'k>(&self, kernel: &'k Kernel, data: &Buffer<'k>, out: &Buffer<'k>) -> Stmt {
        let dtype = data.compute_dtype();
        let blocks = self.channels / self.block;
        let zero = kernel.literal(dtype, 0.0);
        let channels = |body: &dyn Fn(Scalar<'k>, Scalar<'k>) -> Stmt| {
            kernel.serial("cb", blocks, |cb| kernel.vectorized("c", self.block, |c| body(cb, c)))
        };
        kernel.parallel("p", self.batch * self.height, |p| {
            let mut task = Block::new(kernel);
            let n = task.bind("n", p / self.height);
            let y = task.bind("y", p % self.height);
            let ends = [(0, self.before()), (self.before() + self.channels, self.size / 2)];
            let squares = task.local("squares", dtype, &[self.channels + self.size - 1]);
            for (first, count) in ends.into_iter().filter(|&(_, count)| count > 0) {
                task.push(kernel.serial("i", count, |i| squares.set(&[i + first], zero)));
            }
            task.push(kernel.serial("x", self.width, |x| {
                let mut body = Block::new(kernel);
                let element = |cb, c| {
                    let channel = Coordinate::split(cb, c, self.block);
                    data.wide(&self.indices(n, channel, y, x))
                };
                body.push(channels(&|cb, c| {
                    let value = element(cb, c);
                    squares.set(&[cb * self.block + c + self.before()], value * value)
                }));
                let acc = body.local("acc", dtype, &[self.block]);
                body.push(kernel.serial("cb", blocks, |cb| {
                    let each = |body: &dyn Fn(Scalar<'k>) -> Stmt| {
                        kernel.in_registers("c", self.block, self.lanes, body)
                    };
                    let add = |d| {
                        each(&|c| {
                            let square = squares.at(&[cb * self.block + c + d]);
                            acc.set(&[c], acc.at(&[c]) + square)
                        })
                    };
                    let sum = match self.size <= MAX_UNROLLED {
                        true => kernel.unrolled("d", self.size, add),
                        false => kernel.serial("d", self.size, add),
                    };
                    let write = each(&|c| {
                        let channel = Coordinate::split(cb, c, self.block);
                        let indices = self.indices(n, channel, y, x);
                        out.set(&indices, normalize(self.by, element(cb, c), acc.at(&[c])))
                    });
                    kernel.seq(&[each(&|c| acc.set(&[c], zero)), sum, write])
                }));
                body.finish()
            }));
            task.finish()
        })
    }

    fn across_planes<'k>(&self, kernel: &'k Kernel, data: &Buffer<'k>, out: &Buffer<'k>) -> Stmt {
        let dtype = data.compute_dtype();
        kernel.parallel("p", self.batch * self.channels * self.height, |p| {
            let mut task = Block::new(kernel);
            let n = task.bind("n", p / (self.channels * self.height));
            let channel = task.bind("c", p / self.height % self.channels);
            let y = task.bind("y", p % self.height);
            let first = task.bind("c0", (channel - self.before()).max(0));
            let end = task.bind("c1", (channel + (self.size / 2 + 1)).min(self.channels));
            let width = vector_chunk(self.width, self.lanes);
            task.push(kernel.serial("xo", self.width / width, |xo| {
                let mut body = Block::new(kernel);
                let element = |channel: Scalar<'k>, lane: Scalar<'k>| {
                    let x = xo * width + lane;
                    data.wide(&self.indices(n, Coordinate::whole(channel), y, x))
                };
                let acc = body.local("acc", dtype, &[width]);
                let each = |body: &dyn Fn(Scalar<'k>) -> Stmt| kernel.vectorized("x", width, body);
                let zero = kernel.literal(dtype, 0.0);
                body.push(each(&|l| acc.set(&[l], zero)));
                body.push(kernel.range("d", first, end, |d| {
                    each(&|l| {
                        let value = element(d, l);
                        acc.set(&[l], acc.at(&[l]) + value * value)
                    })
                }));
                body.push(each(&|l| {
                    let indices = self.indices(n, Coordinate::whole(channel), y, xo * width + l);
                    out.set(&indices, normalize(self.by, element(channel, l), acc.at(&[l])))
                }));
                body.finish()
            }));
            task.finish()
        })
    }
}
