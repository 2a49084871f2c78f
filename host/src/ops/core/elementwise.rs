//! Operators that work on each element by itself.

use crate::eval::kernels::unary;
use crate::ir::Type;
use crate::ops::{AttrDef, AttrDefault, AttrKind, InferCx, OpDef, OpError, attr, legalize};

macro_rules! elementwise {
    ($($name:literal $summary:literal $infer:ident $evaluate:ident $($attrs:expr)?;)*) => {$(
        inventory::submit! { OpDef {
            name: $name,
            summary: $summary,
            infer: $infer,
            evaluate: Some(unary::$evaluate),
            legalize: Some(legalize::unary),
            $(attrs: $attrs,)?
            ..OpDef::ELEMENTWISE
        } }
    )*};
}

elementwise! {
    "nn.relu" "The larger of each element and zero" number relu;
    "sigmoid" "1 / (1 + exp(-x))" float sigmoid;
    "tanh" "Hyperbolic tangent" float tanh;
    "exp" "Exponential function" float exp;
    "log" "Natural logarithm" float log;
    "sqrt" "Square root" float sqrt;
    "rsqrt" "1 / sqrt(x)" float rsqrt;
    "negative" "-x" number negative;
    "abs" "Absolute value" number abs;
    "erf" "Gauss error function" float erf;
    "floor" "The largest integer that is not above" float floor;
    "ceil" "The smallest integer that is not below" float ceil;
    "round" "The nearest integer, the even one of two" float round;
    "sin" "Sine" float sin;
    "cos" "Cosine" float cos;
    "nn.leaky_relu" "x where x > 0, alpha * x elsewhere" float leaky_relu LEAKY_RELU;
    "nn.gelu" "x * (1 + erf(x / sqrt(2))) / 2" float gelu;
    "nn.silu" "x * sigmoid(x)" float silu;
    "clip" "Each element, but not below min and not above max" number clip CLIP;
    "nn.dropout" "The identity: nothing is dropped in inference" number identity DROPOUT;
    "logical_not" "Whether each element is false" truth logical_not;
    "cast" "Conversion to another element type; floats are truncated towards zero" cast cast CAST;
}

const LEAKY_RELU: &[AttrDef] =
    &[attr("alpha", AttrKind::Float, AttrDefault::Float(0.01), "slope of the negative side")];

const CLIP: &[AttrDef] = &[
    attr("min", AttrKind::Float, AttrDefault::Float(f64::NEG_INFINITY), "lower bound"),
    attr("max", AttrKind::Float, AttrDefault::Float(f64::INFINITY), "upper bound"),
];

const DROPOUT: &[AttrDef] =
    &[attr("rate", AttrKind::Float, AttrDefault::Float(0.5), "what training would drop")];

const CAST: &[AttrDef] =
    &[attr("dtype", AttrKind::Str, AttrDefault::Required, "the new element type, such as \"f16\"")];

fn number(cx: &InferCx<'_>) -> Result<Type, OpError> {
    let found = cx.tensor(0)?.dtype;
    match found.is_bool() {
        true => Err(OpError::WrongDType { index: 0, expected: "a number".into(), found }),
        false => cx.arg(0),
    }
}

fn float(cx: &InferCx<'_>) -> Result<Type, OpError> {
    cx.check_float(0)?;
    cx.arg(0)
}

fn truth(cx: &InferCx<'_>) -> Result<Type, OpError> {
    let found = cx.tensor(0)?.dtype;
    match found.is_bool() {
        true => cx.arg(0),
        false => Err(OpError::WrongDType { index: 0, expected: "bool".into(), found }),
    }
}

fn cast(cx: &InferCx<'_>) -> Result<Type, OpError> {
    let dtype = cx.attrs.dtype("dtype")?;
    Ok(cx.tensor_type(dtype, cx.tensor(0)?.dims))
}
