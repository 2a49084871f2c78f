//! `Resize` and `Upsample` of ONNX: each axis that changes by itself.

use tenon_plugin_api::op::Tensor;
use tenon_plugin_api::rule::prelude::*;

use crate::found::first::bound;
use crate::found::numbers::{extent, list, number};
use crate::onnx::steps::{cast_to, not_among, reshape_to};

/// What becomes of an axis.
struct Resized {
    axis: usize,
    size: Dim,
    /// Places of the result for one of the data, where that is asked for.
    scale: Option<Number>,
    /// The part of the axis that is taken.
    roi: [Number; 2],
}

impl Resized {
    fn of(axis: usize, size: Dim, scale: Option<Number>) -> Self {
        Self { axis, size, scale, roi: [Number::Known(0.0), Number::Known(1.0)] }
    }
}

/// A number that an operator takes.
#[derive(Clone, Copy, PartialEq)]
enum Number {
    Known(f64),
    /// One that a call computes, as an f64 without dimensions.
    Computed(Value),
}

impl Number {
    fn value(self, node: &mut Node<'_>) -> Result<Value, Problem> {
        match self {
            Self::Known(number) => node.scalar(DType::F64, number),
            Self::Computed(value) => Ok(value),
        }
    }
}

/// How places of the result are read, as attributes of the operator.
type Manner = Vec<(&'static str, AttrValue)>;

/// Whether sizes may follow from scales that a call computes.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Scales {
    Known,
    Computed,
}

pub(super) fn resize(node: &mut Node<'_>, which: Scales) -> Outputs {
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
    let scales = if is_first { 1 } else { 2 };
    let has_sizes = !is_first && is_given(node, 3)?;
    // Of scales it says nothing, and exporters write it all the same.
    let policy = node.text("keep_aspect_ratio_policy", "stretch")?;
    let mut all = match (is_given(node, scales)?, has_sizes) {
        (true, false) => scaled(node, scales, which, &axes, &dims)?,
        (false, true) => sized(node, &axes, &dims, &policy)?,
        (false, false) => return invalid("it has neither scales nor sizes"),
        (true, true) => return invalid("it has both scales and sizes"),
    };
    if is_cropped {
        let roi = numbers(node, 1, 2 * all.len())?;
        let (starts, ends) = roi.split_at(all.len());
        for (each, roi) in all.iter_mut().zip(starts.iter().zip(ends)) {
            each.roi = [*roi.0, *roi.1];
        }
    }
    apply(node, x, &dims, all, &manner)
}

pub(super) fn upsample(node: &mut Node<'_>, which: Scales) -> Outputs {
    let mut manner = method(node)?;
    manner.push(("coordinate_transformation_mode", "asymmetric".into()));
    manner.push(("rounding_method", "floor".into()));
    let x = node.input(0)?;
    let dims = node.dims(x)?;
    let axes: Vec<usize> = (0..dims.len()).collect();
    let all = match node.version() < 9 {
        true => scaled_by(node, &node.floats("scales")?.unwrap_or_default(), &axes, &dims)?,
        false => scaled(node, 1, which, &axes, &dims)?,
    };
    apply(node, x, &dims, all, &manner)
}

fn method(node: &Node<'_>) -> Result<Manner, Problem> {
    let method = match node.text("mode", "nearest")?.as_str() {
        "nearest" => "nearest_neighbor",
        "linear" => "linear",
        // Its name before version 9.
        "bilinear" if node.version() < 9 => "linear",
        "cubic" => "cubic",
        other => return not_among("mode", other, &["nearest", "linear", "cubic"]),
    };
    Ok(vec![("method", method.into())])
}

/// Whether an input is given, and has elements.
fn is_given(node: &Node<'_>, index: usize) -> Result<bool, Problem> {
    let Some(value) = node.optional(index) else { return Ok(false) };
    let dims = node.dims(value)?;
    Ok(!matches!(dims[..], [extent] if node.terms().dim_value(extent) == Some(0)))
}

/// The floats that an input is, where they are known.
fn floats(node: &Node<'_>, index: usize) -> Result<Option<Vec<f32>>, Problem> {
    let wide = |tensor: Tensor| match tensor.dtype() {
        DType::F32 => Some(tensor.elements::<f32>().to_vec()),
        DType::F64 => Some(tensor.elements::<f64>().iter().map(|&x| x as f32).collect()),
        _ => None,
    };
    Ok(node.as_constant(node.input(index)?).and_then(wide))
}

