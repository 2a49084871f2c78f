//! Pooling over windows, where the extents are known.
//!
//! ```text
//! for p in batch * channel blocks * rows parallel {        n, cb, y from p
//!   for tile in … {                                        7 pixels
//!     alloc acc: f32[7, 16] local                          the least value, or zeros
//!     if all windows are inside { for ky … { for kx unrolled { for t unrolled { for c vectorized {
//!       acc[t, c] = max(acc[t, c], data[n, cb, y * s + ky, (x + t) * s + kx, c])
//!     } else { the same, with a range of kx for each pixel }
//!     out[n, cb, y, x + t, c] = acc[t, c]
//! ```
//!
//! The vectors are of channels where the layout has channels side by side, and of length 1 elsewhere.

use tenon_plugin_api::op::Layout;
use tenon_plugin_api::program::Reducer;

use super::{Method, Windows, channel_block};
use crate::program::fixed::tile::tiles;
use crate::program::fixed::{Block, Buffer, Fixed, Loops, Scalar, Stmt};
use crate::program::layout_index::{Coordinate, extent, place};

/// Pixels of a tile, at most.
const MAX_PIXELS: i64 = 8;
/// Taps of a row that are written out, at most.
const MAX_UNROLLED_TAPS: i64 = 7;

/// A pooling whose extents are known.
pub(crate) struct Pool<'a> {
    method: Method,
    layout: &'a Layout,
    batch: i64,
    channels: i64,
    /// Channels that lie side by side and are worked on together.
    block: i64,
    lanes: i64,
    axes: [Axis; 2],
    /// Pixels of a tile.
    pixels: i64,
}

/// How the window moves along one axis.
#[derive(Clone, Copy)]
struct Axis {
    data: i64,
    out: i64,
    taps: i64,
    stride: i64,
    before: i64,
    after: i64,
    dilation: i64,
}

impl Axis {
    /// Whether the windows at the places `first ..= last` lie inside of the data.
    fn is_inside(self, first: i64, last: i64) -> bool {
        let end = last * self.stride - self.before + (self.taps - 1) * self.dilation;
        first * self.stride >= self.before && end < self.data
    }

    /// The first tap that meets data, and the one behind the last, for the window at place `at`.
    fn range<'k>(self, at: Scalar<'k>) -> (Scalar<'k>, Scalar<'k>) {
        let room = at * -self.stride + self.before;
        let begin = ((room + (self.dilation - 1)) / self.dilation).max(0);
        let end = ((room + (self.data + self.dilation - 1)) / self.dilation).min(self.taps);
        (begin, end.max(begin))
    }

    /// How many taps of the window at place `at` meet the padded data.
    fn padded<'k>(self, at: Scalar<'k>) -> Scalar<'k> {
        let room = at * -self.stride + (self.before + self.data + self.after);
        ((room + (self.dilation - 1)) / self.dilation).min(self.taps)
    }

    /// Whether all windows lie inside of the padded data, which they need not when rounded up.
    fn is_padded_enough(self) -> bool {
        let reach = (self.out - 1) * self.stride + (self.taps - 1) * self.dilation;
        reach < self.before + self.data + self.after
    }
}

impl<'a> Pool<'a> {
    /// That of a call.
    pub(crate) fn of(by: &'a Windows<'a>, args: &Fixed<'_>) -> Self {
        let (data, out) = (&args.inputs[0], &args.outputs[0]);
        let layout = by.layout;
        let axes = [0, 1].map(|axis| Axis {
            data: extent(layout, &data.shape, [b'H', b'W'][axis]),
            out: extent(layout, &out.shape, [b'H', b'W'][axis]),
            taps: by.size[axis],
            stride: by.strides[axis],
            before: by.padding[axis],
            after: by.padding[axis + 2],
            dilation: by.dilation[axis],
        });
        let channels = extent(layout, &data.shape, b'C');
        let lanes = args.lanes_of(data.dtype);
        let width = axes[1].out;
        let pixels = (1..=width.clamp(1, MAX_PIXELS))
            .min_by_key(|&pixels| (tiles(width, pixels) * (pixels + 1), -pixels));
        Self {
            method: by.method,
            batch: extent(layout, &data.shape, b'N'),
            block: channel_block(layout, channels, lanes),
            channels,
            lanes,
            axes,
            pixels: pixels.unwrap_or(1),
            layout,
        }
    }

