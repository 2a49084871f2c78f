//! Pooling over windows, of any extents.
//!
//! ```text
//! acc[n, c, y, x] = max(acc[n, c, y, x], data[n, c, y * s + ky - before, x * s + kx - before])      where that is inside
//! out[n, c, y, x] = acc[n, c, y, x]
//! ```

use tenon_plugin_api::ir::Context;
use tenon_plugin_api::program::{Buffer, Extent, Program, Reducer, Scalar};

use super::{Method, Windows};
use crate::program::layout_index::{Coordinate, coordinate, dim_extent, place};

pub(crate) fn windows(program: &Program, by: &Windows<'_>) {
    let (data, out) = (program.input(0), program.output(0));
    let dtype = data.compute_dtype();
    let taps = Taps::of(program, by, &data);
    let reducer = match by.method {
        Method::Max => Reducer::Max,
        Method::Mean { .. } => Reducer::Sum,
    };
    let identity = reducer.identity(program, dtype);
    let acc = match taps.padded(program, &out, identity) {
        Some(padded) => program.reduce("acc", reducer, dtype, out.shape(), &by.size, |i, r| {
            padded.at(&taps.in_padded(i, r))
        }),
        None => program.reduce("acc", reducer, dtype, out.shape(), &by.size, |i, r| {
            match taps.may_be_outside() {
                true => taps.is_inside(i, r).select(taps.value(i, r), identity),
                false => taps.inside(i, taps.at(i, r)),
            }
        }),
    };
    let Method::Mean { counts_padding } = by.method else {
        return program.set(&out, |i| acc.at(i));
    };
    if let Some(count) = by.count() {
        return program.set(&out, |i| acc.at(i) * (1.0 / count as f64));
    }
    if by.dilation == [1, 1] {
        return program.set(&out, |i| acc.at(i) / taps.count(i, counts_padding).cast(dtype));
    }
    let count = program.reduce("count", Reducer::Sum, dtype, out.shape(), &by.size, |i, r| {
        let counts = match counts_padding {
            true => taps.is_padded(i, r),
            false => taps.is_inside(i, r),
        };
        counts.select(program.literal(dtype, 1.0), program.literal(dtype, 0.0))
    });
    program.set(&out, |i| acc.at(i) / count.at(i));
}

/// Where the taps of windows meet the data; `i` is a place of the result, `r` one in the window.
struct Taps<'a, 'p> {
    by: &'a Windows<'a>,
    data: &'a Buffer<'p>,
    /// The rows and columns of the data.
    extents: [Scalar<'p>; 2],
}

impl<'a, 'p> Taps<'a, 'p> {
    fn of(program: &'p Program, by: &'a Windows<'a>, data: &'a Buffer<'p>) -> Self {
        let extent = |axis| dim_extent(program, by.layout, data.shape(), axis).index(program);
        Self { by, data, extents: [b'H', b'W'].map(extent) }
    }

    fn own(&self, i: &[Scalar<'p>], axis: u8) -> Coordinate<'p> {
        let zero = || Coordinate::whole(self.extents[0].program().index(0));
        coordinate(self.by.layout, i, axis).unwrap_or_else(zero)
    }

    /// The row and the column; outside of the data there is padding.
    fn at(&self, i: &[Scalar<'p>], r: &[Scalar<'p>]) -> [Scalar<'p>; 2] {
        [0, 1].map(|axis| {
            let own = self.own(i, [b'H', b'W'][axis]).index();
            own * self.by.strides[axis] - self.by.padding[axis] + r[axis] * self.by.dilation[axis]
        })
    }

    /// Whether a window may reach over the data.
    fn may_be_outside(&self) -> bool {
        self.by.padding != [0; 4] || self.by.ceil_mode
    }

    fn is_inside(&self, i: &[Scalar<'p>], r: &[Scalar<'p>]) -> Scalar<'p> {
        let at = self.at(i, r);
        let [y, x] = [0, 1].map(|axis| at[axis].ge(0).and(at[axis].lt(self.extents[axis])));
        y.and(x)
    }

    /// Whether it meets the data or the padding that was asked for; behind that is what rounding up adds.
    fn is_padded(&self, i: &[Scalar<'p>], r: &[Scalar<'p>]) -> Scalar<'p> {
        let at = self.at(i, r);
        let [y, x] = [0, 1].map(|axis| at[axis].lt(self.extents[axis] + self.by.padding[axis + 2]));
        y.and(x)
    }

