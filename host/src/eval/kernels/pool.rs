//! Pooling over two spatial axes.

use super::number::Number;
use super::parallel::fill;
use super::shape::{parse, relayout};
use super::{Result, with_float, with_number};
use crate::eval::Tensor;
use crate::ir::DType;
use crate::ops::{EvalCx, OpError};

/// What a window covers: the elements, and how many places it has with the padding.
struct Window<'a, T> {
    plane: &'a [T],
    width: usize,
    rows: Span,
    columns: Span,
}

/// The indices that a window meets along one axis.
#[derive(Clone, Copy)]
struct Span {
    first: usize,
    step: usize,
    count: usize,
    /// How many it has in the padded axis.
    padded: usize,
}

impl Span {
    /// The window at place `place`, of `taps` taps on an axis of `extent` with padding before and after.
    fn new(
        place: usize,
        extent: usize,
        taps: usize,
        [step, before, after, stride]: [usize; 4],
    ) -> Self {
        let start = (place * stride) as i64 - before as i64;
        let index = |tap: usize| start + (tap * step) as i64;
        let is_inside = |tap: &usize| (0..extent as i64).contains(&index(*tap));
        let inside: Vec<usize> = (0..taps).filter(is_inside).collect();
        let padded = (0..taps).filter(|&tap| index(tap) < (extent + after) as i64).count();
        let first = inside.first().map_or(0, |&tap| index(tap) as usize);
        Self { first, step, count: inside.len(), padded }
    }
}

impl<T: Number> Window<'_, T> {
    fn elements(&self) -> impl Iterator<Item = T> {
        (0..self.rows.count).flat_map(move |row| {
            let line = (self.rows.first + row * self.rows.step) * self.width + self.columns.first;
            (0..self.columns.count).map(move |column| self.plane[line + column * self.columns.step])
        })
    }
}

/// Each window put through a function.
fn pool<T: Number>(
    cx: &EvalCx<'_>,
    f: &(dyn Fn(Window<'_, T>) -> T + Sync),
) -> Result<Vec<Tensor>> {
    let layout = parse(cx.attrs.str("layout")?)?;
    let plain = parse("NCHW")?;
    let data = relayout(cx.arg(0)?, &layout, &plain)?;
    let &[batch, channels, height, width] = data.shape() else {
        return Err(OpError::Unsupported("a tensor of four dimensions is expected".into()));
    };
    let (dtype, out_shape) = cx.out()?;
    let extent = |axis: u8| {
        let inner = layout.block_position(axis).map_or(1, |at| out_shape[at]);
        layout.position(axis).map_or(1, |at| out_shape[at]) * inner
    };
    let (out_h, out_w) = (extent(b'H'), extent(b'W'));
    let (rows, columns) = match cx.op.attr("pool_size") {
        None => {
            let whole =
                |extent: usize| vec![Span { first: 0, step: 1, count: extent, padded: extent }];
            (whole(height), whole(width))
        }
        Some(_) => {
            let size: [i64; 2] = cx.attrs.int_array("pool_size")?;
            let strides: [i64; 2] = cx.attrs.int_array("strides")?;
            let padding: [i64; 4] = cx.attrs.int_array("padding")?;
            let dilation: [i64; 2] = cx.attrs.int_array("dilation")?;
            let spans = |axis: usize, extent: usize, out: usize| -> Vec<Span> {
                let steps = [dilation[axis], padding[axis], padding[axis + 2], strides[axis]];
                let steps = steps.map(|step| step as usize);
                (0..out).map(|at| Span::new(at, extent, size[axis] as usize, steps)).collect()
            };
            (spans(0, height, out_h), spans(1, width, out_w))
        }
    };
    let elements = data.elements::<T>();
    let mut out = vec![T::default(); batch * channels * out_h * out_w];
    fill(&mut out, out_h * out_w, &|number, out| {
        let plane = &elements[number * height * width..(number + 1) * height * width];
        for (out, &rows) in out.chunks_exact_mut(out_w).zip(&rows) {
            for (out, &columns) in out.iter_mut().zip(&columns) {
                *out = f(Window { plane, width, rows, columns });
            }
        }
    });
    let out = Tensor::from_vec_as(dtype, vec![batch, channels, out_h, out_w], out);
    // A layout that splits H or W was checked to fit by inference.
    Ok(vec![relayout(&out, &plain, &layout)?])
}

pub(crate) fn max_pool(cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
    with_number!(cx.arg(0)?.dtype(), T => pool(cx, &|window: Window<'_, T>| {
        window.elements().reduce(T::larger).unwrap_or_default()
    }))
}

pub(crate) fn avg_pool(cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
    let is_padding_counted =
        cx.op.attr("count_include_pad").is_some() && cx.attrs.bool("count_include_pad")?;
    with_float!(cx.arg(0)?.dtype(), T => pool(cx, &|window: Window<'_, T>| {
        let sum = window.elements().fold(0.0, |sum: f64, x| sum + x.to_f64());
        let count = match is_padding_counted {
            true => window.rows.padded * window.columns.padded,
            false => window.rows.count * window.columns.count,
        };
        T::from_f64(sum / count as f64)
    }))
}
