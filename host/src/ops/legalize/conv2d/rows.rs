//! Convolution in `NCHW` with stride 1 along the rows, in vectors of pixels.
//!
//! ```text
//! for oc in 4 unrolled { for x in 16 vectorized {
//!   acc[oc, x] += weight[oc0 + oc, ic, ky, kx] * data[n, ic, y + ky, x0 + x + kx]
//! ```
//!
//! It is for channels that do not divide into blocks. A row is cut into vectors of falling width, 28 into
//! 16 + 8 + 4, each with sums of its own, and the tile goes through memory so that one statement writes it.

use super::super::kernel::{Block, Buffer, Stmt};
use super::super::layout_index::Coordinate;
use super::super::scalar::{Scalar, compute_dtype};
use super::super::tile::Tile;
use super::padding::{Source, out_indices, source};
use super::{Args, Conv};

/// A part of a row: `count` vectors of `width` pixels from `first` on.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Piece {
    first: i64,
    count: i64,
    width: i64,
}

/// The pieces of a row of `extent` pixels.
fn pieces(extent: i64, lanes: i64) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let (mut first, mut width) = (0, lanes);
    while first < extent {
        let count = (extent - first) / width;
        if count > 0 {
            pieces.push(Piece { first, count, width });
            first += count * width;
        }
        width = (width / 2).max(1);
    }
    pieces
}

/// What is computed at once: channels by a part of a row, of which there are `parts` of equal extent.
struct Shape {
    channels: i64,
    columns: i64,
    parts: i64,
    pieces: Vec<Piece>,
}

impl Shape {
    fn best(conv: &Conv) -> Self {
        let channels = conv.out_channels / conv.groups;
        let width = conv.out[1];
        let vectors = |columns: i64| -> i64 {
            pieces(columns, conv.lanes).iter().map(|piece| piece.count).sum()
        };
        // Channels are the rows of the tile; they have no remainder, because a group is cut evenly.
        let best = (1..=width)
            .filter(|parts| width % parts == 0)
            .flat_map(|parts| (1..=channels).map(move |rows| (parts, rows)))
            .filter(|(_, rows)| channels % rows == 0)
            .map(|(parts, rows)| (parts, Tile { rows, vectors: vectors(width / parts) }))
            .filter(|(_, tile)| tile.fits(conv.registers))
            .map(|(parts, tile)| {
                (parts, tile, (parts * (channels / tile.rows)) as f64 * tile.cost())
            })
            .min_by(|(_, _, a), (_, _, b)| a.total_cmp(b));
        let (parts, rows) = best.map_or((width, 1), |(parts, tile, _)| (parts, tile.rows));
        let columns = width / parts;
        Self { channels: rows, columns, parts, pieces: pieces(columns, conv.lanes) }
    }
}