/// The floats that an input is, so many of them, as f64: those that are known, or that a call computes.
fn numbers(node: &mut Node<'_>, index: usize, count: usize) -> Result<Vec<Number>, Problem> {
    if let Some(known) = floats(node, index)? {
        return match known.len() == count {
            true => Ok(known.into_iter().map(|number| Number::Known(number.into())).collect()),
            false => invalid(format!("its input {} has {} elements", index + 1, known.len())),
        };
    }
    let parts = elements(node, index, count)?;
    let wide = |part| Ok(Number::Computed(cast_to(node, part, DType::F64)?));
    parts.into_iter().map(wide).collect()
}

/// The elements of an input that has so many.
fn elements(node: &mut Node<'_>, index: usize, count: usize) -> Result<Vec<Value>, Problem> {
    let all = [node.cx().dim(count as i64)];
    let input = node.input(index)?;
    let input = reshape_to(node, input, &all)?;
    let mut parts = Vec::with_capacity(count);
    for at in 0..count {
        let at = node.scalar(DType::I64, at as f64)?;
        parts.push(node.call("take", &[input, at], &[("axis", 0.into())])?);
    }
    Ok(parts)
}

/// Axes by the scales that an input is.
fn scaled(
    node: &mut Node<'_>,
    index: usize,
    which: Scales,
    axes: &[usize],
    dims: &[Dim],
) -> Result<Vec<Resized>, Problem> {
    if let Some(scales) = floats(node, index)? {
        return scaled_by(node, &scales, axes, dims);
    }
    if which == Scales::Known {
        return node.not_constant(index);
    }
    let mut all = Vec::with_capacity(axes.len());
    for (&axis, scale) in axes.iter().zip(elements(node, index, axes.len())?) {
        let scale = cast_to(node, scale, DType::F32)?;
        let size = times(node, dims[axis], scale)?;
        let size = extent(node, size, None)?;
        let scale = cast_to(node, scale, DType::F64)?;
        all.push(Resized::of(axis, size, Some(Number::Computed(scale))));
    }
    Ok(all)
}

/// An extent times an f32, rounded downwards, as it is found in a call.
fn times(node: &mut Node<'_>, extent: Dim, scale: Value) -> Result<Value, Problem> {
    let extent = number(node, extent)?;
    let extent = cast_to(node, extent, DType::F32)?;
    let size = node.apply("multiply", &[extent, scale])?;
    let size = node.apply("floor", &[size])?;
    cast_to(node, size, DType::I64)
}

/// Axes by scales that are known. What these make of a symbol is a dimension, or found in a call.
fn scaled_by(
    node: &mut Node<'_>,
    scales: &[f32],
    axes: &[usize],
    dims: &[Dim],
) -> Result<Vec<Resized>, Problem> {
    if scales.len() != axes.len() {
        return invalid(format!("it has {} scales for {} axes", scales.len(), axes.len()));
    }
    let mut all = Vec::with_capacity(axes.len());
    for (&axis, &scale) in axes.iter().zip(scales) {
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
            None => rounded_extent(node, dim, scale)?,
        };
        all.push(Resized::of(axis, size, Some(Number::Known(times))));
    }
    Ok(all)
}

/// What a symbol becomes by a scale, in the arithmetic of f32.
fn rounded_extent(node: &mut Node<'_>, dim: Dim, scale: f32) -> Result<Dim, Problem> {
    /// A share of the extent that is no smaller than the scale, by so many parts of one.
    const PARTS: i64 = 1 << 10;
    let most = f64::from(scale) * (1.0 + f64::from(f32::EPSILON)) * PARTS as f64;
    if most > f64::from(i32::MAX) {
        return unsupported(format!("a symbolic dimension times {scale}"));
    }
    let cx = node.cx();
    let most = cx.dim_mul(dim, cx.dim(most.ceil() as i64));
    let most = cx.dim_add(cx.dim_floor_div(most, cx.dim(PARTS)), cx.dim(1));
    let scale = node.scalar(DType::F32, scale.into())?;
    let size = times(node, dim, scale)?;
    let one = [node.cx().dim(1)];
    let size = reshape_to(node, size, &one)?;
    Ok(bound(node, size, &[most])?[0])
}

