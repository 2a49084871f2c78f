//! How a window moves along a spatial axis, as type inference sees it.

use tenon_plugin_api::op::prelude::*;

/// How a window moves along one axis.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    pub(crate) stride: i64,
    pub(crate) before: i64,
    pub(crate) after: i64,
    pub(crate) dilation: i64,
}

impl Window {
    /// The windows along both spatial axes, of the attributes `strides`, `padding` and `dilation`.
    pub(crate) fn both(
        cx: &InferCx<'_>,
        strides: [i64; 2],
        padding: [i64; 4],
        dilation: [i64; 2],
    ) -> Result<[Self; 2]> {
        let all = Self::each(cx, &strides, &padding, &dilation)?;
        Ok([0, 1].map(|axis| all[axis]))
    }

    /// The windows along each spatial axis; padding is that before each, then that behind each.
    pub(crate) fn each(
        cx: &InferCx<'_>,
        strides: &[i64],
        padding: &[i64],
        dilation: &[i64],
    ) -> Result<Vec<Self>> {
        let is_small = |value: i64| value <= i32::MAX as i64;
        if strides.iter().any(|&stride| stride < 1 || !is_small(stride)) {
            return cx.bad_attr("strides", strides, "each must be between 1 and 2147483647");
        }
        if padding.iter().any(|&padding| padding < 0 || !is_small(padding)) {
            return cx.bad_attr("padding", padding, "each must be between 0 and 2147483647");
        }
        if dilation.iter().any(|&dilation| dilation < 1 || !is_small(dilation)) {
            return cx.bad_attr("dilation", dilation, "each must be between 1 and 2147483647");
        }
        let rank = strides.len();
        let window = |axis: usize| Self {
            stride: strides[axis],
            before: padding[axis],
            after: padding[axis + rank],
            dilation: dilation[axis],
        };
        Ok((0..rank).map(window).collect())
    }

    /// How many places a window of `kernel` taps has on an axis of `extent`. With `is_ceil` the last
    /// place may reach over the end, as long as it starts before the padding after the end.
    pub(crate) fn out_dim(
        &self,
        cx: &InferCx<'_>,
        extent: Dim,
        kernel: Dim,
        is_ceil: bool,
    ) -> Result<Dim> {
        let (dim, one) = (|value| cx.dim(value), cx.dim(1));
        let padded = cx.dim_add(extent, dim(self.before + self.after));
        let span = cx.dim_mul(cx.dim_sub(kernel, one), dim(self.dilation));
        let room = cx.dim_sub(cx.dim_sub(padded, span), one);
        if cx.value(room).is_some_and(|room| room < 0) {
            let reach = cx.dim_add(span, one);
            return Err(cx.mismatch(
                "the window is larger than the data; they",
                &[reach],
                &[padded],
            ));
        }
        let stride = dim(self.stride);
        if !is_ceil {
            return Ok(cx.dim_add(cx.dim_floor_div(room, stride), one));
        }
        let up = cx.dim_add(room, dim(self.stride - 1));
        let count = cx.dim_add(cx.dim_floor_div(up, stride), one);
        let last = cx.dim_add(extent, dim(self.before - 1));
        let limit = cx.dim_add(cx.dim_floor_div(last, stride), one);
        Ok(cx.dim_min(count, limit))
    }
}
