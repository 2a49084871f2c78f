//! Matrix multiplication.

use crate::eval::kernels;
use crate::ir::{Context, Dim, Type};
use crate::ops::{
    Arity, AttrDef, AttrDefault, AttrKind, InferCx, OUT_DTYPE, OpDef, OpError, OpPattern, attr,
    legalize,
};

use super::broadcast::broadcast;

inventory::submit! { OpDef {
    name: "nn.dense",
    summary: "x * transpose(w), over the last axis of x",
    args: Arity::exactly(2),
    attrs: DENSE,
    pattern: OpPattern::OutFusable,
    infer: dense,
    evaluate: Some(kernels::matmul::dense),
    legalize: Some(legalize::dense),
    ..OpDef::ELEMENTWISE
} }

inventory::submit! { OpDef {
    name: "matmul",
    summary: "Matrix product over the last two axes; those before are broadcast",
    args: Arity::exactly(2),
    attrs: MATMUL,
    pattern: OpPattern::OutFusable,
    infer: matmul,
    evaluate: Some(kernels::matmul::matmul),
    legalize: Some(legalize::matmul),
    ..OpDef::ELEMENTWISE
} }

const DENSE: &[AttrDef] = &[
    attr("weight_layout", AttrKind::Str, AttrDefault::Str("NK"), "NK, or packed: NK16n, …"),
    attr("units", AttrKind::Int, AttrDefault::Absent, "N, where packing rounded it up"),
    OUT_DTYPE,
];

const MATMUL: &[AttrDef] = &[
    attr("transpose_a", AttrKind::Bool, AttrDefault::Bool(false), "a is given transposed"),
    attr("transpose_b", AttrKind::Bool, AttrDefault::Bool(false), "b is given transposed"),
    OUT_DTYPE,
];

fn dense(cx: &InferCx<'_>) -> Result<Type, OpError> {
    let layout = cx.layout("weight_layout", "NK")?;
    cx.check_same_dtype(1)?;
    let x = cx.tensor(0)?;
    let weight = cx.extents(1, &layout, b"NK")?;
    let dtype = cx.product_dtype()?;
    let (Some(dims), Some([packed, depth])) = (x.dims, weight) else {
        return Ok(cx.tensor_type(dtype, None));
    };
    let Some((&last, rows)) = dims.split_last() else {
        return Err(cx.wrong_arg(0, "a tensor of at least one dimension"));
    };
    if cx.is_different(last, depth) {
        return Err(cx.mismatch(
            "the last dimension of the data and that of the weight",
            &[last],
            &[depth],
        ));
    }
    let units = match cx.attrs.has("units") {
        true => Some(cx.attrs.int("units")?),
        false => None,
    };
    let block = layout.block(b'N').unwrap_or(1);
    if let (Some(units), Some(packed)) = (units, cx.value(packed))
        && !(packed - block < units && units <= packed)
    {
        return cx.bad_attr(
            "units",
            units,
            format!("the weight has {packed} in blocks of {block}"),
        );
    }
    let units = units.map_or(packed, |units| cx.cx.dim(units));
    let dims: Vec<Dim> = rows.iter().copied().chain([units]).collect();
    Ok(cx.tensor_type(dtype, Some(&dims)))
}

fn matmul(cx: &InferCx<'_>) -> Result<Type, OpError> {
    cx.check_same_dtype(1)?;
    let (a, b) = (cx.tensor(0)?, cx.tensor(1)?);
    let dtype = cx.product_dtype()?;
    let (Some(a_dims), Some(b_dims)) = (a.dims, b.dims) else {
        return Ok(cx.tensor_type(dtype, None));
    };
    let Some((a_batch, &a_matrix)) = a_dims.split_last_chunk::<2>() else {
        return Err(cx.wrong_arg(0, "a tensor of at least two dimensions"));
    };
    let Some((b_batch, &b_matrix)) = b_dims.split_last_chunk::<2>() else {
        return Err(cx.wrong_arg(1, "a tensor of at least two dimensions"));
    };
    let flip = |[x, y]: [Dim; 2], is_flipped| if is_flipped { [y, x] } else { [x, y] };
    let [m, a_depth] = flip(a_matrix, cx.attrs.bool("transpose_a")?);
    let [b_depth, n] = flip(b_matrix, cx.attrs.bool("transpose_b")?);
    if cx.is_different(a_depth, b_depth) {
        return Err(cx.mismatch("the shapes, over which is summed,", a_dims, b_dims));
    }
    let mut dims = broadcast(cx, a_batch, b_batch)?;
    dims.extend([m, n]);
    Ok(cx.tensor_type(dtype, Some(&dims)))
}
