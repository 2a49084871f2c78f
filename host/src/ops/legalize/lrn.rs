//! Normalization by the channels nearby.
//!
//! Where channels lie side by side, the squares of one pixel go into a row with zeros at both ends, so that
//! the window of a vector of channels is a few neighbouring vectors of the row. Elsewhere the channels of
//! the window are added in a loop.

use crate::ops::{Layout, LegalizeCx, OpError, OpPattern};

use super::kernel::{Buffer, Kernel, Stmt, vector_chunk};
use super::layout_index::{Coordinate, extent, place};
use super::pool::channel_block;
use super::program::{check_count, program};
use super::scalar::{Scalar, compute_dtype};

/// Channels of a window that are written out, at most.
const MAX_UNROLLED: i64 = 9;

/// `nn.lrn`.
pub(crate) fn lrn(cx: &mut LegalizeCx<'_>) -> Result<(), OpError> {
    check_count(cx, 1)?;
    let layout = super::layout_attr(cx, "layout")?;
    let (dtype, shape) = cx.static_tensor(cx.out)?;
    let size = cx.attrs.int("size")?;
    let lanes = cx.lanes_of(dtype);
    let [batch, channels, height, width] =
        [b'N', b'C', b'H', b'W'].map(|axis| extent(&layout, &shape, axis));
    let lrn = Lrn {
        block: channel_block(&layout, channels, lanes),
        layout,
        batch,
        channels,
        height,
        width,
        size,
        scale: cx.attrs.float("alpha")? / size as f64,
        beta: cx.attrs.float("beta")?,
        bias: cx.attrs.float("bias")?,
        lanes,
    };
    program(cx, OpPattern::OutFusable, |kernel, inputs, outputs| {
        Ok(match lrn.block {
            1 => lrn.across_planes(kernel, &inputs[0], &outputs[0]),
            _ => lrn.along_pixels(kernel, &inputs[0], &outputs[0]),
        })
    })
}

struct Lrn {
    layout: Layout,
    batch: i64,
    channels: i64,
    height: i64,
    width: i64,
    /// Channels that lie side by side.
    block: i64,
    size: i64,
    scale: f64,
    beta: f64,
    bias: f64,
    lanes: i64,
}

impl Lrn {
    fn indices<'k>(
        &self,
        n: Scalar<'k>,
        channel: Coordinate<'k>,
        y: Scalar<'k>,
        x: Scalar<'k>,
    ) -> Vec<Scalar<'k>> {
        place(&self.layout, |axis| match axis {
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
        let dtype = compute_dtype(data.dtype);
        let blocks = self.channels / self.block;
        let zero = kernel.literal(dtype, 0.0);
        let channels = |body: &dyn Fn(Scalar<'k>, Scalar<'k>) -> Stmt| {
            kernel.serial("cb", blocks, |cb| kernel.vectorized("c", self.block, |c| body(cb, c)))
        };
        kernel.parallel("p", self.batch * self.height, |p| {
            let mut task = kernel.block();
            let n = task.bind("n", p / self.height);
            let y = task.bind("y", p % self.height);
            let ends = [(0, self.before()), (self.before() + self.channels, self.size / 2)];
            let squares = task.local("squares", dtype, &[self.channels + self.size - 1]);
            for (first, count) in ends.into_iter().filter(|&(_, count)| count > 0) {
                task.push(kernel.serial("i", count, |i| squares.set(&[i + first], zero)));
            }
            task.push(kernel.serial("x", self.width, |x| {
                let mut body = kernel.block();
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
                        out.set(&indices, self.normalize(element(cb, c), acc.at(&[c])))
                    });
                    kernel.seq(&[each(&|c| acc.set(&[c], zero)), sum, write])
                }));
                body.finish()
            }));
            task.finish()
        })
    }

    fn across_planes<'k>(&self, kernel: &'k Kernel, data: &Buffer<'k>, out: &Buffer<'k>) -> Stmt {
        let dtype = compute_dtype(data.dtype);
        kernel.parallel("p", self.batch * self.channels * self.height, |p| {
            let mut task = kernel.block();
            let n = task.bind("n", p / (self.channels * self.height));
            let channel = task.bind("c", p / self.height % self.channels);
            let y = task.bind("y", p % self.height);
            let first = task.bind("c0", (channel - self.before()).max(0));
            let end = task.bind("c1", (channel + (self.size / 2 + 1)).min(self.channels));
            let width = vector_chunk(self.width, self.lanes);
            task.push(kernel.serial("xo", self.width / width, |xo| {
                let mut body = kernel.block();
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
                    out.set(&indices, self.normalize(element(channel, l), acc.at(&[l])))
                }));
                body.finish()
            }));
            task.finish()
        })
    }

    /// The element divided by the power of what its window sums up to; roots are used where they do.
    fn normalize<'k>(&self, value: Scalar<'k>, squares: Scalar<'k>) -> Scalar<'k> {
        let base = squares * self.scale + self.bias;
        if self.beta == 0.75 {
            let root = base.call("sqrt");
            return value / (root * root.call("sqrt"));
        }
        if self.beta == 0.5 {
            return value / base.call("sqrt");
        }
        if self.beta == 1.0 {
            return value / base;
        }
        let beta = base.kernel().literal(base.dtype(), self.beta);
        value / base.call_with("pow", beta)
    }
}
