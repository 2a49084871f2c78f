//! Windows of convolution and pooling: steps, padding, automatic padding.

use crate::ir::{AttrValue, Dim};
use crate::onnx::import::error::{Problem, invalid, unsupported};
use crate::onnx::import::node::NodeCx;

/// How a window moves over the two spatial axes.
pub(super) struct Window {
    pub(super) kernel: [i64; 2],
    pub(super) strides: [i64; 2],
    pub(super) dilations: [i64; 2],
    /// Top, left, bottom, right.
    pub(super) padding: [i64; 4],
}

impl Window {
    /// From the attributes of a node whose data have these dimensions (`N, C, H, W`).
    pub(super) fn of(cx: &NodeCx<'_, '_>, data: &[Dim], kernel: [i64; 2]) -> Result<Self, Problem> {
        let strides = pair(cx, "strides")?.unwrap_or([1, 1]);
        let dilations = pair(cx, "dilations")?.unwrap_or([1, 1]);
        let in_range = |&value: &i64| (1..=i64::from(i32::MAX)).contains(&value);
        for (name, values) in [("kernel", kernel), ("strides", strides), ("dilations", dilations)] {
            if !values.iter().all(in_range) {
                return invalid(format!("its {name} are {values:?}, expected to be positive"));
            }
        }
        let mut window = Self { kernel, strides, dilations, padding: [0; 4] };
        let pads = cx.ints("pads")?;
        window.padding = match (cx.text("auto_pad", "NOTSET")?.as_str(), pads) {
            ("NOTSET", None) | ("VALID", _) => [0; 4],
            ("NOTSET", Some(pads)) => match <[i64; 4]>::try_from(pads.as_slice()) {
                Ok(pads) => pads,
                Err(_) => return invalid(format!("its pads are {pads:?}, expected four numbers")),
            },
            ("SAME_UPPER", _) => window.same(cx, data, false)?,
            ("SAME_LOWER", _) => window.same(cx, data, true)?,
            (other, _) => return invalid(format!("its attribute `auto_pad` is {other:?}")),
        };
        Ok(window)
    }

    /// The padding that makes as many places as the extent has strides; the odd one comes last, or first
    /// when `is_lower`.
    fn same(&self, cx: &NodeCx<'_, '_>, data: &[Dim], is_lower: bool) -> Result<[i64; 4], Problem> {
        let mut padding = [0; 4];
        for axis in 0..2 {
            let reach = (self.kernel[axis] - 1) * self.dilations[axis] + 1;
            let stride = self.strides[axis];
            let total = match cx.terms().dim_value(data[axis + 2]) {
                Some(extent) => {
                    let places = extent.div_euclid(stride) + i64::from(extent % stride != 0);
                    (places - 1).saturating_mul(stride).saturating_add(reach) - extent
                }
                // With a step of one it does not depend on the extent.
                None if stride == 1 => reach - 1,
                None => return unsupported("automatic padding of a symbolic dimension"),
            };
            let total = total.max(0);
            let (less, more) = (total / 2, total - total / 2);
            let (before, after) = if is_lower { (more, less) } else { (less, more) };
            padding[axis] = before;
            padding[axis + 2] = after;
        }
        Ok(padding)
    }

    /// The attributes `strides`, `padding` and `dilation`.
    pub(super) fn attrs(&self) -> Vec<(&'static str, AttrValue)> {
        vec![
            ("strides", self.strides.to_vec().into()),
            ("padding", self.padding.to_vec().into()),
            ("dilation", self.dilations.to_vec().into()),
        ]
    }
}

/// A list of two integers.
pub(super) fn pair(cx: &NodeCx<'_, '_>, name: &str) -> Result<Option<[i64; 2]>, Problem> {
    let Some(values) = cx.ints(name)? else { return Ok(None) };
    match <[i64; 2]>::try_from(values.as_slice()) {
        Ok(pair) => Ok(Some(pair)),
        Err(_) => invalid(format!("its attribute `{name}` is {values:?}, expected two integers")),
    }
}

/// The dimensions of data with two spatial axes.
pub(super) fn image(dims: Vec<Dim>) -> Result<Vec<Dim>, Problem> {
    match dims.len() {
        4 => Ok(dims),
        rank @ (0..=2) => invalid(format!("its data have {rank} dimensions")),
        rank => unsupported(format!("{} spatial dimensions; only two are", rank - 2)),
    }
}
