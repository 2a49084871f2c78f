//! Normalizations by the statistics of the tensor itself.
//!
//! Layer normalization after J. Ba, J. Kiros and G. Hinton, 2016; instance normalization after D. Ulyanov,
//! A. Vedaldi and V. Lempitsky, 2016; group normalization after Y. Wu and K. He, 2018.

use crate::eval::kernels::group_norm;
use crate::ir::{Dim, Type};
use crate::ops::{
    Arity, AttrDef, AttrDefault, AttrKind, InferCx, OpDef, OpError, OpPattern, attr, legalize,
};

inventory::submit! { OpDef {
    name: "nn.layer_norm",
    summary: "(x - mean) / sqrt(variance + epsilon) * gamma + beta, with mean and variance over axes; arguments \
              x, gamma, beta, of which the last two have these axes",
    args: Arity::exactly(3),
    attrs: LAYER_NORM,
    pattern: OpPattern::OutFusable,
    infer: layer_norm,
    evaluate: Some(group_norm::standardize),
    legalize: Some(legalize::standardize),
    ..OpDef::ELEMENTWISE
} }

inventory::submit! { OpDef {
    name: "nn.group_norm",
    summary: "(x - mean) / sqrt(variance + epsilon) * gamma + beta, with mean and variance over all axes of a \
              group of channels but the first; arguments x, gamma, beta, of which the last two have a number for \
              each channel",
    args: Arity::exactly(3),
    attrs: GROUP_NORM,
    pattern: OpPattern::OutFusable,
    infer: grouped,
    evaluate: Some(group_norm::standardize),
    legalize: Some(legalize::standardize),
    ..OpDef::ELEMENTWISE
} }

inventory::submit! { OpDef {
    name: "nn.instance_norm",
    summary: "(x - mean) / sqrt(variance + epsilon) * gamma + beta, with mean and variance over all axes of a \
              channel but the first; arguments x, gamma, beta, of which the last two have a number for each channel",
    args: Arity::exactly(3),
    attrs: INSTANCE_NORM,
    pattern: OpPattern::OutFusable,
    infer: instance_norm,
    evaluate: Some(group_norm::standardize),
    legalize: Some(legalize::standardize),
    ..OpDef::ELEMENTWISE
} }

inventory::submit! { OpDef {
    name: "nn.l2_normalize",
    summary: "x / sqrt(max(sum of squares, epsilon)), with the sum over axes",
    attrs: L2_NORMALIZE,
    pattern: OpPattern::OutFusable,
    infer: l2_normalize,
    evaluate: Some(group_norm::l2_normalize),
    legalize: Some(legalize::l2_normalize),
    ..OpDef::ELEMENTWISE
} }

const EPSILON: AttrDef =
    attr("epsilon", AttrKind::Float, AttrDefault::Float(1e-5), "keeps the root from zero");
const CHANNEL_AXIS: AttrDef =
    attr("channel_axis", AttrKind::Int, AttrDefault::Int(1), "the axis of the channels");

const LAYER_NORM: &[AttrDef] = &[
    attr("axes", AttrKind::Ints, AttrDefault::Ints(&[-1]), "the axes of one mean, ascending"),
    EPSILON,
];

const GROUP_NORM: &[AttrDef] = &[
    attr("num_groups", AttrKind::Int, AttrDefault::Required, "groups of channels"),
    CHANNEL_AXIS,
    EPSILON,
];

const INSTANCE_NORM: &[AttrDef] = &[CHANNEL_AXIS, EPSILON];

const L2_NORMALIZE: &[AttrDef] = &[
    attr("axis", AttrKind::Ints, AttrDefault::Ints(&[-1]), "the axes that are summed over"),
    attr("epsilon", AttrKind::Float, AttrDefault::Float(1e-12), "the least sum of squares"),
];

fn layer_norm(cx: &InferCx<'_>) -> Result<Type, OpError> {
    cx.check_float(0)?;
    let given = cx.attrs.ints("axes")?;
    let axes = match cx.tensor(0)?.dims {
        Some(dims) => Some((dims, cx.axes("axes", &given, dims.len())?)),
        None => None,
    };
    let is_ascending = |axes: &[usize]| axes.windows(2).all(|pair| pair[0] < pair[1]);
    if given.is_empty() || axes.as_ref().is_some_and(|(_, axes)| !is_ascending(axes)) {
        return cx.bad_attr("axes", given, "one axis or more is expected, in ascending order");
    }
    for index in 1..3 {
        cx.check_same_dtype(index)?;
        let param = cx.tensor_of_rank(index, given.len())?.dims;
        let (Some((dims, axes)), Some(param)) = (&axes, param) else { continue };
        let normal: Vec<Dim> = axes.iter().map(|&axis| dims[axis]).collect();
        if normal.iter().zip(param).any(|(&a, &b)| cx.is_different(a, b)) {
            let what = format!("the axes of the data and argument {}", index + 1);
            return Err(cx.mismatch(&what, &normal, param));
        }
    }
    cx.arg(0)
}

fn grouped(cx: &InferCx<'_>) -> Result<Type, OpError> {
    let groups = cx.attrs.int("num_groups")?;
    if groups < 1 {
        return cx.bad_attr("num_groups", groups, "it must be positive");
    }
    let Some(channels) = channels(cx, 2)? else { return cx.arg(0) };
    match cx.value(channels) {
        Some(channels) if channels % groups != 0 => {
            cx.bad_attr("num_groups", groups, format!("it must divide the {channels} channels"))
        }
        _ => cx.arg(0),
    }
}

fn instance_norm(cx: &InferCx<'_>) -> Result<Type, OpError> {
    channels(cx, 3)?;
    cx.arg(0)
}

/// The channels of the first argument, of which the others have a number for each, if its rank is known.
fn channels(cx: &InferCx<'_>, least_rank: usize) -> Result<Option<Dim>, OpError> {
    cx.check_float(0)?;
    let axis = cx.attrs.int("channel_axis")?;
    let channels = match cx.tensor(0)?.dims {
        None => None,
        Some(dims) if dims.len() < least_rank => {
            return Err(cx.wrong_arg(0, &format!("a tensor of {least_rank} dimensions or more")));
        }
        Some(dims) => match cx.axis("channel_axis", axis, dims.len())? {
            0 => return cx.bad_attr("channel_axis", axis, "the first axis is that of the batch"),
            axis => Some(dims[axis]),
        },
    };
    for index in 1..3 {
        cx.check_same_dtype(index)?;
        let param = cx.tensor_of_rank(index, 1)?.dims;
        let (Some(channels), Some(&[count])) = (channels, param) else { continue };
        if cx.is_different(channels, count) {
            let what = format!("the channels of the data and argument {}", index + 1);
            return Err(cx.mismatch(&what, &[channels], &[count]));
        }
    }
    Ok(channels)
}

fn l2_normalize(cx: &InferCx<'_>) -> Result<Type, OpError> {
    cx.check_float(0)?;
    let axes = cx.attrs.ints("axis")?;
    if let Some(dims) = cx.tensor(0)?.dims {
        cx.axes("axis", &axes, dims.len())?;
    }
    let epsilon = cx.attrs.float("epsilon")?;
    match epsilon > 0.0 {
        true => cx.arg(0),
        false => cx.bad_attr("epsilon", epsilon, "it must be positive"),
    }
}
