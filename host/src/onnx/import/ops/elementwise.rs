//! Arithmetic, comparison, and what else works on each element by itself.

use crate::ir::DType;
use crate::onnx::import::builder::Value;
use crate::onnx::import::error::{Problem, invalid, unsupported};
use crate::onnx::import::node::NodeCx;

use super::cast::cast_to;
use super::scalar::{Number, number, scalar_like};

type Outputs = Result<Vec<Value>, Problem>;

/// `Clip` with its bounds as attributes.
pub(in crate::onnx::import) fn clip_by_attributes(cx: &mut NodeCx<'_, '_>) -> Outputs {
    let x = cx.input(0)?;
    let bounds = [cx.float("min")?, cx.float("max")?];
    let attrs: Vec<_> = ["min", "max"]
        .into_iter()
        .zip(bounds)
        .filter_map(|(name, bound)| Some((name, f64::from(bound?).into())))
        .collect();
    Ok(vec![cx.call("clip", &[x], &attrs)?])
}

/// `Clip` with its bounds as inputs, which need not be constants.
pub(in crate::onnx::import) fn clip(cx: &mut NodeCx<'_, '_>) -> Outputs {
    let x = cx.input(0)?;
    let bounds = [cx.optional(1), cx.optional(2)];
    let mut attrs = Vec::new();
    for (name, bound) in ["min", "max"].into_iter().zip(bounds) {
        let Some(bound) = bound else { continue };
        match number(cx, bound).and_then(Number::as_float) {
            Some(value) => attrs.push((name, value.into())),
            None => return clip_by_comparison(cx, x, bounds),
        }
    }
    Ok(vec![cx.call("clip", &[x], &attrs)?])
}

fn clip_by_comparison(
    cx: &mut NodeCx<'_, '_>,
    mut x: Value,
    [min, max]: [Option<Value>; 2],
) -> Outputs {
    if let Some(min) = min {
        x = cx.apply("maximum", &[x, min])?;
    }
    if let Some(max) = max {
        x = cx.apply("minimum", &[x, max])?;
    }
    Ok(vec![x])
}

/// `Dropout` with its rate as attribute.
pub(in crate::onnx::import) fn dropout_by_attribute(cx: &mut NodeCx<'_, '_>) -> Outputs {
    let x = cx.input(0)?;
    let rate = cx.float_or("ratio", 0.5)?;
    Ok(vec![cx.call("nn.dropout", &[x], &[("rate", rate.into())])?])
}

/// `Dropout` with its rate, and whether it is training, as inputs.
pub(in crate::onnx::import) fn dropout(cx: &mut NodeCx<'_, '_>) -> Outputs {
    let x = cx.input(0)?;
    cx.ignore("seed");
    if let Some(training) = cx.optional(2)
        && number(cx, training) != Some(Number::Bool(false))
    {
        return unsupported("training mode");
    }
    let rate = cx.optional(1).and_then(|rate| number(cx, rate)).and_then(Number::as_float);
    let y = cx.call("nn.dropout", &[x], &[("rate", rate.unwrap_or(0.5).into())])?;
    if cx.output_count < 2 {
        return Ok(vec![y]);
    }
    let dims = cx.dims(x)?;
    let shape = cx.shape(&dims);
    let attrs = [("value", true.into()), ("dtype", DType::BOOL.to_string().into())];
    let mask = cx.call("full", &[shape], &attrs)?;
    Ok(vec![y, mask])
}

/// `Pow`: base and exponent may be of different types; the result is of the base's.
pub(in crate::onnx::import) fn pow(cx: &mut NodeCx<'_, '_>) -> Outputs {
    let (x, y) = (cx.input(0)?, cx.input(1)?);
    let (base, exponent) = (cx.dtype(x)?, cx.dtype(y)?);
    // A type that has all exponents. That the power is one of the base, modulo its size, a wider one does not change.
    let common = match (base.is_float(), exponent.is_float()) {
        (true, _) => base,
        (false, true) => exponent,
        (false, false) if base.is_signed() == exponent.is_signed() => {
            if exponent.bits() > base.bits() { exponent } else { base }
        }
        (false, false) => DType::I64,
    };
    let (x, y) = (cast_to(cx, x, common)?, cast_to(cx, y, common)?);
    let power = cx.apply("power", &[x, y])?;
    Ok(vec![cast_to(cx, power, base)?])
}

/// `Max` of any number of tensors.
pub(in crate::onnx::import) fn max(cx: &mut NodeCx<'_, '_>) -> Outputs {
    Ok(vec![each_with_next(cx, "maximum")?])
}

/// `Min` of any number of tensors.
pub(in crate::onnx::import) fn min(cx: &mut NodeCx<'_, '_>) -> Outputs {
    Ok(vec![each_with_next(cx, "minimum")?])
}

