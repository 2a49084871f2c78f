//! Padding.

use crate::onnx::import::builder::Value;
use crate::onnx::import::error::{Problem, invalid, unsupported};
use crate::onnx::import::node::NodeCx;

use super::scalar::{Number, number};

/// `Pad` with everything as attributes.
pub(in crate::onnx::import) fn by_attributes(
    cx: &mut NodeCx<'_, '_>,
) -> Result<Vec<Value>, Problem> {
    let Some(pads) = cx.ints("pads")? else { return invalid("its attribute `pads` is missing") };
    let value = cx.float_or("value", 0.0)?;
    padded(cx, &pads, None, value)
}

/// `Pad` with widths, value and axes as inputs.
pub(in crate::onnx::import) fn pad(cx: &mut NodeCx<'_, '_>) -> Result<Vec<Value>, Problem> {
    let pads = cx.input_ints(1)?;
    let value = match cx.optional(2) {
        None => 0.0,
        Some(value) => match number(cx, value).and_then(Number::as_float) {
            Some(value) => value,
            None => return cx.not_constant(2),
        },
    };
    let axes = cx.optional_ints(3)?;
    padded(cx, &pads, axes, value)
}

fn padded(
    cx: &mut NodeCx<'_, '_>,
    pads: &[i64],
    axes: Option<Vec<i64>>,
    value: f64,
) -> Result<Vec<Value>, Problem> {
    let mut x = cx.input(0)?;
    let mode = cx.text("mode", "constant")?;
    if !["constant", "edge", "reflect"].contains(&mode.as_str()) {
        return unsupported(format!("mode {mode:?}"));
    }
    let rank = cx.dims(x)?.len();
    let axes = match axes {
        Some(axes) => cx.axes(&axes, rank)?,
        None => (0..rank).collect(),
    };
    if pads.len() != 2 * axes.len() {
        return invalid(format!("it has {} widths for {} axes", pads.len(), axes.len()));
    }
    let mut widths = vec![0; 2 * rank];
    for (i, &axis) in axes.iter().enumerate() {
        widths[2 * axis] = pads[i];
        widths[2 * axis + 1] = pads[i + axes.len()];
    }
    if widths.iter().any(|&width| width < 0) {
        x = cropped(cx, x, &widths)?;
        widths.iter_mut().for_each(|width| *width = (*width).max(0));
    }
    let mut attrs = vec![("pad_width", widths.into()), ("mode", mode.as_str().into())];
    if mode == "constant" {
        attrs.push(("value", value.into()));
    }
    Ok(vec![cx.call("nn.pad", &[x], &attrs)?])
}

/// Takes away what negative widths say.
fn cropped(cx: &mut NodeCx<'_, '_>, x: Value, widths: &[i64]) -> Result<Value, Problem> {
    let begin = widths.iter().step_by(2).map(|&width| width.min(0).saturating_neg());
    let end =
        widths.iter().skip(1).step_by(2).map(|&width| if width < 0 { width } else { i64::MAX });
    let attrs =
        [("begin", begin.collect::<Vec<i64>>().into()), ("end", end.collect::<Vec<i64>>().into())];
    cx.call("strided_slice", &[x], &attrs)
}
