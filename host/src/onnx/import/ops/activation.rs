//! Activations, most of them put together from simpler operators.

use crate::onnx::import::builder::Value;
use crate::onnx::import::error::{Problem, unsupported};
use crate::onnx::import::node::NodeCx;

use super::scalar::scalar_like;

type Outputs = Result<Vec<Value>, Problem>;

/// `LeakyRelu`.
pub(in crate::onnx::import) fn leaky_relu(cx: &mut NodeCx<'_, '_>) -> Outputs {
    let x = cx.input(0)?;
    let alpha = cx.float_or("alpha", 0.01)?;
    Ok(vec![cx.call("nn.leaky_relu", &[x], &[("alpha", alpha.into())])?])
}

/// `Gelu`, by the error function or by `tanh`.
pub(in crate::onnx::import) fn gelu(cx: &mut NodeCx<'_, '_>) -> Outputs {
    let x = cx.input(0)?;
    match cx.text("approximate", "none")?.as_str() {
        "none" => Ok(vec![cx.apply("nn.gelu", &[x])?]),
        // x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))) / 2
        "tanh" => {
            let square = cx.apply("multiply", &[x, x])?;
            let cube = cx.apply("multiply", &[square, x])?;
            let cube = scaled(cx, cube, 0.044715)?;
            let inner = cx.apply("add", &[x, cube])?;
            let inner = scaled(cx, inner, (2.0 / std::f64::consts::PI).sqrt())?;
            let inner = cx.apply("tanh", &[inner])?;
            let inner = shifted(cx, inner, 1.0)?;
            let half = scaled(cx, x, 0.5)?;
            Ok(vec![cx.apply("multiply", &[half, inner])?])
        }
        other => unsupported(format!("approximate = {other:?}")),
    }
}

/// `Elu`: alpha * (exp(x) - 1) below zero.
pub(in crate::onnx::import) fn elu(cx: &mut NodeCx<'_, '_>) -> Outputs {
    let x = cx.input(0)?;
    let alpha = cx.float_or("alpha", 1.0)?;
    let below = exp_minus_one(cx, x)?;
    let below = scaled(cx, below, alpha)?;
    Ok(vec![below_zero(cx, x, below)?])
}

/// `Selu`: gamma * elu(x).
pub(in crate::onnx::import) fn selu(cx: &mut NodeCx<'_, '_>) -> Outputs {
    let x = cx.input(0)?;
    let alpha = cx.float_or("alpha", 1.673_263_2)?;
    let gamma = cx.float_or("gamma", 1.050_701)?;
    let below = exp_minus_one(cx, x)?;
    let below = scaled(cx, below, alpha)?;
    let elu = below_zero(cx, x, below)?;
    Ok(vec![scaled(cx, elu, gamma)?])
}

/// `Celu`: alpha * (exp(x / alpha) - 1) below zero.
pub(in crate::onnx::import) fn celu(cx: &mut NodeCx<'_, '_>) -> Outputs {
    let x = cx.input(0)?;
    let alpha = cx.float_or("alpha", 1.0)?;
    let by = scalar_like(cx, x, alpha)?;
    let below = cx.apply("divide", &[x, by])?;
    let below = exp_minus_one(cx, below)?;
    let below = scaled(cx, below, alpha)?;
    Ok(vec![below_zero(cx, x, below)?])
}

/// `HardSigmoid`: alpha * x + beta, clipped to 0 and 1.
pub(in crate::onnx::import) fn hard_sigmoid(cx: &mut NodeCx<'_, '_>) -> Outputs {
    let x = cx.input(0)?;
    let (alpha, beta) = (cx.float_or("alpha", 0.2)?, cx.float_or("beta", 0.5)?);
    Ok(vec![hard_sigmoid_of(cx, x, alpha, beta)?])
}

/// `HardSwish`: x * hard_sigmoid(x).
pub(in crate::onnx::import) fn hard_swish(cx: &mut NodeCx<'_, '_>) -> Outputs {
    let x = cx.input(0)?;
    let sigmoid = hard_sigmoid_of(cx, x, 1.0 / 6.0, 0.5)?;
    Ok(vec![cx.apply("multiply", &[x, sigmoid])?])
}

/// `Swish`: x * sigmoid(alpha * x).
pub(in crate::onnx::import) fn swish(cx: &mut NodeCx<'_, '_>) -> Outputs {
    let x = cx.input(0)?;
    let alpha = cx.float_or("alpha", 1.0)?;
    if alpha == 1.0 {
        return Ok(vec![cx.apply("nn.silu", &[x])?]);
    }
    let inner = scaled(cx, x, alpha)?;
    let sigmoid = cx.apply("sigmoid", &[inner])?;
    Ok(vec![cx.apply("multiply", &[x, sigmoid])?])
}

/// `Softplus`.
pub(in crate::onnx::import) fn softplus(cx: &mut NodeCx<'_, '_>) -> Outputs {
    let x = cx.input(0)?;
    Ok(vec![softplus_of(cx, x)?])
}

