//! The gradients of pooling: tap by tap of the window, what it took from the data goes back there.

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;

use super::windows::Pool;

/// How the taps of a window move over data in the layout NCHW.
pub(crate) struct Taps {
    data: [i64; 2],
    /// The extents of the result.
    pub(crate) out: [i64; 4],
    size: [i64; 2],
    strides: [i64; 2],
    dilation: [i64; 2],
    before: [i64; 2],
    after: [i64; 2],
}

impl Taps {
    /// Those of a call.
    pub(crate) fn of(pool: &Pool<'_>, at: &Adjoint<'_>) -> Result<Self> {
        check_layout(pool.layout)?;
        let four = |x| {
            let extents = <[i64; 4]>::try_from(at.extents(x)?);
            extents.map_err(|_| OpError::Unsupported("it has no four axes".into()))
        };
        let ([_, _, height, width], out) = (four(at.arg(0))?, four(at.value())?);
        let [top, left, bottom, right] = pool.padding;
        Ok(Self {
            data: [height, width],
            out,
            size: pool.pool_size,
            strides: pool.strides,
            dilation: pool.dilation,
            before: [top, left],
            after: [bottom, right],
        })
    }

    /// What the windows reach along an axis, from the padding in front on.
    fn reach(&self, axis: usize) -> i64 {
        let last = (self.out[axis + 2] - 1) * self.strides[axis];
        let reach = last + (self.size[axis] - 1) * self.dilation[axis] + 1;
        reach.max(self.before[axis] + self.data[axis])
    }

    /// The padding that lets every window stay inside.
    pub(crate) fn widths(&self) -> [[i64; 2]; 4] {
        let width =
            |axis| [self.before[axis], self.reach(axis) - self.before[axis] - self.data[axis]];
        [[0, 0], [0, 0], width(0), width(1)]
    }

    /// How many places each window has along an axis: of the data, or of the padded data.
    pub(crate) fn counts(&self, axis: usize, is_padding_counted: bool) -> Vec<i64> {
        let (first, end) = match is_padding_counted {
            true => (-self.before[axis], self.data[axis] + self.after[axis]),
            false => (0, self.data[axis]),
        };
        let index = |at: i64, tap: i64| {
            at * self.strides[axis] - self.before[axis] + tap * self.dilation[axis]
        };
        let is_counted = |at, tap: &i64| (first..end).contains(&index(at, *tap));
        let count = |at| (0..self.size[axis]).filter(|tap| is_counted(at, tap)).count() as i64;
        (0..self.out[axis + 2]).map(count).collect()
    }

    /// The first index of each tap of the window.
    pub(crate) fn all(&self) -> Vec<[i64; 2]> {
        let [rows, columns] = self.size;
        let tap = |row, column| [row * self.dilation[0], column * self.dilation[1]];
        (0..rows).flat_map(|row| (0..columns).map(move |column| tap(row, column))).collect()
    }

    /// What a tap meets at each place of the window.
    pub(crate) fn taken(&self, at: &mut Adjoint<'_>, padded: Expr, tap: [i64; 2]) -> Expr {
        let end = |axis: usize| tap[axis] + (self.out[axis + 2] - 1) * self.strides[axis] + 1;
        let attrs: [(&str, AttrValue); 4] = [
            ("axes", vec![2, 3].into()),
            ("begin", tap.to_vec().into()),
            ("end", vec![end(0), end(1)].into()),
            ("strides", self.strides.to_vec().into()),
        ];
        at.apply_with("strided_slice", &[padded], &attrs)
    }

    /// The sum over the taps of what each gives back, at the places that it met.
    pub(crate) fn given_back(
        &self,
        at: &mut Adjoint<'_>,
        parts: Vec<([i64; 2], Expr)>,
    ) -> Result<Expr> {
        let mut sum: Option<Expr> = None;
        for (tap, part) in parts {
            let mut widths = [[0, 0]; 4];
            let mut spread = part;
            for axis in 0..2 {
                spread = at.spread(spread, axis + 2, self.strides[axis])?;
                let length = (self.out[axis + 2] - 1) * self.strides[axis] + 1;
                widths[axis + 2] = [tap[axis], self.reach(axis) - tap[axis] - length];
            }
            let part = at.pad(spread, &widths);
            sum = Some(sum.map_or(part, |sum| at.add(sum, part)));
        }
        let mut grad = sum.ok_or_else(empty_window)?;
        for axis in 0..2 {
            if self.reach(axis) != self.data[axis] {
                let first = self.before[axis];
                grad = at.slice(grad, axis as i64 + 2, first, first + self.data[axis]);
            }
        }
        Ok(grad)
    }
}

/// That gradients know a layout.
pub(crate) fn check_layout(layout: &Layout) -> Result<()> {
    match layout.text() == "NCHW" {
        true => Ok(()),
        false => Err(OpError::Unsupported("its layout is other than NCHW".into())),
    }
}

/// What is wrong with a window that has no taps.
pub(crate) fn empty_window() -> OpError {
    OpError::Unsupported("its window is empty".into())
}
