//! Convolution.

use crate::eval::kernels::conv;
use crate::ir::{Context, Dim, Type};
use crate::ops::{
    Arity, AttrDef, AttrDefault, AttrKind, InferCx, OUT_DTYPE, OpDef, OpError, OpPattern, attr,
    legalize,
};

inventory::submit! { OpDef {
    name: "nn.conv2d",
    summary: "Convolution over two spatial axes",
    args: Arity::exactly(2),
    attrs: ATTRS,
    pattern: OpPattern::OutFusable,
    infer,
    evaluate: Some(conv::conv2d),
    legalize: Some(legalize::conv2d),
    ..OpDef::ELEMENTWISE
} }

const ATTRS: &[AttrDef] = &[
    attr("strides", AttrKind::Ints, AttrDefault::Ints(&[1, 1]), "step of the window"),
    attr("padding", AttrKind::Ints, AttrDefault::Ints(&[0; 4]), "top, left, bottom, right"),
    attr("dilation", AttrKind::Ints, AttrDefault::Ints(&[1, 1]), "distance of the taps"),
    attr("groups", AttrKind::Int, AttrDefault::Int(1), "groups of channels that do not mix"),
    attr("data_layout", AttrKind::Str, AttrDefault::Str("NCHW"), "NCHW, NHWC, NCHW16c, …"),
    attr("kernel_layout", AttrKind::Str, AttrDefault::Str("OIHW"), "OIHW, OIHW16i16o, OIHW16o, …"),
    attr("out_layout", AttrKind::Str, AttrDefault::Str(""), "data_layout when empty"),
    OUT_DTYPE,
];

fn infer(cx: &InferCx<'_>) -> Result<Type, OpError> {
    let data_layout = cx.layout("data_layout", "NCHW")?;
    let kernel_layout = cx.layout("kernel_layout", "OIHW")?;
    let out_layout = match cx.attrs.str("out_layout")? {
        "" => data_layout.clone(),
        _ => cx.layout("out_layout", "NCHW")?,
    };
    let windows = [Window::of(cx, 0)?, Window::of(cx, 1)?];
    let groups = cx.attrs.int("groups")?;
    if groups < 1 {
        return cx.bad_attr("groups", groups, "it must be positive");
    }
    cx.check_same_dtype(1)?;
    let dtype = cx.product_dtype()?;
    let data = cx.extents(0, &data_layout, b"NCHW")?;
    let kernel = cx.extents(1, &kernel_layout, b"OIHW")?;
    let (Some([n, c, h, w]), Some([o, i, kernel_h, kernel_w])) = (data, kernel) else {
        return Ok(cx.tensor_type(dtype, None));
    };
    let needed = cx.cx.dim_mul(i, cx.cx.dim(groups));
    if cx.is_different(c, needed) {
        let what = format!("the channels of data and kernel, with groups = {groups},");
        return Err(cx.mismatch(&what, &[c], &[needed]));
    }
    if cx.value(o).is_some_and(|o| o % groups != 0) {
        return cx.bad_attr("groups", groups, "the output channels are no multiple of it");
    }
    let out_h = windows[0].out_dim(cx, h, kernel_h, false)?;
    let out_w = windows[1].out_dim(cx, w, kernel_w, false)?;
    let extent = |axis| match axis {
        b'N' => n,
        b'C' => o,
        b'H' => out_h,
        _ => out_w,
    };
    match out_layout.dims(cx.cx, extent) {
        Ok(dims) => Ok(cx.tensor_type(dtype, Some(&dims))),
        Err(error) => cx.bad_attr("out_layout", out_layout.text(), error.to_string()),
    }
}

/// How a window moves along one axis.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub(super) stride: i64,
    pub(super) before: i64,
    pub(super) after: i64,
    pub(super) dilation: i64,
}

impl Window {
    /// The window along spatial axis `axis`, from the attributes `strides`, `padding` and `dilation`.
    pub(super) fn of(cx: &InferCx<'_>, axis: usize) -> Result<Self, OpError> {
        let strides: [i64; 2] = cx.attrs.int_array("strides")?;
        let padding: [i64; 4] = cx.attrs.int_array("padding")?;
        let dilation: [i64; 2] = cx.attrs.int_array("dilation")?;
        let is_small = |value: i64| value <= i32::MAX as i64;
        if strides.iter().any(|&stride| stride < 1 || !is_small(stride)) {
            return cx.bad_attr("strides", strides, "strides must be positive");
        }
        if padding.iter().any(|&padding| padding < 0 || !is_small(padding)) {
            return cx.bad_attr("padding", padding, "padding must not be negative");
        }
        if dilation.iter().any(|&dilation| dilation < 1 || !is_small(dilation)) {
            return cx.bad_attr("dilation", dilation, "dilations must be positive");
        }
        Ok(Self {
            stride: strides[axis],
            before: padding[axis],
            after: padding[axis + 2],
            dilation: dilation[axis],
        })
    }

    /// How many places a window of `kernel` taps has on an axis of `extent`. With `is_ceil` the last
    /// place may reach over the end, as long as it starts before the padding after the end.
    pub(super) fn out_dim(
        &self,
        cx: &InferCx<'_>,
        extent: Dim,
        kernel: Dim,
        is_ceil: bool,
    ) -> Result<Dim, OpError> {
        let terms = cx.cx;
        let (dim, one) = (|value| terms.dim(value), terms.dim(1));
        let padded = terms.dim_add(extent, dim(self.before + self.after));
        let span = terms.dim_mul(terms.dim_sub(kernel, one), dim(self.dilation));
        let room = terms.dim_sub(terms.dim_sub(padded, span), one);
        if cx.value(room).is_some_and(|room| room < 0) {
            let reach = terms.dim_add(span, one);
            return Err(cx.mismatch(
                "the window is larger than the data; they",
                &[reach],
                &[padded],
            ));
        }
        let stride = dim(self.stride);
        if !is_ceil {
            return Ok(terms.dim_add(terms.dim_floor_div(room, stride), one));
        }
        let up = terms.dim_add(room, dim(self.stride - 1));
        let count = terms.dim_add(terms.dim_floor_div(up, stride), one);
        let last = terms.dim_add(extent, dim(self.before - 1));
        let limit = terms.dim_add(terms.dim_floor_div(last, stride), one);
        Ok(terms.dim_min(count, limit))
    }
}