/// Axes by their sizes.
fn sized(
    node: &mut Node<'_>,
    axes: &[usize],
    dims: &[Dim],
    policy: &str,
) -> Result<Vec<Resized>, Problem> {
    let sizes = node.input_dims(3)?;
    if sizes.len() != axes.len() {
        return invalid(format!("it has {} sizes for {} axes", sizes.len(), axes.len()));
    }
    let each = |(&axis, size)| Resized::of(axis, size, None);
    let mut all: Vec<Resized> = axes.iter().zip(sizes).map(each).collect();
    let is_larger = match policy {
        "stretch" => return Ok(all),
        "not_larger" => false,
        "not_smaller" => true,
        other => {
            return not_among(
                "keep_aspect_ratio_policy",
                other,
                &["stretch", "not_larger", "not_smaller"],
            );
        }
    };
    let scale = common_scale(node, &all, dims, is_larger)?;
    let sizes: Vec<Dim> = all
        .iter()
        .map(|each| {
            let by =
                |other: &Resized| at_ratio(node, dims[each.axis], other.size, dims[other.axis]);
            let all = all.iter().map(by);
            let nearest = all.reduce(|a, b| match is_larger {
                true => node.cx().dim_max(a, b),
                false => node.cx().dim_min(a, b),
            });
            nearest.unwrap_or(each.size)
        })
        .collect();
    for (each, size) in all.iter_mut().zip(sizes) {
        (each.size, each.scale) = (size, Some(scale));
    }
    Ok(all)
}

/// An extent by the ratio of two others, rounded to the nearest.
fn at_ratio(node: &Node<'_>, extent: Dim, size: Dim, of: Dim) -> Dim {
    let cx = node.cx();
    let of = cx.dim_max(of, cx.dim(1));
    let twice = cx.dim_sum(&[(cx.dim_mul(extent, size), 2), (of, 1)]);
    cx.dim_floor_div(twice, cx.dim_mul(of, cx.dim(2)))
}

/// The largest of the ratios of the axes, or the smallest.
fn common_scale(
    node: &mut Node<'_>,
    all: &[Resized],
    dims: &[Dim],
    is_larger: bool,
) -> Result<Number, Problem> {
    let value = |dim| node.terms().dim_value(dim);
    let known: Option<Vec<f64>> = all
        .iter()
        .map(|each| Some(value(each.size)? as f64 / value(dims[each.axis])?.max(1) as f64))
        .collect();
    if let Some(ratios) = known {
        let common = ratios.into_iter().reduce(if is_larger { f64::max } else { f64::min });
        return Ok(Number::Known(common.unwrap_or(1.0)));
    }
    let mut common = None;
    for each in all {
        let extent = node.cx().dim_max(dims[each.axis], node.cx().dim(1));
        let [size, extent] = [each.size, extent].map(|dim| number(node, dim));
        let [size, extent] =
            [cast_to(node, size?, DType::F64)?, cast_to(node, extent?, DType::F64)?];
        let ratio = node.apply("divide", &[size, extent])?;
        common = Some(match common {
            None => ratio,
            Some(common) if is_larger => node.apply("maximum", &[common, ratio])?,
            Some(common) => node.apply("minimum", &[common, ratio])?,
        });
    }
    Ok(common.map_or(Number::Known(1.0), Number::Computed))
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
    for each in in_order(node, dims, all) {
        // A scale of 1 changes no place, whatever the mode.
        let is_same = each.scale.is_none_or(|scale| scale == Number::Known(1.0));
        if is_same
            && each.size == dims[each.axis]
            && each.roi == [Number::Known(0.0), Number::Known(1.0)]
        {
            continue;
        }
        let mut attrs = manner.clone();
        attrs.push(("axis", (each.axis as i64).into()));
        let mut computed = Vec::new();
        match each.scale {
            Some(Number::Known(scale)) => attrs.push(("scale", scale.into())),
            Some(Number::Computed(scale)) => computed.push(scale),
            None => {}
        }
        match each.roi {
            [Number::Known(start), Number::Known(end)] => {
                attrs.push(("roi_start", start.into()));
                attrs.push(("roi_end", end.into()));
            }
            [start, end] => computed.extend([start.value(node)?, end.value(node)?]),
        }
        let size = node.shape(&[each.size])?;
        let mut args = vec![y, size];
        if !computed.is_empty() {
            args.push(list(node, &computed)?);
        }
        y = node.call("image.resize1d", &args, &attrs)?;
    }
    Ok(vec![cast_to(node, y, dtype)?])
}

/// Axes in the order that makes the smallest tensors between them: those that shrink from the first, then those that grow from the last,
/// along which single elements are moved.
fn in_order(node: &Node<'_>, dims: &[Dim], mut all: Vec<Resized>) -> Vec<Resized> {
    let known = |dim| node.terms().dim_value(dim);
    all.sort_by_key(|each| {
        let extents = known(dims[each.axis]).zip(known(each.size));
        let shrinks = extents.is_some_and(|(own, size)| size < own);
        if shrinks { (0, each.axis) } else { (1, usize::MAX - each.axis) }
    });
    all
}