    /// How many elements a window has, none of which is left out between two.
    fn count(&self, i: &[Scalar<'p>], counts_padding: bool) -> Scalar<'p> {
        let zero = self.extents[0].program().index(0);
        let first = self.at(i, &[zero, zero]);
        let [rows, columns] = [0, 1].map(|axis| {
            let behind = first[axis] + self.by.size[axis];
            match counts_padding {
                true => behind.min(self.extents[axis] + self.by.padding[axis + 2]) - first[axis],
                false => (behind.min(self.extents[axis]) - first[axis].max(0)).max(0),
            }
        });
        rows * columns
    }

    /// The data with what is around them, where rows of unknown length lie in memory: windows of these have no conditions, so that
    /// neighbouring ones are computed in vectors. Nothing where they have none anyway, or are computed by channels.
    fn padded(
        &self,
        program: &'p Program,
        out: &Buffer<'p>,
        around: Scalar<'p>,
    ) -> Option<Buffer<'p>> {
        let is_by_rows = self.by.layout.text() == "NCHW";
        let width = dim_extent(program, self.by.layout, self.data.shape(), b'W');
        if !is_by_rows || program.dim_value(width).is_some() || !self.may_be_outside() {
            return None;
        }
        let cx = program.cx();
        let mut shape = self.data.shape().to_vec();
        for axis in [0, 1] {
            let steps = cx.dim_sub(out.shape()[2 + axis], cx.dim(1));
            let steps = cx.dim_mul(steps, cx.dim(self.by.strides[axis]));
            let window = (self.by.size[axis] - 1) * self.by.dilation[axis] + 1;
            // What no window reaches is copied, too.
            let copied = cx.dim_add(shape[2 + axis], cx.dim(self.by.padding[axis]));
            shape[2 + axis] = cx.dim_max(cx.dim_add(steps, cx.dim(window)), copied);
        }
        let padded = program.temporary("padded", self.data.compute_dtype(), &shape);
        program.set(&padded, |_| around);
        program.each(self.data.shape(), |i| {
            let at = [0, 1].map(|axis| i[2 + axis] + self.by.padding[axis]);
            padded.set(&[&i[..2], &at].concat(), self.data.wide(i))
        });
        Some(padded)
    }

    /// Where a tap of a window lies in data with what is around them.
    fn in_padded(&self, i: &[Scalar<'p>], r: &[Scalar<'p>]) -> Vec<Scalar<'p>> {
        let at = [0, 1]
            .map(|axis| i[2 + axis] * self.by.strides[axis] + r[axis] * self.by.dilation[axis]);
        [&i[..2], &at].concat()
    }

    /// The element, or the nearest that there is.
    fn value(&self, i: &[Scalar<'p>], r: &[Scalar<'p>]) -> Scalar<'p> {
        let at = self.at(i, r);
        self.inside(i, [0, 1].map(|axis| at[axis].max(0).min(self.extents[axis] - 1)))
    }

    /// The element of a row and a column that there are.
    fn inside(&self, i: &[Scalar<'p>], [y, x]: [Scalar<'p>; 2]) -> Scalar<'p> {
        self.data.wide(&place(self.by.layout, |axis| match axis {
            b'H' => Coordinate::whole(y),
            b'W' => Coordinate::whole(x),
            axis => self.own(i, axis),
        }))
    }
}