pub(super) fn rows(args: Args<'_, '_>, conv: &Conv) -> Stmt {
    let Args { kernel, data, weight, out } = args;
    let shape = Shape::best(conv);
    let outputs = conv.out_channels / conv.groups;
    let channel_tiles = conv.out_channels / shape.channels;
    let height = conv.out[0];

    let mut program = kernel.block();
    let source = source(kernel, &mut program, conv, data, 1);
    program.push(kernel.parallel("p", conv.batch * channel_tiles * height, |p| {
        let mut task = kernel.block();
        let n = task.bind("n", p / (channel_tiles * height));
        let channel = task.bind("oc", p / height % channel_tiles * shape.channels);
        let y = task.bind("y", p % height);
        let input = match conv.groups {
            1 => kernel.index(0),
            _ => task.bind("ic0", channel / outputs * conv.depth()),
        };
        task.push(kernel.serial("part", shape.parts, |part| {
            let mut body = kernel.block();
            let x = body.bind("x", part * shape.columns);
            let work = Work { conv, shape: &shape, n, channel, y, x, input };
            let acc = work.sum(&mut body, &source, weight);
            work.write(&mut body, &acc, out);
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
    /// Sums a tile: a local buffer for each piece, with the axes channel, vector and lane.
    fn sum(
        &self,
        body: &mut Block<'k>,
        source: &Source<'k>,
        weight: &Buffer<'k>,
    ) -> Vec<(Piece, Buffer<'k>)> {
        let Self { conv, shape, .. } = self;
        let kernel = self.n.kernel();
        let dtype = compute_dtype(weight.dtype);
        let acc: Vec<(Piece, Buffer<'k>)> = shape
            .pieces
            .iter()
            .map(|&piece| {
                let extents = [shape.channels, piece.count, piece.width];
                (piece, body.local("acc", dtype, &extents))
            })
            .collect();
        let zero = kernel.literal(dtype, 0.0);
        for (piece, acc) in &acc {
            body.push(self.each(*piece, |oc, v, x| acc.set(&[oc, v, x], zero)));
        }
        body.push(kernel.serial("ic", conv.depth(), |ic| {
            kernel.serial("ky", conv.taps[0], |ky| {
                kernel.serial("kx", conv.taps[1], |kx| {
                    let step = acc.iter().map(|(piece, acc)| {
                        self.each(*piece, |oc, v, x| {
                            let weight = weight.wide(&[self.channel + oc, ic, ky, kx]);
                            let value = source.at(
                                self.n,
                                Coordinate::whole(self.input + ic),
                                self.y * conv.strides[0] + ky * conv.dilation[0],
                                self.x + kx * conv.dilation[1] + v * piece.width + x + piece.first,
                            );
                            acc.set(&[oc, v, x], acc.at(&[oc, v, x]) + weight * value)
                        })
                    });
                    kernel.seq(&step.collect::<Vec<Stmt>>())
                })
            })
        }));
        acc
    }

    /// Writes what was summed.
    fn write(&self, body: &mut Block<'k>, acc: &[(Piece, Buffer<'k>)], out: &Buffer<'k>) {
        let Self { conv, shape, .. } = self;
        let kernel = self.n.kernel();
        let store = |oc: Scalar<'k>, x: Scalar<'k>, value| {
            let channel = Coordinate::whole(self.channel + oc);
            out.set(&out_indices(conv, self.n, channel, self.y, self.x + x), value)
        };
        if let [(piece, acc)] = acc {
            body.push(
                self.each(*piece, |oc, v, x| store(oc, v * piece.width + x, acc.at(&[oc, v, x]))),
            );
            return;
        }
        let dtype = compute_dtype(out.dtype);
        let tile = body.local("tile", dtype, &[shape.channels, shape.columns]);
        for (piece, acc) in acc {
            body.push(self.each(*piece, |oc, v, x| {
                tile.set(&[oc, v * piece.width + x + piece.first], acc.at(&[oc, v, x]))
            }));
        }
        body.push(kernel.serial("oc", shape.channels, |oc| {
            kernel.in_vectors("x", shape.columns, conv.lanes, |x| store(oc, x, tile.at(&[oc, x])))
        }));
    }

    /// Written out loops over the sums of a piece: channel, vector and lane.
    fn each(
        &self,
        piece: Piece,
        body: impl FnOnce(Scalar<'k>, Scalar<'k>, Scalar<'k>) -> Stmt,
    ) -> Stmt {
        let kernel = self.n.kernel();
        kernel.unrolled("oc", self.shape.channels, |oc| {
            kernel.unrolled("v", piece.count, |v| {
                kernel.vectorized("x", piece.width, |x| body(oc, v, x))
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_cut_into_falling_widths() {
        let cut = |extent| -> Vec<(i64, i64)> {
            pieces(extent, 16).iter().map(|piece| (piece.count, piece.width)).collect()
        };
        assert_eq!(cut(28), [(1, 16), (1, 8), (1, 4)]);
        assert_eq!(cut(56), [(3, 16), (1, 8)]);
        assert_eq!(cut(7), [(1, 4), (1, 2), (1, 1)]);
        assert_eq!(cut(112), [(7, 16)]);
    }
}
