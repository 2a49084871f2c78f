//! Pooling over windows, of any extents.
//!
//! ```text
//! acc[n, c, y, x] = max(acc[n, c, y, x], data[n, c, y * s + ky - before, x * s + kx - before])      where that is inside
//! out[n, c, y, x] = acc[n, c, y, x]
//! ```

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
    let acc = program.reduce("acc", reducer, dtype, out.shape(), &by.size, |i, r| {
        match taps.may_be_outside() {
            true => taps.is_inside(i, r).select(taps.value(i, r), identity),
            false => taps.inside(i, taps.at(i, r)),
        }
    });
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