    /// The program.
    pub(crate) fn program(&self, args: &Fixed<'_>) -> Stmt {
        let (kernel, data, out) = (args.kernel, &args.inputs[0], &args.outputs[0]);
        let [rows, columns] = self.axes;
        let blocks = self.channels / self.block;
        kernel.parallel("p", self.batch * blocks * rows.out, |p| {
            let mut task = Block::new(kernel);
            let n = task.bind("n", p / (blocks * rows.out));
            let channel = task.bind("cb", p / rows.out % blocks);
            let y = task.bind("y", p % rows.out);
            let taps = match rows.is_inside(0, rows.out - 1) {
                true => None,
                false => {
                    let (begin, end) = rows.range(y);
                    Some((task.bind("ky0", begin), task.bind("ky1", end)))
                }
            };
            let tiles = tiles(columns.out, self.pixels);
            task.push(kernel.serial("tile", tiles, |tile| {
                let mut body = Block::new(kernel);
                let first = tile * self.pixels;
                let (x, done) = match columns.out % self.pixels {
                    0 => (body.bind("x", first), None),
                    _ => {
                        let done = body.bind("done", first);
                        (body.bind("x", done.min(columns.out - self.pixels)), Some(done))
                    }
                };
                let tile = Tile { pool: self, data, n, channel, y, x, taps };
                let acc = tile.reduce(&mut body);
                body.push(kernel.unrolled("t", self.pixels, |t| {
                    let pixel = tile.channels(|c| tile.write(out, t, c, acc.at(&[t, c])));
                    match done {
                        Some(done) => kernel.when((x + t).ge(done), pixel),
                        None => pixel,
                    }
                }));
                body.finish()
            }));
            task.finish()
        })
    }
}

/// Neighbouring pixels of the result, by a block of channels.
struct Tile<'a, 'k> {
    pool: &'a Pool<'a>,
    data: &'a Buffer<'k>,
    n: Scalar<'k>,
    channel: Scalar<'k>,
    y: Scalar<'k>,
    x: Scalar<'k>,
    /// The taps of a column that meet data, where not all of them do.
    taps: Option<(Scalar<'k>, Scalar<'k>)>,
}

