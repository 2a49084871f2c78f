//! The windows of pooling: their types, and the elements that each of them covers.

use tenon_plugin_api::op::prelude::*;

use crate::kernel::moves::{parse, relayout};
use crate::kernel::parallel::fill;
use crate::kernel::window::Window as Moves;

/// The attributes that both kinds of pooling have.
pub(crate) struct Pool<'a> {
    pub(crate) pool_size: [i64; 2],
    pub(crate) strides: [i64; 2],
    pub(crate) padding: [i64; 4],
    pub(crate) dilation: [i64; 2],
    pub(crate) ceil_mode: bool,
    pub(crate) layout: &'a Layout,
}

/// The attributes of pooling as the operator's struct has them.
macro_rules! pool {
    ($self:ident) => {
        $crate::pooling::windows::Pool {
            pool_size: $self.pool_size,
            strides: $self.strides,
            padding: $self.padding,
            dilation: $self.dilation,
            ceil_mode: $self.ceil_mode,
            layout: &$self.layout,
        }
    };
}
pub(crate) use pool;

impl Pool<'_> {
    /// The type of the result.
    pub(crate) fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        let size = self.pool_size;
        if size.iter().any(|&size| !(1..=i32::MAX as i64).contains(&size)) {
            return cx.bad_attr("pool_size", size, "the extents must be positive");
        }
        let windows = Moves::both(cx, self.strides, self.padding, self.dilation)?;
        for (axis, (window, size)) in windows.iter().zip(size).enumerate() {
            let reach = (size - 1) * window.dilation + 1;
            if window.before.max(window.after) >= reach {
                let reason =
                    format!("along axis {axis} a window of {reach} would see padding alone");
                return cx.bad_attr("padding", [window.before, window.after], reason);
            }
        }
        let is_ceil = self.ceil_mode;
        let layout = cx.layout("layout", "NCHW")?;
        let dtype = cx.tensor(0)?.dtype;
        let Some([n, c, h, w]) = cx.extents(0, &layout, b"NCHW")? else {
            return Ok(cx.tensor_type(dtype, None));
        };
        let out_h = windows[0].out_dim(cx, h, cx.dim(size[0]), is_ceil)?;
        let out_w = windows[1].out_dim(cx, w, cx.dim(size[1]), is_ceil)?;
        let dims = layout.dims(cx, |axis| match axis {
            b'N' => n,
            b'C' => c,
            b'H' => out_h,
            _ => out_w,
        });
        Ok(cx.tensor_type(dtype, Some(&dims?)))
    }

    /// Each window put through a function.
    pub(crate) fn evaluate<T: Number>(
        &self,
        cx: &EvalCx<'_>,
        f: &(dyn Fn(Window<'_, T>) -> T + Sync),
    ) -> Result<Vec<Tensor>> {
        let spans = |axis: usize, extent: usize, out: usize| -> Vec<Span> {
            let steps = [
                self.dilation[axis],
                self.padding[axis],
                self.padding[axis + 2],
                self.strides[axis],
            ];
            let steps = steps.map(|step| step as usize);
            (0..out).map(|at| Span::new(at, extent, self.pool_size[axis] as usize, steps)).collect()
        };
        each_window(cx, self.layout, &spans, f)
    }
}

/// The type of pooling over whole planes.
pub(crate) fn infer_global(cx: &InferCx<'_>) -> Result<Type> {
    let layout = cx.layout("layout", "NCHW")?;
    let tensor = cx.tensor(0)?;
    cx.extents(0, &layout, b"NCHW")?;
    let Some(dims) = tensor.dims else { return cx.arg(0) };
    let mut dims = dims.to_vec();
    for axis in [b'H', b'W'] {
        let position = layout.position(axis).expect("the layout was checked to have H and W");
        dims[position] = cx.dim(1);
        if let Some(block) = layout.block_position(axis) {
            dims[block] = cx.dim(1);
        }
    }
    Ok(cx.tensor_type(tensor.dtype, Some(&dims)))
}

/// Each plane put through a function.
pub(crate) fn evaluate_global<T: Number>(
    cx: &EvalCx<'_>,
    layout: &Layout,
    f: &(dyn Fn(Window<'_, T>) -> T + Sync),
) -> Result<Vec<Tensor>> {
    let whole = |_: usize, extent: usize, _: usize| {
        vec![Span { first: 0, step: 1, count: extent, padded: extent }]
    };
    each_window(cx, layout, &whole, f)
}

/// The windows along a spatial axis of an extent, of which there are so many.
type Spans<'a> = &'a dyn Fn(usize, usize, usize) -> Vec<Span>;

fn each_window<T: Number>(
    cx: &EvalCx<'_>,
    layout: &Layout,
    spans: Spans<'_>,
    f: &(dyn Fn(Window<'_, T>) -> T + Sync),
) -> Result<Vec<Tensor>> {
    let plain = parse("NCHW")?;
    let data = relayout(cx.arg(0)?, layout, &plain)?;
    let &[batch, channels, height, width] = data.shape() else {
        return Err(OpError::Unsupported("a tensor of four dimensions is expected".into()));
    };
    let (dtype, out_shape) = cx.out()?;
    let extent = |axis: u8| {
        let inner = layout.block_position(axis).map_or(1, |at| out_shape[at]);
        layout.position(axis).map_or(1, |at| out_shape[at]) * inner
    };
    let (out_h, out_w) = (extent(b'H'), extent(b'W'));
    let (rows, columns) = (spans(0, height, out_h), spans(1, width, out_w));
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
    Ok(vec![relayout(&out, &plain, layout)?])
}

/// What a window covers: the elements, and how many places it has with the padding.
pub(crate) struct Window<'a, T> {
    plane: &'a [T],
    width: usize,
    pub(crate) rows: Span,
    pub(crate) columns: Span,
}

/// The indices that a window meets along one axis.
#[derive(Clone, Copy)]
pub(crate) struct Span {
    first: usize,
    step: usize,
    pub(crate) count: usize,
    /// How many it has in the padded axis.
    pub(crate) padded: usize,
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
    pub(crate) fn elements(&self) -> impl Iterator<Item = T> {
        (0..self.rows.count).flat_map(move |row| {
            let line = (self.rows.first + row * self.rows.step) * self.width + self.columns.first;
            (0..self.columns.count).map(move |column| self.plane[line + column * self.columns.step])
        })
    }
}
