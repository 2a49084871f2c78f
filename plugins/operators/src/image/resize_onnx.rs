//! `Resize` and `Upsample` of ONNX: each axis that changes by itself.

use tenon_plugin_api::op::Tensor;
use tenon_plugin_api::rule::prelude::*;

use crate::onnx::steps::{cast_to, extent_of};

/// What becomes of an axis.
struct Resized {
    axis: usize,
    size: Dim,
    /// Places of the result for one of the data, where that is asked for.
    scale: Option<f64>,
    /// The part of the axis that is taken.
    roi: [f64; 2],
}

/// How places of the result are read, as attributes of the operator.
type Manner = Vec<(&'static str, AttrValue)>;

pub(super) fn resize(node: &mut Node<'_>) -> Outputs {
    let is_first = node.version() == 10;
    node.check_arity(1, if is_first { 2 } else { 4 })?;
    let mut manner = method(node)?;
    let default = if is_first { "asymmetric" } else { "half_pixel" };
    let mode = node.text("coordinate_transformation_mode", default)?;
    let is_cropped = mode == "tf_crop_and_resize";
    manner.push(("coordinate_transformation_mode", mode.into()));
    let default = if is_first { "floor" } else { "round_prefer_floor" };
    manner.push(("rounding_method", node.text("nearest_mode", default)?.into()));
    manner.push(("cubic_alpha", node.float_or("cubic_coeff_a", -0.75)?.into()));
    manner.push(("exclude_outside", node.flag("exclude_outside", false)?.into()));
    manner.push(("antialias", node.flag("antialias", false)?.into()));
    manner.push(("extrapolation_value", node.float_or("extrapolation_value", 0.0)?.into()));

    let x = node.input(0)?;
    let dims = node.dims(x)?;
    let axes: Vec<usize> = match node.ints("axes")? {
        Some(axes) => node.axes(&axes, dims.len())?,
        None => (0..dims.len()).collect(),
    };
    let (scales, sizes) = if is_first { (1, None) } else { (2, given(node, 3)?) };
    // Of scales it says nothing, and exporters write it all the same.
    let policy = node.text("keep_aspect_ratio_policy", "stretch")?;
    let mut all = match (given(node, scales)?, sizes) {
        (Some(scales), None) => scaled(node, scales, &axes, &dims)?,
        (None, Some(_)) => sized(node, &axes, &dims, &policy)?,
        (None, None) => return invalid("it has neither scales nor sizes"),
        (Some(_), Some(_)) => return invalid("it has both scales and sizes"),
    };
    if is_cropped {
        let roi = floats(node, 1, 2 * all.len())?;
        let (starts, ends) = roi.split_at(all.len());
        for (each, roi) in all.iter_mut().zip(starts.iter().zip(ends)) {
            each.roi = [f64::from(*roi.0), f64::from(*roi.1)];
        }
    }
    apply(node, x, &dims, all, &manner)
}

pub(super) fn upsample(node: &mut Node<'_>) -> Outputs {
    let mut manner = method(node)?;
    manner.push(("coordinate_transformation_mode", "asymmetric".into()));
    manner.push(("rounding_method", "floor".into()));
    let x = node.input(0)?;
    let dims = node.dims(x)?;
    let axes: Vec<usize> = (0..dims.len()).collect();
    let scales = match node.version() < 9 {
        true => node.floats("scales")?.unwrap_or_default(),
        false => floats(node, 1, dims.len())?,
    };
    let all = scaled(node, scales, &axes, &dims)?;
    apply(node, x, &dims, all, &manner)
}

fn method(node: &Node<'_>) -> Result<Manner, Problem> {
    let method = match node.text("mode", "nearest")?.as_str() {
        "nearest" => "nearest_neighbor",
        "linear" | "bilinear" => "linear",
        "cubic" => "cubic",
        other => return unsupported(format!("the mode {other:?}")),
    };
    Ok(vec![("method", method.into())])
}

/// The elements of an input, where it has any.
fn given(node: &Node<'_>, index: usize) -> Result<Option<Vec<f32>>, Problem> {
    let Some(value) = node.optional(index) else { return Ok(None) };
    if let [extent] = node.dims(value)?.as_slice()
        && node.terms().dim_value(*extent) == Some(0)
    {
        return Ok(None);
    }
    let elements = node.as_constant(value).filter(|constant| constant.dtype() == DType::F32);
    Ok(match elements {
        Some(elements) => Some(elements.elements::<f32>().to_vec()),
        // Sizes are read as dimensions.
        None if index == 3 => Some(Vec::new()),
        None => return node.not_constant(index),
    })
}

/// The floats that an input is, so many of them.
fn floats(node: &Node<'_>, index: usize, count: usize) -> Result<Vec<f32>, Problem> {
    let wide = |tensor: Tensor| match tensor.dtype() {
        DType::F32 => Some(tensor.elements::<f32>().to_vec()),
        DType::F64 => Some(tensor.elements::<f64>().iter().map(|&x| x as f32).collect()),
        _ => None,
    };
    let Some(found) = node.as_constant(node.input(index)?).and_then(wide) else {
        return node.not_constant(index);
    };
    match found.len() == count {
        true => Ok(found),
        false => invalid(format!("its input {} has {} elements", index + 1, found.len())),
    }
}

/// Axes by their scales. What a scale makes of a symbol has to be a dimension.
fn scaled(
    node: &Node<'_>,
    scales: Vec<f32>,
    axes: &[usize],
    dims: &[Dim],
) -> Result<Vec<Resized>, Problem> {
    if scales.len() != axes.len() {
        return invalid(format!("it has {} scales for {} axes", scales.len(), axes.len()));
    }
    let mut all = Vec::with_capacity(axes.len());
    for (&axis, scale) in axes.iter().zip(scales) {
        if !(scale > 0.0 && scale.is_finite()) {
            return invalid(format!("the scale {scale}"));
        }
        let (cx, dim) = (node.cx(), dims[axis]);
        let (times, part) = (f64::from(scale), 1.0 / f64::from(scale));
        let is_small = |value: f64| value.fract() == 0.0 && value < f64::from(i32::MAX);
        let size = match node.terms().dim_value(dim) {
            Some(extent) => cx.dim((extent as f32 * scale).floor() as i64),
            None if is_small(times) => cx.dim_mul(dim, cx.dim(times as i64)),
            None if is_small(part) => cx.dim_floor_div(dim, cx.dim(part as i64)),
            None => {
                let text = "which is neither an integer nor 1 divided by one";
                return unsupported(format!("a symbolic dimension times {scale}, {text},"));
            }
        };
        all.push(Resized { axis, size, scale: Some(times), roi: [0.0, 1.0] });
    }
    Ok(all)
}

/// Axes by their sizes.
fn sized(
    node: &Node<'_>,
    axes: &[usize],
    dims: &[Dim],
    policy: &str,
) -> Result<Vec<Resized>, Problem> {
    let sizes = node.input_dims(3)?;
    if sizes.len() != axes.len() {
        return invalid(format!("it has {} sizes for {} axes", sizes.len(), axes.len()));
    }
    let each = |(&axis, size)| Resized { axis, size, scale: None, roi: [0.0, 1.0] };
    let mut all: Vec<Resized> = axes.iter().zip(sizes).map(each).collect();
    let is_larger = match policy {
        "stretch" => return Ok(all),
        "not_larger" => false,
        "not_smaller" => true,
        other => return invalid(format!("its attribute `keep_aspect_ratio_policy` is {other:?}")),
    };
    let mut common: Option<f64> = None;
    for each in &all {
        let what = "dimension whose ratio is kept";
        let extent = extent_of(node, dims[each.axis], what)?;
        let scale = extent_of(node, each.size, what)? as f64 / extent.max(1) as f64;
        common = Some(match common {
            None => scale,
            Some(common) if is_larger => common.max(scale),
            Some(common) => common.min(scale),
        });
    }
    for each in &mut all {
        let extent = extent_of(node, dims[each.axis], "dimension whose ratio is kept")?;
        let scale = common.unwrap_or(1.0);
        each.size = node.cx().dim((extent as f64 * scale + 0.5).floor() as i64);
        each.scale = Some(scale);
    }
    Ok(all)
}

fn apply(
    node: &mut Node<'_>,
    x: Value,
    dims: &[Dim],
    all: Vec<Resized>,
    manner: &Manner,
) -> Outputs {
    let dtype = node.dtype(x)?;
    let is_nearest = manner[0].1 == AttrValue::from("nearest_neighbor");
    let is_narrow = !is_nearest && dtype != DType::F64;
    let mut y = if is_narrow { cast_to(node, x, DType::F32)? } else { x };
    for each in all {
        // A scale of 1 changes no place, whatever the mode.
        let is_same = each.size == dims[each.axis] && each.scale.is_none_or(|scale| scale == 1.0);
        if is_same && each.roi == [0.0, 1.0] {
            continue;
        }
        let mut attrs = manner.clone();
        attrs.push(("axis", (each.axis as i64).into()));
        attrs.push(("roi_start", each.roi[0].into()));
        attrs.push(("roi_end", each.roi[1].into()));
        if let Some(scale) = each.scale {
            attrs.push(("scale", scale.into()));
        }
        let size = node.shape(&[each.size])?;
        y = node.call("image.resize1d", &[y, size], &attrs)?;
    }
    Ok(vec![cast_to(node, y, dtype)?])
}
