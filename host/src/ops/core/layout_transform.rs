//! Transformation from one layout to another.

use crate::eval::kernels::shape;
use crate::ir::{Dim, Type};
use crate::ops::{
    AttrDef, AttrDefault, AttrKind, InferCx, Layout, OpDef, OpError, OpPattern, attr, legalize,
};

inventory::submit! { OpDef {
    name: "layout_transform",
    summary: "The same tensor in another layout; an extent that is split must be a multiple of its block",
    attrs: ATTRS,
    pattern: OpPattern::Injective,
    infer,
    evaluate: Some(shape::layout_transform),
    legalize: Some(legalize::layout_transform),
    ..OpDef::ELEMENTWISE
} }

const ATTRS: &[AttrDef] = &[
    attr("src_layout", AttrKind::Str, AttrDefault::Required, "the layout it has"),
    attr("dst_layout", AttrKind::Str, AttrDefault::Required, "the layout of the result"),
];

fn infer(cx: &InferCx<'_>) -> Result<Type, OpError> {
    let text = cx.attrs.str("src_layout")?;
    let source = match Layout::parse(text) {
        Ok(layout) => layout,
        Err(error) => return cx.bad_attr("src_layout", text, error.to_string()),
    };
    let axes = String::from_utf8_lossy(source.axes()).into_owned();
    let target = cx.layout("dst_layout", &axes)?;
    let tensor = cx.tensor(0)?;
    let Some(dims) = tensor.dims else { return cx.arg(0) };
    let extents: Vec<Dim> =
        source.extents(cx.cx, dims).map_err(|error| cx.wrong_arg(0, &error.to_string()))?;
    let extent = |axis| extents[source.position(axis).expect("both have the same axes")];
    match target.dims(cx.cx, extent) {
        Ok(dims) => Ok(cx.tensor_type(tensor.dtype, Some(&dims))),
        Err(error) => cx.bad_attr("dst_layout", target.text(), error.to_string()),
    }
}
