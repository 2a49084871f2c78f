//! Convolution: the taps of the kernel are added, one after the other, to planes of the result.

use super::number::{Number, Sum};
use super::parallel::fill;
use super::shape::{parse, relayout};
use super::unary::convert;
use super::{Result, with_number};
use crate::eval::Tensor;
use crate::ir::DType;
use crate::ops::EvalCx;

/// Planes of the result that are computed together, so that each row of the data is read once for all.
const PLANES: usize = 4;

pub(crate) fn conv2d(cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
    let (dtype, _) = cx.out()?;
    let data_layout = cx.attrs.str("data_layout")?;
    let out_layout = match cx.attrs.str("out_layout")? {
        "" => data_layout,
        layout => layout,
    };
    let (plain, plain_kernel) = (parse("NCHW")?, parse("OIHW")?);
    // Elements of a wider type hold what the narrow ones are.
    let (data, kernel) = (convert(cx.arg(0)?, dtype)?, convert(cx.arg(1)?, dtype)?);
    let data = relayout(&data, &parse(data_layout)?, &plain)?;
    let kernel = relayout(&kernel, &parse(cx.attrs.str("kernel_layout")?)?, &plain_kernel)?;
    let out = with_number!(dtype, T => convolve::<T>(cx, &data, &kernel))?;
    Ok(vec![relayout(&out, &plain, &parse(out_layout)?)?])
}

/// What the taps of one axis meet.
#[derive(Clone, Copy)]
struct Axis {
    extent: usize,
    out: usize,
    stride: usize,
    before: usize,
    dilation: usize,
}

impl Axis {
    /// The places of the result that tap `tap` adds to, and the index of the data it meets at the first.
    fn places(self, tap: usize) -> (std::ops::Range<usize>, usize) {
        let shift = tap * self.dilation;
        // Place p meets index p * stride + shift - before.
        let first = self.before.saturating_sub(shift).div_ceil(self.stride);
        let reach = (self.extent + self.before).saturating_sub(shift);
        let end = reach.div_ceil(self.stride).min(self.out);
        let start = (first * self.stride + shift).saturating_sub(self.before);
        (first.min(end)..end, start)
    }
}

fn convolve<T: Number>(cx: &EvalCx<'_>, data: &Tensor, kernel: &Tensor) -> Result<Tensor> {
    let strides: [i64; 2] = cx.attrs.int_array("strides")?;
    let padding: [i64; 4] = cx.attrs.int_array("padding")?;
    let dilation: [i64; 2] = cx.attrs.int_array("dilation")?;
    let groups = cx.attrs.int("groups")? as usize;
    let &[batch, channels, height, width] = data.shape() else { return rank_error() };
    let &[outputs, inputs, kernel_h, kernel_w] = kernel.shape() else { return rank_error() };
    let axis = |index: usize, extent: usize, taps: usize| {
        let (stride, dilation) = (strides[index] as usize, dilation[index] as usize);
        let padded = extent + (padding[index] + padding[index + 2]) as usize;
        let out = (padded - (taps - 1) * dilation - 1) / stride + 1;
        Axis { extent, out, stride, before: padding[index] as usize, dilation }
    };
    let (rows, columns) = (axis(0, height, kernel_h), axis(1, width, kernel_w));
    let plane = rows.out * columns.out;
    let (x, w) = (data.elements::<T>(), kernel.elements::<T>());
    let mut out = vec![T::default(); batch * outputs * plane];
    let per_group = outputs / groups;
    // A chunk never reaches over the end of a group.
    let planes = if per_group.is_multiple_of(PLANES) { PLANES } else { 1 };
    let taps: Vec<(usize, usize)> =
        (0..kernel_h).flat_map(|h| (0..kernel_w).map(move |w| (h, w))).collect();
    fill(&mut out, planes * plane, &|chunk, out| {
        let (image, output) = (chunk * planes / outputs, chunk * planes % outputs);
        let first_input = output / per_group * inputs;
        let mut sums = vec![T::Sum::default(); planes * plane];
        for input in 0..inputs {
            let source = (image * channels + first_input + input) * height * width;
            let source = &x[source..source + height * width];
            for (tap, &(tap_h, tap_w)) in taps.iter().enumerate() {
                let weight =
                    |p: usize| w[((output + p) * inputs + input) * taps.len() + tap].widen();
                let tap = Tap { rows, columns, tap_h, tap_w };
                match planes {
                    PLANES => {
                        tap.add(source, &mut sums, std::array::from_fn::<_, PLANES, _>(weight))
                    }
                    _ => tap.add(source, &mut sums, [weight(0)]),
                }
            }
        }
        out.iter_mut().zip(sums).for_each(|(out, sum)| *out = T::narrow(sum));
    });
    let shape = vec![batch, outputs, rows.out, columns.out];
    Ok(Tensor::from_vec_as(data.dtype(), shape, out))
}

fn rank_error<T>() -> Result<T> {
    Err(crate::ops::OpError::Unsupported("tensors of four dimensions are expected".into()))
}

/// One tap of the kernel.
struct Tap {
    rows: Axis,
    columns: Axis,
    tap_h: usize,
    tap_w: usize,
}

impl Tap {
    /// Adds what this tap contributes to `N` planes: the data times a weight for each.
    fn add<T: Number, const N: usize>(
        &self,
        source: &[T],
        sums: &mut [T::Sum],
        weights: [T::Sum; N],
    ) {
        let plane = sums.len() / N;
        let (places_h, start_h) = self.rows.places(self.tap_h);
        let (places_w, start_w) = self.columns.places(self.tap_w);
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