/// `Mish`: x * tanh(softplus(x)).
pub(in crate::onnx::import) fn mish(cx: &mut NodeCx<'_, '_>) -> Outputs {
    let x = cx.input(0)?;
    let inner = softplus_of(cx, x)?;
    let tanh = cx.apply("tanh", &[inner])?;
    Ok(vec![cx.apply("multiply", &[x, tanh])?])
}

/// `Softsign`: x / (1 + |x|).
pub(in crate::onnx::import) fn softsign(cx: &mut NodeCx<'_, '_>) -> Outputs {
    let x = cx.input(0)?;
    let below = cx.apply("abs", &[x])?;
    let below = shifted(cx, below, 1.0)?;
    Ok(vec![cx.apply("divide", &[x, below])?])
}

/// `ThresholdedRelu`: x above alpha, zero elsewhere.
pub(in crate::onnx::import) fn thresholded_relu(cx: &mut NodeCx<'_, '_>) -> Outputs {
    let x = cx.input(0)?;
    let alpha = cx.float_or("alpha", 1.0)?;
    let alpha = scalar_like(cx, x, alpha)?;
    let zero = scalar_like(cx, x, 0.0)?;
    let is_above = cx.apply("greater", &[x, alpha])?;
    Ok(vec![cx.apply("where", &[is_above, x, zero])?])
}

/// `Shrink`: nearer to zero by the bias where x is farther from it than lambd, zero elsewhere.
pub(in crate::onnx::import) fn shrink(cx: &mut NodeCx<'_, '_>) -> Outputs {
    let x = cx.input(0)?;
    let (bias, lambd) = (cx.float_or("bias", 0.0)?, cx.float_or("lambd", 0.5)?);
    let dtype = cx.dtype(x)?;
    if !dtype.is_float() {
        return unsupported(format!("the element type {dtype}"));
    }
    let (zero, low, high) =
        (scalar_like(cx, x, 0.0)?, scalar_like(cx, x, -lambd)?, scalar_like(cx, x, lambd)?);
    let (raised, lowered) = (shifted(cx, x, bias)?, shifted(cx, x, -bias)?);
    let is_high = cx.apply("greater", &[x, high])?;
    let y = cx.apply("where", &[is_high, lowered, zero])?;
    let is_low = cx.apply("less", &[x, low])?;
    Ok(vec![cx.apply("where", &[is_low, raised, y])?])
}

/// `PRelu`: slope * x below zero.
pub(in crate::onnx::import) fn prelu(cx: &mut NodeCx<'_, '_>) -> Outputs {
    let (x, slope) = (cx.input(0)?, cx.input(1)?);
    let below = cx.apply("multiply", &[slope, x])?;
    Ok(vec![below_zero(cx, x, below)?])
}

/// `below` where x is below zero, x elsewhere.
fn below_zero(cx: &mut NodeCx<'_, '_>, x: Value, below: Value) -> Result<Value, Problem> {
    let zero = scalar_like(cx, x, 0.0)?;
    let is_below = cx.apply("less", &[x, zero])?;
    cx.apply("where", &[is_below, below, x])
}

fn exp_minus_one(cx: &mut NodeCx<'_, '_>, x: Value) -> Result<Value, Problem> {
    let exp = cx.apply("exp", &[x])?;
    shifted(cx, exp, -1.0)
}

fn hard_sigmoid_of(
    cx: &mut NodeCx<'_, '_>,
    x: Value,
    alpha: f64,
    beta: f64,
) -> Result<Value, Problem> {
    let line = scaled(cx, x, alpha)?;
    let line = shifted(cx, line, beta)?;
    cx.call("clip", &[line], &[("min", 0.0.into()), ("max", 1.0.into())])
}

/// log(1 + exp(x)) as max(x, 0) + log(1 + exp(-|x|)), which does not overflow.
fn softplus_of(cx: &mut NodeCx<'_, '_>, x: Value) -> Result<Value, Problem> {
    let above = cx.apply("nn.relu", &[x])?;
    let inner = cx.apply("abs", &[x])?;
    let inner = cx.apply("negative", &[inner])?;
    let inner = cx.apply("exp", &[inner])?;
    let inner = shifted(cx, inner, 1.0)?;
    let inner = cx.apply("log", &[inner])?;
    cx.apply("add", &[above, inner])
}

fn scaled(cx: &mut NodeCx<'_, '_>, x: Value, by: f64) -> Result<Value, Problem> {
    if by == 1.0 {
        return Ok(x);
    }
    let by = scalar_like(cx, x, by)?;
    cx.apply("multiply", &[x, by])
}

fn shifted(cx: &mut NodeCx<'_, '_>, x: Value, by: f64) -> Result<Value, Problem> {
    let by = scalar_like(cx, x, by)?;
    cx.apply("add", &[x, by])
}
