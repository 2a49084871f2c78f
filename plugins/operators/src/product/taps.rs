//! The taps of a convolution's kernel, which are added, one after the other, to planes of the result. What lies beyond the data is zeros,
//! which are multiplied as well: of a weight that is infinite they are no numbers. Lines of them are left out where that is asked for.

use std::ops::Range;

use tenon_plugin_api::op::number::Sum;
use tenon_plugin_api::op::prelude::*;

/// Planes of the result that are computed together, so that each row of the data is read once for all.
pub(crate) const PLANES: usize = 4;

/// What the taps of one axis meet.
#[derive(Clone, Copy)]
pub(crate) struct Axis {
    pub(crate) extent: usize,
    pub(crate) out: usize,
    pub(crate) stride: usize,
    pub(crate) before: usize,
    pub(crate) dilation: usize,
}

impl Axis {
    /// The places of the result that tap `tap` adds to, and the index of the data it meets at the first.
    fn places(self, tap: usize) -> (Range<usize>, usize) {
        let shift = tap * self.dilation;
        // Place p meets index p * stride + shift - before.
        let first = self.before.saturating_sub(shift).div_ceil(self.stride);
        let reach = (self.extent + self.before).saturating_sub(shift);
        let end = reach.div_ceil(self.stride).min(self.out);
        let start = (first * self.stride + shift).saturating_sub(self.before);
        (first.min(end)..end, start)
    }
}

/// One tap of the kernel.
pub(crate) struct Tap {
    pub(crate) rows: Axis,
    pub(crate) columns: Axis,
    pub(crate) tap_h: usize,
    pub(crate) tap_w: usize,
    /// Whether lines of zeros are left out.
    pub(crate) skips_lines: bool,
}

impl Tap {
    /// Adds what this tap contributes to `N` planes: the data times a weight for each.
    pub(crate) fn add<T: Number, const N: usize>(
        &self,
        source: &[T],
        sums: &mut [T::Sum],
        weights: [T::Sum; N],
    ) {
        let plane = sums.len() / N;
        let (places_h, start_h) = self.rows.places(self.tap_h);
        let (places_w, start_w) = self.columns.places(self.tap_w);
        self.add_beyond(sums, [&places_h, &places_w], weights);
        if places_h.is_empty() || places_w.is_empty() {
            return;
        }
        let (stride, width) = (self.columns.stride, self.columns.extent);
        let mut planes = sums.chunks_exact_mut(plane);
        let mut planes: [&mut [T::Sum]; N] =
            std::array::from_fn(|_| planes.next().expect("there are N planes"));
        if places_w.len() == width && width == self.columns.out && self.rows.stride == 1 {
            // Whole rows meet whole rows, so that all of them are one.
            let from = &source[start_h * width..][..places_h.len() * width];
            let to = places_h.start * width;
            add_row(from, planes.each_mut().map(|plane| &mut plane[to..to + from.len()]), weights);
            return;
        }
        for (number, place) in places_h.enumerate() {
            let line = (start_h + number * self.rows.stride) * width;
            let to = place * self.columns.out;
            let rows =
                planes.each_mut().map(|plane| &mut plane[to + places_w.start..to + places_w.end]);
            if stride == 1 {
                add_row(&source[line + start_w..][..places_w.len()], rows, weights);
                continue;
            }
            let from = source[line..line + width].iter().skip(start_w).step_by(stride);
            for (i, x) in from.take(places_w.len()).enumerate() {
                (0..N).for_each(|n| rows[n][i] = rows[n][i].add(x.widen().mul(weights[n])));
            }
        }
    }

    /// Adds zeros times the weights where this tap meets nothing.
    fn add_beyond<S: Sum, const N: usize>(
        &self,
        sums: &mut [S],
        [rows, columns]: [&Range<usize>; 2],
        weights: [S; N],
    ) {
        let (plane, width) = (sums.len() / N, self.columns.out);
        for (plane, weight) in sums.chunks_exact_mut(plane.max(1)).zip(weights) {
            let beyond = S::default().mul(weight);
            for (number, row) in plane.chunks_exact_mut(width.max(1)).enumerate() {
                if self.skips_lines && !rows.contains(&number) {
                    continue;
                }
                let (before, behind) = match rows.contains(&number) && !columns.is_empty() {
                    true => (columns.start, columns.end),
                    false => (width, width),
                };
                row[..before].iter_mut().for_each(|to| *to = to.add(beyond));
                row[behind..].iter_mut().for_each(|to| *to = to.add(beyond));
            }
        }
    }
}

#[inline]
fn add_row<T: Number, const N: usize>(
    from: &[T],
    mut to: [&mut [T::Sum]; N],
    weights: [T::Sum; N],
) {
    for (n, to) in to.iter_mut().enumerate() {
        for (to, x) in to.iter_mut().zip(from) {
            *to = to.add(x.widen().mul(weights[n]));
        }
    }
}
