//! Padding.

use crate::eval::kernels::slice;
use crate::ir::{Context, Dim, Type};
use crate::ops::{
    AttrDef, AttrDefault, AttrKind, InferCx, OpDef, OpError, OpPattern, attr, legalize,
};

inventory::submit! { OpDef {
    name: "nn.pad",
    summary: "The tensor with elements before and after each axis",
    attrs: ATTRS,
    pattern: OpPattern::Injective,
    infer,
    evaluate: Some(slice::pad),
    legalize: Some(legalize::pad),
    ..OpDef::ELEMENTWISE
} }

const ATTRS: &[AttrDef] = &[
    attr("pad_width", AttrKind::Ints, AttrDefault::Required, "before, after for each axis in turn"),
    attr("mode", AttrKind::Str, AttrDefault::Str("constant"), "constant, edge or reflect"),
    attr("value", AttrKind::Float, AttrDefault::Float(0.0), "what constant padding holds"),
];

fn infer(cx: &InferCx<'_>) -> Result<Type, OpError> {
    let tensor = cx.tensor(0)?;
    let width = cx.attrs.ints("pad_width")?;
    if width.iter().any(|&width| !(0..=i32::MAX as i64).contains(&width)) {
        return cx.bad_attr("pad_width", width, "it must not be negative");
    }
    let mode = cx.attrs.str("mode")?;
    if !["constant", "edge", "reflect"].contains(&mode) {
        return cx.bad_attr("mode", mode, "it is constant, edge or reflect");
    }
    let Some(dims) = tensor.dims else { return cx.arg(0) };
    if width.len() != 2 * dims.len() {
        let reason = format!("two integers for each of {} dimensions are expected", dims.len());
        return cx.bad_attr("pad_width", width, reason);
    }
    let mut padded: Vec<Dim> = Vec::with_capacity(dims.len());
    for (pair, &dim) in width.chunks_exact(2).zip(dims) {
        let extent = cx.value(dim);
        let is_short = match mode {
            "edge" => extent == Some(0),
            "reflect" => extent.is_some_and(|extent| extent <= pair[0].max(pair[1])),
            _ => false,
        };
        if is_short && pair[0].max(pair[1]) > 0 {
            return cx.bad_attr("pad_width", &width, format!("{mode} needs more elements"));
        }
        padded.push(cx.cx.dim_add(dim, cx.cx.dim(pair[0] + pair[1])));
    }
    Ok(cx.tensor_type(tensor.dtype, Some(&padded)))
}
