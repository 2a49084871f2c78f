//! Normalization by the channels nearby, of any extents.
//!
//! ```text
//! padded[n, y, x, k] = data[n, k - before, y, x]^2      where there is such a channel, and zero elsewhere
//! squares[n, c, y, x] = sum of padded[n, y, x, c + r] over r
//! out[n, c, y, x] = data[n, c, y, x] / (bias + alpha / size * squares[n, c, y, x])^beta
//! ```
//!
//! Where channels do not lie side by side there is no padded row: each step of the sum asks whether there is a channel.

use tenon_plugin_api::ir::{Context, Dim};
use tenon_plugin_api::program::{Buffer, Extent, Program, Reducer, Scalar};

use crate::normalization::lrn::Lrn;
use crate::program::layout_index::{Coordinate, coordinate, dim_extent, place};

/// Of any extents.
pub(crate) fn program(op: &Lrn, program: &Program) {
    let near = Near { op, program, data: program.input(0) };
    let (data, out) = (program.input(0), program.output(0));
    let is_beside = op.layout.block(b'C').is_some() || op.layout.axes().last() == Some(&b'C');
    let squares = match is_beside {
        true => near.sums_of_a_row(out.shape()),
        false => near.sums(out.shape()),
    };
    program.set(&out, |i| normalize(op, data.wide(i), squares.at(i)));
}

/// The squares of the channels nearby.
struct Near<'a, 'p> {
    op: &'a Lrn,
    program: &'p Program,
    data: Buffer<'p>,
}

impl<'p> Near<'_, 'p> {
    fn channels(&self) -> Dim {
        dim_extent(self.program, &self.op.layout, self.data.shape(), b'C')
    }

    /// How many channels of the window stand before its own.
    fn before(&self) -> i64 {
        self.op.reach(self.program.dim_value(self.channels()))[0]
    }

    /// How many channels the window has.
    fn taps(&self) -> i64 {
        let [before, after] = self.op.reach(self.program.dim_value(self.channels()));
        before + 1 + after
    }

    /// The square of a channel, which may be none, at other coordinates; zero where there is none.
    fn square(&self, channel: Scalar<'p>, own: impl Fn(u8) -> Scalar<'p>) -> Scalar<'p> {
        let channels = self.channels().index(self.program);
        let nearest = channel.max(0).min(channels - 1);
        let value = self.data.wide(&place(&self.op.layout, |axis| match axis {
            b'C' => Coordinate::whole(nearest),
            axis => Coordinate::whole(own(axis)),
        }));
        let is_there = channel.ge(0).and(channel.lt(channels));
        is_there.select(value * value, self.program.literal(self.data.compute_dtype(), 0.0))
    }

    /// The coordinate of a place of the result.
    fn own(&self, i: &[Scalar<'p>], axis: u8) -> Scalar<'p> {
        let zero = self.program.index(0);
        coordinate(&self.op.layout, i, axis).map_or(zero, Coordinate::index)
    }

    fn sums(&self, shape: &[Dim]) -> Buffer<'p> {
        let (dtype, taps) = (self.data.compute_dtype(), self.taps());
        self.program.reduce("squares", Reducer::Sum, dtype, shape, &[taps], |i, r| {
            self.square(self.own(i, b'C') + r[0] - self.before(), |axis| self.own(i, axis))
        })
    }

    /// With the squares of a pixel's channels as a row that has zeros at both ends.
    fn sums_of_a_row(&self, shape: &[Dim]) -> Buffer<'p> {
        let (program, layout) = (self.program, &self.op.layout);
        let (dtype, taps, cx) = (self.data.compute_dtype(), self.taps(), program.cx());
        let pixels: Vec<u8> = layout.axes().iter().copied().filter(|&axis| axis != b'C').collect();
        let mut padded: Vec<Dim> = pixels
            .iter()
            .map(|&axis| dim_extent(program, layout, self.data.shape(), axis))
            .collect();
        padded.push(cx.dim_add(self.channels(), cx.dim(taps - 1)));
        let padded = program.map("padded", dtype, &padded, |i| {
            let own = |axis| {
                let place = pixels.iter().position(|&each| each == axis);
                place.map_or(program.index(0), |place| i[place])
            };
            self.square(i[pixels.len()] - self.before(), own)
        });
        program.reduce("squares", Reducer::Sum, dtype, shape, &[taps], |i, r| {
            let mut at: Vec<Scalar<'p>> = pixels.iter().map(|&axis| self.own(i, axis)).collect();
            at.push(self.own(i, b'C') + r[0]);
            padded.at(&at)
        })
    }
}

/// The element divided by the power of what its window sums up to; roots are used where they do.
pub(crate) fn normalize<'p>(op: &Lrn, value: Scalar<'p>, squares: Scalar<'p>) -> Scalar<'p> {
    let base = squares * (op.alpha / op.size as f64) + op.bias;
    // A root of minus infinity is no number, and a power of it is.
    let is_positive = op.alpha >= 0.0 && op.bias >= 0.0;
    if op.beta == 0.75 && is_positive {
        let root = base.call("sqrt");
        return value / (root * root.call("sqrt"));
    }
    if op.beta == 0.5 && is_positive {
        return value / base.call("sqrt");
    }
    if op.beta == 1.0 {
        return value / base;
    }
    let beta = base.program().literal(base.dtype(), op.beta);
    value / base.call_with("pow", beta)
}
