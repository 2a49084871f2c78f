//! Pooling over windows.
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

use crate::ops::{Layout, LegalizeCx, OpError, OpPattern};

use super::kernel::{Block, Buffer, Kernel, Stmt, vector_chunk};
use super::layout_index::{Coordinate, extent, place};
use super::program::{check_count, program};
use super::scalar::{Scalar, compute_dtype, lowest};
use super::tile::tiles;

/// Pixels of a tile, at most.
const MAX_PIXELS: i64 = 8;
/// Taps of a row that are written out, at most.
const MAX_UNROLLED_TAPS: i64 = 7;

/// `nn.max_pool2d` and `nn.avg_pool2d`.
pub(crate) fn pool2d(cx: &mut LegalizeCx<'_>) -> Result<(), OpError> {
    check_count(cx, 1)?;
    let pool = Pool::of(cx)?;
    program(cx, OpPattern::OutFusable, |kernel, inputs, outputs| {
        Ok(pool.program(kernel, &inputs[0], &outputs[0]))
    })
}

/// What becomes of the elements of a window.
#[derive(Clone, Copy, PartialEq)]
enum Method {
    Max,
    /// The mean; of all places of the padded data, or of the elements alone.
    Mean {
        counts_padding: bool,
    },
}

struct Pool {
    method: Method,
    layout: Layout,
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

impl Pool {
    fn of(cx: &LegalizeCx<'_>) -> Result<Self, OpError> {
        let method = match cx.op.name {
            "nn.max_pool2d" => Method::Max,
            _ => Method::Mean { counts_padding: cx.attrs.bool("count_include_pad")? },
        };
        let layout = super::layout_attr(cx, "layout")?;
        let (dtype, data) = cx.static_tensor(cx.inputs()[0])?;
        let (_, out) = cx.static_tensor(cx.out)?;
        let size: [i64; 2] = cx.attrs.int_array("pool_size")?;
        let strides: [i64; 2] = cx.attrs.int_array("strides")?;
        let padding: [i64; 4] = cx.attrs.int_array("padding")?;
        let dilation: [i64; 2] = cx.attrs.int_array("dilation")?;
        let axes = [0, 1].map(|axis| Axis {
            data: extent(&layout, &data, [b'H', b'W'][axis]),
            out: extent(&layout, &out, [b'H', b'W'][axis]),
            taps: size[axis],
            stride: strides[axis],
            before: padding[axis],
            after: padding[axis + 2],
            dilation: dilation[axis],
        });
        let channels = extent(&layout, &data, b'C');
        let lanes = cx.lanes_of(dtype);
        let width = axes[1].out;
        let pixels = (1..=width.clamp(1, MAX_PIXELS))
            .min_by_key(|&pixels| (tiles(width, pixels) * (pixels + 1), -pixels));
        Ok(Self {
            method,
            batch: extent(&layout, &data, b'N'),
            block: channel_block(&layout, channels, lanes),
            channels,
            lanes,
            axes,
            pixels: pixels.unwrap_or(1),
            layout,
        })
    }

    fn program<'k>(&self, kernel: &'k Kernel, data: &Buffer<'k>, out: &Buffer<'k>) -> Stmt {
        let [rows, columns] = self.axes;
        let blocks = self.channels / self.block;
        kernel.parallel("p", self.batch * blocks * rows.out, |p| {
            let mut task = kernel.block();
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
                let mut body = kernel.block();
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

/// Channels that lie side by side in a tensor of layout `layout`: a block, or some where channels are the
/// last axis, or one.
pub(super) fn channel_block(layout: &Layout, channels: i64, lanes: i64) -> i64 {
    match (layout.block(b'C'), layout.axes()) {
        (Some(block), _) => block,
        (None, [.., b'C']) if layout.blocks().is_empty() => vector_chunk(channels, lanes),
        _ => 1,
    }
}

/// Neighbouring pixels of the result, by a block of channels.
struct Tile<'a, 'k> {
    pool: &'a Pool,
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
        let kernel = self.n.kernel();
        let [_, columns] = pool.axes;
        let dtype = compute_dtype(self.data.dtype);
        let acc = body.local("acc", dtype, &[pool.pixels, pool.block]);
        let start = match pool.method {
            Method::Max => lowest(kernel, dtype),
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
        let kernel = self.n.kernel();
        match self.taps {
            Some((begin, end)) => kernel.range("ky", begin, end, body),
            None => kernel.serial("ky", self.pool.axes[0].taps, body),
        }
    }

    /// A loop over the channels of a block, in vectors that are written out.
    fn channels(&self, body: impl FnOnce(Scalar<'k>) -> Stmt) -> Stmt {
        self.n.kernel().in_registers("c", self.pool.block, self.pool.lanes, body)
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
        place(&self.pool.layout, |axis| match axis {
            b'N' => Coordinate::whole(self.n),
            b'C' => Coordinate::split(self.channel, c, self.pool.block),
            b'H' => Coordinate::whole(y),
            _ => Coordinate::whole(x),
        })
    }

    /// Writes pixel `t`.
    fn write(&self, out: &Buffer<'k>, t: Scalar<'k>, c: Scalar<'k>, acc: Scalar<'k>) -> Stmt {
        let pool = self.pool;
        let kernel = self.n.kernel();
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
