//! Normalizations.

use crate::eval::kernels::normalize;
use crate::ir::Type;
use crate::ops::{
    Arity, AttrDef, AttrDefault, AttrKind, InferCx, OpDef, OpError, OpPattern, attr, legalize,
};

inventory::submit! { OpDef {
    name: "nn.batch_norm",
    summary: "(x - mean) / sqrt(var + epsilon) * gamma + beta, for each channel; arguments x, gamma, \
              beta, mean, var",
    args: Arity::exactly(5),
    attrs: BATCH_NORM,
    pattern: OpPattern::Broadcast,
    infer: batch_norm,
    evaluate: Some(normalize::batch_norm),
    legalize: Some(legalize::batch_norm),
    ..OpDef::ELEMENTWISE
} }

inventory::submit! { OpDef {
    name: "nn.bias_add",
    summary: "x + b, with a number of b for each channel; arguments x, b",
    args: Arity::exactly(2),
    attrs: BIAS_ADD,
    pattern: OpPattern::Broadcast,
    infer: bias_add,
    evaluate: Some(normalize::bias_add),
    legalize: Some(legalize::bias_add),
    ..OpDef::ELEMENTWISE
} }

inventory::submit! { OpDef {
    name: "nn.lrn",
    summary: "x / (bias + alpha / size * sum of squares of the near channels) ^ beta",
    attrs: LRN,
    pattern: OpPattern::OutFusable,
    infer: lrn,
    evaluate: Some(normalize::lrn),
    legalize: Some(legalize::lrn),
    ..OpDef::ELEMENTWISE
} }

inventory::submit! { OpDef {
    name: "nn.softmax",
    summary: "exp(x) / sum(exp(x)) along an axis",
    attrs: SOFTMAX,
    pattern: OpPattern::OutFusable,
    infer: softmax,
    evaluate: Some(normalize::softmax),
    legalize: Some(legalize::softmax),
    ..OpDef::ELEMENTWISE
} }

inventory::submit! { OpDef {
    name: "nn.log_softmax",
    summary: "x - log(sum(exp(x))) along an axis",
    attrs: SOFTMAX,
    pattern: OpPattern::OutFusable,
    infer: softmax,
    evaluate: Some(normalize::log_softmax),
    legalize: Some(legalize::log_softmax),
    ..OpDef::ELEMENTWISE
} }

const BATCH_NORM: &[AttrDef] = &[
    attr("epsilon", AttrKind::Float, AttrDefault::Float(1e-5), "keeps the root from zero"),
    attr("axis", AttrKind::Int, AttrDefault::Int(1), "the axis of the channels"),
];

const BIAS_ADD: &[AttrDef] =
    &[attr("axis", AttrKind::Int, AttrDefault::Int(1), "the axis of the channels")];

const LRN: &[AttrDef] = &[
    attr("size", AttrKind::Int, AttrDefault::Required, "how many channels are near, all counted"),
    attr("alpha", AttrKind::Float, AttrDefault::Float(1e-4), "scale of the sum"),
    attr("beta", AttrKind::Float, AttrDefault::Float(0.75), "exponent"),
    attr("bias", AttrKind::Float, AttrDefault::Float(1.0), "what is added to the sum"),
    attr("axis", AttrKind::Int, AttrDefault::Int(1), "the axis of the channels"),
    attr("layout", AttrKind::Str, AttrDefault::Str("NCHW"), "NCHW, NHWC, NCHW16c, …"),
];

const SOFTMAX: &[AttrDef] =
    &[attr("axis", AttrKind::Int, AttrDefault::Int(-1), "the axis that is summed over")];

fn batch_norm(cx: &InferCx<'_>) -> Result<Type, OpError> {
    cx.check_float(0)?;
    per_channel(cx, 1..5)
}

fn bias_add(cx: &InferCx<'_>) -> Result<Type, OpError> {
    let found = cx.tensor(0)?.dtype;
    match found.is_bool() {
        true => Err(OpError::WrongDType { index: 0, expected: "a number".into(), found }),
        false => per_channel(cx, 1..2),
    }
}

/// The type of the first argument, where each of `params` has a number for each of its channels.
fn per_channel(cx: &InferCx<'_>, params: std::ops::Range<usize>) -> Result<Type, OpError> {
    let axis = cx.attrs.int("axis")?;
    for index in params {
        cx.check_same_dtype(index)?;
        let channels = cx.tensor_of_rank(index, 1)?.dims;
        let (Some(dims), Some(&[channels])) = (cx.tensor(0)?.dims, channels) else { continue };
        let channel = dims[cx.axis("axis", axis, dims.len())?];
        if cx.is_different(channel, channels) {
            let what = format!("the channels of the data and argument {}", index + 1);
            return Err(cx.mismatch(&what, &[channel], &[channels]));
        }
    }
    cx.arg(0)
}

fn lrn(cx: &InferCx<'_>) -> Result<Type, OpError> {
    cx.check_float(0)?;
    let size = cx.attrs.int("size")?;
    if size < 1 {
        return cx.bad_attr("size", size, "it must be positive");
    }
    let layout = cx.layout("layout", "NCHW")?;
    cx.extents(0, &layout, b"NCHW")?;
    let axis = cx.axis("axis", cx.attrs.int("axis")?, layout.rank())?;
    match layout.position(b'C') == Some(axis) {
        true => cx.arg(0),
        false => {
            cx.bad_attr("axis", axis, format!("the channels of {} are elsewhere", layout.text()))
        }
    }
}

fn softmax(cx: &InferCx<'_>) -> Result<Type, OpError> {
    cx.check_float(0)?;
    if let Some(dims) = cx.tensor(0)?.dims {
        cx.axis("axis", cx.attrs.int("axis")?, dims.len())?;
    }
    cx.arg(0)
}