impl<'k> Tile<'_, 'k> {
    /// Reduces the windows in a fresh local buffer with the axes pixel and channel.
    fn reduce(&self, body: &mut Block<'k>) -> Buffer<'k> {
        let pool = self.pool;
        let kernel = self.n.program();
        let [_, columns] = pool.axes;
        let dtype = self.data.compute_dtype();
        let acc = body.local("acc", dtype, &[pool.pixels, pool.block]);
        let start = match pool.method {
            Method::Max => Reducer::Max.identity(kernel, dtype),
            Method::Mean { .. } => kernel.literal(dtype, 0.0),
        };
        let each = |body: &dyn Fn(Scalar<'k>, Scalar<'k>) -> Stmt| {
            kernel.unrolled("t", pool.pixels, |t| self.channels(|c| body(t, c)))
        };
        body.push(each(&|t, c| acc.set(&[t, c], start)));

        let take = |t: Scalar<'k>, c: Scalar<'k>, ky, kx| {
            let value = self.element(t, c, ky, kx);
            let sum = acc.at(&[t, c]);
            acc.set(
                &[t, c],
                match pool.method {
                    Method::Max => sum.max(value),
                    Method::Mean { .. } => sum + value,
                },
            )
        };
        let whole_row = |ky| {
            let tap = |kx| each(&|t, c| take(t, c, ky, kx));
            match columns.taps <= MAX_UNROLLED_TAPS {
                true => kernel.unrolled("kx", columns.taps, tap),
                false => kernel.serial("kx", columns.taps, tap),
            }
        };
        let whole = self.rows(whole_row);
        if columns.is_inside(0, columns.out - 1) {
            body.push(whole);
            return acc;
        }
        let part = self.rows(|ky| {
            kernel.unrolled("t", pool.pixels, |t| {
                let (begin, end) = columns.range(self.x + t);
                kernel.range("kx", begin, end, |kx| self.channels(|c| take(t, c, ky, kx)))
            })
        });
        let reach = (columns.taps - 1) * columns.dilation;
        let last = (self.x + (pool.pixels - 1)) * columns.stride + (reach - columns.before);
        let is_inside = (self.x * columns.stride).ge(columns.before).and(last.lt(columns.data));
        body.push(kernel.choose(is_inside, whole, part));
        acc
    }

    /// A loop over the taps of a column that meet data.
    fn rows(&self, body: impl FnOnce(Scalar<'k>) -> Stmt) -> Stmt {
        let kernel = self.n.program();
        match self.taps {
            Some((begin, end)) => kernel.range("ky", begin, end, body),
            None => kernel.serial("ky", self.pool.axes[0].taps, body),
        }
    }

    /// A loop over the channels of a block, in vectors that are written out.
    fn channels(&self, body: impl FnOnce(Scalar<'k>) -> Stmt) -> Stmt {
        self.n.program().in_registers("c", self.pool.block, self.pool.lanes, body)
    }

    /// The element that tap `ky`, `kx` of pixel `t` meets.
    fn element(&self, t: Scalar<'k>, c: Scalar<'k>, ky: Scalar<'k>, kx: Scalar<'k>) -> Scalar<'k> {
        let [rows, columns] = self.pool.axes;
        let y = self.y * rows.stride + ky * rows.dilation - rows.before;
        let x =
            self.x * columns.stride + kx * columns.dilation - columns.before + t * columns.stride;
        self.data.wide(&self.indices(c, y, x))
    }

    fn indices(&self, c: Scalar<'k>, y: Scalar<'k>, x: Scalar<'k>) -> Vec<Scalar<'k>> {
        place(self.pool.layout, |axis| match axis {
            b'N' => Coordinate::whole(self.n),
            b'C' => Coordinate::split(self.channel, c, self.pool.block),
            b'H' => Coordinate::whole(y),
            _ => Coordinate::whole(x),
        })
    }

    /// Writes pixel `t`.
    fn write(&self, out: &Buffer<'k>, t: Scalar<'k>, c: Scalar<'k>, acc: Scalar<'k>) -> Stmt {
        let pool = self.pool;
        let kernel = self.n.program();
        let [rows, columns] = pool.axes;
        let x = self.x + t;
        let inside = || {
            let (x0, x1) = columns.range(x);
            let height = self.taps.map_or(kernel.index(rows.taps), |(y0, y1)| y1 - y0);
            height * (x1 - x0)
        };
        let is_always_full = |axis: Axis| axis.is_inside(0, axis.out - 1);
        let value = match pool.method {
            Method::Max => acc,
            Method::Mean { counts_padding: true }
                if pool.axes.iter().all(|axis| axis.is_padded_enough()) =>
            {
                acc * (1.0 / (rows.taps * columns.taps) as f64)
            }
            Method::Mean { .. } if pool.axes.iter().all(|&axis| is_always_full(axis)) => {
                acc * (1.0 / (rows.taps * columns.taps) as f64)
            }
            Method::Mean { counts_padding: true } => {
                acc / (rows.padded(self.y) * columns.padded(x)).cast(acc.dtype())
            }
            Method::Mean { counts_padding: false } => acc / inside().cast(acc.dtype()),
        };
        out.set(&self.indices(c, self.y, x), value)
    }
}
