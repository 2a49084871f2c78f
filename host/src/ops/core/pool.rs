//! Pooling over two spatial axes.

use crate::eval::kernels;
use crate::ir::{Context, Type};
use crate::ops::{
    Arity, AttrDef, AttrDefault, AttrKind, InferCx, OpDef, OpError, OpPattern, attr, legalize,
};

use super::conv::Window;

inventory::submit! { OpDef {
    name: "nn.max_pool2d",
    summary: "The largest element of each window",
    args: Arity::exactly(1),
    attrs: MAX_POOL,
    pattern: OpPattern::OutFusable,
    infer: pool,
    evaluate: Some(kernels::pool::max_pool),
    legalize: Some(legalize::pool2d),
    ..OpDef::ELEMENTWISE
} }

inventory::submit! { OpDef {
    name: "nn.avg_pool2d",
    summary: "The mean of each window",
    args: Arity::exactly(1),
    attrs: AVG_POOL,
    pattern: OpPattern::OutFusable,
    infer: avg_pool,
    evaluate: Some(kernels::pool::avg_pool),
    legalize: Some(legalize::pool2d),
    ..OpDef::ELEMENTWISE
} }

inventory::submit! { OpDef {
    name: "nn.global_max_pool2d",
    summary: "The largest element of each channel",
    attrs: GLOBAL,
    pattern: OpPattern::OutFusable,
    infer: global_pool,
    evaluate: Some(kernels::pool::max_pool),
    legalize: Some(legalize::global_pool2d),
    ..OpDef::ELEMENTWISE
} }

inventory::submit! { OpDef {
    name: "nn.global_avg_pool2d",
    summary: "The mean of each channel",
    attrs: GLOBAL,
    pattern: OpPattern::OutFusable,
    infer: global_avg_pool,
    evaluate: Some(kernels::pool::avg_pool),
    legalize: Some(legalize::global_pool2d),
    ..OpDef::ELEMENTWISE
} }

const POOL_SIZE: AttrDef =
    attr("pool_size", AttrKind::Ints, AttrDefault::Required, "extent of the window");
const STRIDES: AttrDef =
    attr("strides", AttrKind::Ints, AttrDefault::Ints(&[1, 1]), "step of the window");
const PADDING: AttrDef =
    attr("padding", AttrKind::Ints, AttrDefault::Ints(&[0; 4]), "top, left, bottom, right");
const DILATION: AttrDef =
    attr("dilation", AttrKind::Ints, AttrDefault::Ints(&[1, 1]), "distance of the taps");
const CEIL_MODE: AttrDef = attr(
    "ceil_mode",
    AttrKind::Bool,
    AttrDefault::Bool(false),
    "whether the last window may reach over the end",
);
const LAYOUT: AttrDef =
    attr("layout", AttrKind::Str, AttrDefault::Str("NCHW"), "NCHW, NHWC, NCHW16c, …");
const COUNT_INCLUDE_PAD: AttrDef = attr(
    "count_include_pad",
    AttrKind::Bool,
    AttrDefault::Bool(false),
    "whether padding counts as zeros",
);

const MAX_POOL: &[AttrDef] = &[POOL_SIZE, STRIDES, PADDING, DILATION, CEIL_MODE, LAYOUT];
const AVG_POOL: &[AttrDef] =
    &[POOL_SIZE, STRIDES, PADDING, DILATION, CEIL_MODE, LAYOUT, COUNT_INCLUDE_PAD];
const GLOBAL: &[AttrDef] = &[LAYOUT];

fn avg_pool(cx: &InferCx<'_>) -> Result<Type, OpError> {
    cx.check_float(0)?;
    pool(cx)
}

fn pool(cx: &InferCx<'_>) -> Result<Type, OpError> {
    let size: [i64; 2] = cx.attrs.int_array("pool_size")?;
    if size.iter().any(|&size| !(1..=i32::MAX as i64).contains(&size)) {
        return cx.bad_attr("pool_size", size, "the extents must be positive");
    }
    let windows = [Window::of(cx, 0)?, Window::of(cx, 1)?];
    for (axis, (window, size)) in windows.iter().zip(size).enumerate() {
        let reach = (size - 1) * window.dilation + 1;
        if window.before.max(window.after) >= reach {
            let reason = format!("along axis {axis} a window of {reach} would see padding alone");
            return cx.bad_attr("padding", [window.before, window.after], reason);
        }
    }
    let is_ceil = cx.attrs.bool("ceil_mode")?;
    let layout = cx.layout("layout", "NCHW")?;
    let dtype = cx.tensor(0)?.dtype;
    let Some([n, c, h, w]) = cx.extents(0, &layout, b"NCHW")? else {
        return Ok(cx.tensor_type(dtype, None));
    };
    let out_h = windows[0].out_dim(cx, h, cx.cx.dim(size[0]), is_ceil)?;
    let out_w = windows[1].out_dim(cx, w, cx.cx.dim(size[1]), is_ceil)?;
    let dims = layout.dims(cx.cx, |axis| match axis {
        b'N' => n,
        b'C' => c,
        b'H' => out_h,
        _ => out_w,
    });
    Ok(cx.tensor_type(dtype, Some(&dims?)))
}

fn global_avg_pool(cx: &InferCx<'_>) -> Result<Type, OpError> {
    cx.check_float(0)?;
    global_pool(cx)
}

fn global_pool(cx: &InferCx<'_>) -> Result<Type, OpError> {
    let layout = cx.layout("layout", "NCHW")?;
    let tensor = cx.tensor(0)?;
    cx.extents(0, &layout, b"NCHW")?;
    let Some(dims) = tensor.dims else { return cx.arg(0) };
    let mut dims = dims.to_vec();
    for axis in [b'H', b'W'] {
        let position = layout.position(axis).expect("the layout was checked to have H and W");
        dims[position] = cx.cx.dim(1);
        if let Some(block) = layout.block_position(axis) {
            dims[block] = cx.cx.dim(1);
        }
    }
    Ok(cx.tensor_type(tensor.dtype, Some(&dims)))
}