/// `Sum` of any number of tensors.
pub(in crate::onnx::import) fn sum(cx: &mut NodeCx<'_, '_>) -> Outputs {
    Ok(vec![each_with_next(cx, "add")?])
}

/// `Mean` of any number of tensors.
pub(in crate::onnx::import) fn mean(cx: &mut NodeCx<'_, '_>) -> Outputs {
    let sum = each_with_next(cx, "add")?;
    let count = cx.inputs.len();
    if count == 1 {
        return Ok(vec![sum]);
    }
    let count = scalar_like(cx, sum, count as f64)?;
    Ok(vec![cx.apply("divide", &[sum, count])?])
}

fn each_with_next(cx: &mut NodeCx<'_, '_>, op: &'static str) -> Result<Value, Problem> {
    let inputs = cx.all_inputs()?;
    let Some((&first, rest)) = inputs.split_first() else { return invalid("it has no inputs") };
    rest.iter().try_fold(first, |so_far, &next| cx.apply(op, &[so_far, next]))
}

/// `Reciprocal`.
pub(in crate::onnx::import) fn reciprocal(cx: &mut NodeCx<'_, '_>) -> Outputs {
    let x = cx.input(0)?;
    let one = scalar_like(cx, x, 1.0)?;
    Ok(vec![cx.apply("divide", &[one, x])?])
}

/// `Sign`: one minus the other of two comparisons with zero.
pub(in crate::onnx::import) fn sign(cx: &mut NodeCx<'_, '_>) -> Outputs {
    let x = cx.input(0)?;
    let dtype = cx.dtype(x)?;
    let zero = scalar_like(cx, x, 0.0)?;
    let above = cx.apply("greater", &[x, zero])?;
    let above = cast_to(cx, above, dtype)?;
    let below = cx.apply("less", &[x, zero])?;
    let below = cast_to(cx, below, dtype)?;
    Ok(vec![cx.apply("subtract", &[above, below])?])
}

/// `IsNaN`: only those differ from themselves.
pub(in crate::onnx::import) fn is_nan(cx: &mut NodeCx<'_, '_>) -> Outputs {
    let x = cx.input(0)?;
    Ok(vec![cx.apply("not_equal", &[x, x])?])
}

/// `IsInf`, of both signs or of one.
pub(in crate::onnx::import) fn is_infinite(cx: &mut NodeCx<'_, '_>) -> Outputs {
    let x = cx.input(0)?;
    let signs = (cx.flag("detect_positive", true)?, cx.flag("detect_negative", true)?);
    let (x, limit) = match signs {
        (true, true) => (cx.apply("abs", &[x])?, f64::INFINITY),
        (true, false) => (x, f64::INFINITY),
        (false, true) => (x, f64::NEG_INFINITY),
        (false, false) => return invalid("it detects neither sign"),
    };
    let limit = scalar_like(cx, x, limit)?;
    Ok(vec![cx.apply("equal", &[x, limit])?])
}

/// `Mod` of integers: the remainder has the sign of the divisor, with `fmod` that of the dividend.
pub(in crate::onnx::import) fn remainder(cx: &mut NodeCx<'_, '_>) -> Outputs {
    let (a, b) = (cx.input(0)?, cx.input(1)?);
    let is_truncated = cx.flag("fmod", false)?;
    let dtype = cx.dtype(a)?;
    if !dtype.is_int() {
        return unsupported(format!("the element type {dtype}"));
    }
    let quotient = cx.apply("divide", &[a, b])?;
    let product = cx.apply("multiply", &[quotient, b])?;
    let rest = cx.apply("subtract", &[a, product])?;
    if is_truncated || !dtype.is_signed() {
        return Ok(vec![rest]);
    }
    // A remainder of the other sign than the divisor is one divisor too low.
    let zero = scalar_like(cx, a, 0.0)?;
    let is_below = cx.apply("less", &[rest, zero])?;
    let is_divisor_below = cx.apply("less", &[b, zero])?;
    let is_other_sign = cx.apply("not_equal", &[is_below, is_divisor_below])?;
    let is_something = cx.apply("not_equal", &[rest, zero])?;
    let is_low = cx.apply("logical_and", &[is_other_sign, is_something])?;
    let raised = cx.apply("add", &[rest, b])?;
    Ok(vec![cx.apply("where", &[is_low, raised, rest])?])
}

/// `Xor`.
pub(in crate::onnx::import) fn xor(cx: &mut NodeCx<'_, '_>) -> Outputs {
    let (a, b) = (cx.input(0)?, cx.input(1)?);
    match cx.dtype(a)?.is_bool() {
        true => Ok(vec![cx.apply("not_equal", &[a, b])?]),
        false => invalid("it takes truth values"),
    }
}
