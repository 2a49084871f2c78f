//! Convolution in `NCHW` with stride 1 along the rows, in vectors of pixels.
//!
//! ```text
//! acc[oc, x] += weight[oc0 + oc, ic, ky, kx] * data[n, ic, y + ky, x0 + x + kx]
//! out[n, oc0 + oc, y, x0 + x] = acc[oc, x]                 oc unrolled, x vectorized
//! ```
//!
//! It is for channels that do not divide into blocks. A tile is some channels by a part of a row, all parts
//! of one extent; a part need not be a multiple of a vector.

use super::fixed::{Args, Conv};
use super::padding::{Source, out_indices, source};
use crate::program::fixed::tile::{Tile, vectors_of};
use crate::program::fixed::{Block, Buffer, Loops, Scalar, Stmt, compute_dtype};
use crate::program::layout_index::Coordinate;

/// Channels and pixels of a tile.
struct Shape {
    channels: i64,
    columns: i64,
}

impl Shape {
    fn best(conv: &Conv) -> Self {
        let channels = conv.out_channels / conv.groups;
        let width = conv.out[1];
        // Channels are the rows of the register tile; both are cut evenly.
        let divisors = |extent: i64| (1..=extent).filter(move |size| extent % size == 0);
        divisors(width)
            .flat_map(|columns| divisors(channels).map(move |channels| Self { channels, columns }))
            .filter(|shape| shape.tile(conv).fits(conv.registers))
            .min_by(|a, b| a.cost(conv).total_cmp(&b.cost(conv)))
            .unwrap_or(Self { channels: 1, columns: 1 })
    }

    fn tile(&self, conv: &Conv) -> Tile {
        Tile { rows: self.channels, vectors: vectors_of(self.columns, conv.lanes) }
    }

    /// Time of one step of the sum for a pixel of a channel.
    fn cost(&self, conv: &Conv) -> f64 {
        self.tile(conv).cost() / (self.channels * self.columns) as f64
    }
}

pub(super) fn rows(args: Args<'_, '_>, conv: &Conv) -> Stmt {
    let Args { kernel, data, weight, out } = args;
    let shape = Shape::best(conv);
    let outputs = conv.out_channels / conv.groups;
    let channel_tiles = conv.out_channels / shape.channels;
    let height = conv.out[0];

    let mut program = Block::new(kernel);
    let source = source(kernel, &mut program, conv, data, 1);
    program.push(kernel.parallel("p", conv.batch * channel_tiles * height, |p| {
        let mut task = Block::new(kernel);
        let n = task.bind("n", p / (channel_tiles * height));
        let channel = task.bind("oc", p / height % channel_tiles * shape.channels);
        let y = task.bind("y", p % height);
        let input = match conv.groups {
            1 => kernel.index(0),
            _ => task.bind("ic0", channel / outputs * conv.depth()),
        };
        task.push(kernel.serial("part", conv.out[1] / shape.columns, |part| {
            let mut body = Block::new(kernel);
            let x = body.bind("x", part * shape.columns);
            let work = Work { conv, shape: &shape, n, channel, y, x, input };
            let acc = work.sum(&mut body, &source, weight);
            body.push(work.each(|oc, column| {
                let channel = Coordinate::whole(channel + oc);
                let indices = out_indices(conv, n, channel, y, x + column);
                out.set(&indices, acc.at(&[oc, column]))
            }));
            body.finish()
        }));
        task.finish()
    }));
    program.finish()
}

/// The computation of one tile.
struct Work<'a, 'k> {
    conv: &'a Conv,
    shape: &'a Shape,
    n: Scalar<'k>,
    channel: Scalar<'k>,
    y: Scalar<'k>,
    x: Scalar<'k>,
    input: Scalar<'k>,
}

impl<'k> Work<'_, 'k> {
    /// Sums a tile in a fresh local buffer with the axes channel and column.
    fn sum(&self, body: &mut Block<'k>, source: &Source<'k>, weight: &Buffer<'k>) -> Buffer<'k> {
        let Self { conv, shape, .. } = self;
        let kernel = self.n.program();
        let dtype = compute_dtype(weight.dtype);
        let acc = body.local("acc", dtype, &[shape.channels, shape.columns]);
        let zero = kernel.literal(dtype, 0.0);
        body.push(self.each(|oc, x| acc.set(&[oc, x], zero)));
        body.push(kernel.serial("ic", conv.depth(), |ic| {
            kernel.serial("ky", conv.taps[0], |ky| {
                kernel.serial("kx", conv.taps[1], |kx| {
                    self.each(|oc, x| {
                        let weight = weight.wide(&[self.channel + oc, ic, ky, kx]);
                        let value = source.at(
                            self.n,
                            Coordinate::whole(self.input + ic),
                            self.y * conv.strides[0] + ky * conv.dilation[0],
                            self.x + kx * conv.dilation[1] + x,
                        );
                        acc.set(&[oc, x], acc.at(&[oc, x]) + weight * value)
                    })
                })
            })
        }));
        acc
    }

    /// Loops over the tile: channels written out, and vectors of columns.
    fn each(&self, body: impl FnOnce(Scalar<'k>, Scalar<'k>) -> Stmt) -> Stmt {
        let kernel = self.n.program();
        kernel.unrolled("o", self.shape.channels, |oc| {
            kernel.vectorized("xi", self.shape.columns, |x| body(oc, x))
        })
    }
}
