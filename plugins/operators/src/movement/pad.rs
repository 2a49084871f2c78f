//! A tensor with elements before and after each axis.
//!
//! ```ir
//! %y = nn.pad(%x) { pad_width = [0, 0, 1, 1] }    f32[n, 3]  =>  f32[n, 5]
//! ```

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;
use tenon_plugin_api::{with_bits, with_number};

use crate::found::numbers::{element, extent, if_axes_are_there, number, of_axis};
use crate::kernel::space::row_major;
use crate::onnx::steps::{extent_of, joined, left_of, not_among, reshape_to, sliced};
use crate::precision::follows_precision;
use tenon_plugin_api::op::OpPattern;
use tenon_plugin_api::program::{self, Extent};

/// The tensor with elements before and after each axis
#[op(name = "nn.pad", pattern = "injective")]
pub struct Pad {
    /// before, after for each axis in turn
    pad_width: Vec<i64>,
    /// constant, edge or reflect
    #[attr(default = "constant")]
    mode: String,
    /// what constant padding holds
    #[attr(default = 0.0)]
    value: f64,
}

impl Operator for Pad {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        let tensor = cx.tensor(0)?;
        let width = &self.pad_width;
        if width.iter().any(|&width| !(0..=i32::MAX as i64).contains(&width)) {
            return cx.bad_attr("pad_width", width, "each must be between 0 and 2147483647");
        }
        let mode = self.mode.as_str();
        if !["constant", "edge", "reflect"].contains(&mode) {
            return cx.bad_attr("mode", mode, "it is constant, edge or reflect");
        }
        let is_truth = self.value == 0.0 || self.value == 1.0;
        if tensor.dtype == DType::BOOL && !is_truth {
            return cx.bad_attr("value", self.value, "truth values are padded by 0 or 1");
        }
        let Some(dims) = tensor.dims else { return cx.arg(0) };
        if width.len() != 2 * dims.len() {
            let reason = format!("two integers for each of {} dimensions are expected", dims.len());
            return cx.bad_attr("pad_width", width, reason);
        }
        let mut padded: Vec<Dim> = Vec::with_capacity(dims.len());
        for (pair, &dim) in width.chunks_exact(2).zip(dims) {
            let extent = cx.value(dim);
            let is_short = match mode {
                "edge" => extent == Some(0),
                "reflect" => extent.is_some_and(|extent| extent <= pair[0].max(pair[1])),
                _ => false,
            };
            if is_short && pair[0].max(pair[1]) > 0 {
                return cx.bad_attr("pad_width", width, format!("{mode} needs more elements"));
            }
            padded.push(cx.dim_add(dim, cx.dim(pair[0] + pair[1])));
        }
        Ok(cx.tensor_type(tensor.dtype, Some(&padded)))
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        let tensor = cx.arg(0)?;
        let (dtype, shape) = cx.out()?;
        let width = &self.pad_width;
        let mode = self.mode.as_str();
        // For each axis, which index of the source each index of the result shows, if any.
        let sources: Vec<Vec<Option<usize>>> = shape
            .iter()
            .enumerate()
            .map(|(axis, &extent)| {
                let length = tensor.shape()[axis] as i64;
                let at = |index: usize| padded(index as i64 - width[2 * axis], length, mode);
                (0..extent).map(at).collect()
            })
            .collect();
        with_bits!(dtype, T => {
            let fill: T = with_number!(dtype, N => {
                let value = N::from_f64(self.value);
                let scalar = Tensor::from_vec_as(dtype, Vec::new(), vec![value]);
                Ok(scalar.elements::<T>()[0])
            })?;
            Ok(vec![Tensor::from_vec_as(dtype, shape.to_vec(), fill_padded(tensor, shape, &sources, fill))])
        })
    }
}

/// Each element from where it is. Constant padding reads the nearest element where there is none and does not use it, so that no
/// read is out of bounds; where there may be none at all, it reads only inside.
#[rule(compute)]
fn program(op: &Pad, program: &mut Program) {
    let may_be_empty = |(dim, width): (&Dim, &[i64])| {
        width != [0, 0] && program.dim_value(*dim).is_none_or(|extent| extent == 0)
    };
    let input = program.input(0);
    let mut axes = input.shape().iter().zip(op.pad_width.chunks(2));
    let is_guarded = op.mode == "constant" && axes.any(may_be_empty);
    // Rows of which both ends show what is inside again are written in parts.
    let in_parts = op.mode != "constant"
        && matches!(op.pad_width[..], [.., before, after] if before.min(after) >= 0 && before.max(after) > 0);
    if is_guarded || in_parts {
        program.set_pattern(OpPattern::Opaque);
    }
    let (input, out) = (program.input(0), program.output(0));
    if in_parts {
        return part_by_part(op, program, &input, &out);
    }
    program.each(out.shape(), |indices| {
        let mut source = indices.to_vec();
        let mut is_inside: Option<program::Scalar<'_>> = None;
        for (axis, extent) in input.shape().iter().enumerate() {
            let (before, after) = (op.pad_width[2 * axis], op.pad_width[2 * axis + 1]);
            if (before, after) == (0, 0) {
                continue;
            }
            let (index, extent) = (indices[axis] - before, extent.index(program));
            source[axis] = match is_guarded {
                true => index,
                false => shown(op, index, extent),
            };
            let here = index.ge(0).and(index.lt(extent));
            is_inside = Some(is_inside.map_or(here, |before| before.and(here)));
        }
        let fill = program.literal(input.dtype(), op.value);
        match is_inside.filter(|_| op.mode == "constant") {
            None => out.set(indices, input.at(&source)),
            Some(is_inside) if is_guarded => {
                let copy = out.set(indices, input.at(&source));
                program.choose(is_inside, copy, out.set(indices, fill))
            }
            Some(is_inside) => out.set(indices, is_inside.select(input.at(&source), fill)),
        }
    });
}

/// The index that is shown at one that may lie outside.
fn shown<'p>(
    op: &Pad,
    index: program::Scalar<'p>,
    extent: program::Scalar<'p>,
) -> program::Scalar<'p> {
    match op.mode.as_str() {
        "reflect" => {
            let last = extent - 1;
            last - (last - index.call("abs")).call("abs")
        }
        _ => index.max(0).min(extent - 1),
    }
}

/// Rows of the last axis part by part, so that what is inside is copied side by side.
fn part_by_part<'p>(
    op: &Pad,
    program: &'p Program,
    input: &program::Buffer<'p>,
    out: &program::Buffer<'p>,
) {
    let (Some((&extent, outer)), [.., before, after]) =
        (input.shape().split_last(), &op.pad_width[..])
    else {
        return;
    };
    let (before, after) = (*before, *after);
    let cx = program.cx();
    let [left, right] = [before, after].map(|width| cx.dim(width));
    let inside = extent.index(program);
    let parts = [
        (program.index(0), left, false),
        (program.index(before), extent, true),
        (inside + before, right, false),
    ];
    for (begin, width, is_inside) in parts {
        let of_part = [&out.shape()[..outer.len()], &[width]].concat();
        program.each(&of_part, |indices| {
            let (&column, rows) = indices.split_last().expect("there is a last axis");
            let mut source: Vec<_> = rows
                .iter()
                .zip(outer)
                .enumerate()
                .map(|(axis, (&row, &extent))| match op.pad_width[2 * axis..2 * axis + 2] {
                    [0, 0] => row,
                    _ => shown(op, row - op.pad_width[2 * axis], extent.index(program)),
                })
                .collect();
            let at = begin + column;
            source.push(if is_inside { column } else { shown(op, at - before, inside) });
            out.set(&[rows, &[at]].concat(), input.at(&source))
        });
    }
}

/// The index of an axis of `length` that is shown at `index`, which may lie outside.
fn padded(index: i64, length: i64, mode: &str) -> Option<usize> {
    let inside = match mode {
        "edge" => index.clamp(0, length - 1),
        "reflect" if index < 0 => -index,
        "reflect" if index >= length => 2 * (length - 1) - index,
        _ => index,
    };
    (0..length).contains(&inside).then_some(inside as usize)
}

fn fill_padded<T: Element>(
    tensor: &Tensor,
    shape: &[usize],
    sources: &[Vec<Option<usize>>],
    fill: T,
) -> Vec<T> {
    let elements = tensor.elements::<T>();
    let mut out = vec![fill; shape.iter().product()];
    let Some((last, outer)) = sources.split_last() else { return elements.to_vec() };
    let strides = row_major(tensor.shape());
    let mut index = vec![0; outer.len()];
    for out in out.chunks_exact_mut(last.len().max(1)) {
        let offset = outer.iter().enumerate().try_fold(0, |offset, (axis, sources)| {
            sources[index[axis]].map(|source| offset + source * strides[axis] as usize)
        });
        if let Some(offset) = offset {
            for (out, source) in out.iter_mut().zip(last) {
                if let Some(source) = source {
                    *out = elements[offset + source];
                }
            }
        }
        for axis in (0..outer.len()).rev() {
            index[axis] += 1;
            if index[axis] < shape[axis] {
                break;
            }
            index[axis] = 0;
        }
    }
    out
}

/// Padding by nothing `=> x`.
#[rule(simplify)]
fn simplify(_: &Pad, at: &mut Site<'_>) -> Option<Expr> {
    at.same_type(at.arg(0))
}

follows_precision!(Pad);

/// With its widths in the order of the axes.
#[rule(layout)]
fn layout(op: &Pad, at: &mut Following<'_>) -> Option<Carried> {
    let x = at.carried()?;
    let of_axis = |&axis: &usize| op.pad_width.get(2 * axis..2 * axis + 2);
    let widths: Option<Vec<&[i64]>> = x.order.iter().map(of_axis).collect();
    at.with_attr(x, "pad_width", widths?.concat().into())
}

/// `g` without the padding.
#[rule(gradient)]
fn gradient(op: &Pad, at: &mut Adjoint<'_>) -> Result<Grads> {
    if op.mode != "constant" {
        return Err(OpError::Unsupported("padding repeats elements".into()));
    }
    let shape = at.extents(at.arg(0))?;
    let mut g = at.grad();
    for (axis, (pair, &extent)) in op.pad_width.chunks_exact(2).zip(&shape).enumerate() {
        if pair != [0, 0] {
            g = at.slice(g, axis as i64, pair[0], pair[0] + extent);
        }
    }
    Ok(Grads::of([g]))
}

/// `Pad` with everything as attributes.
#[rule(import.onnx, key = "Pad", since = 2, until = 10)]
fn import_attributes(node: &mut Node<'_>) -> Outputs {
    let Some(pads) = node.ints("pads")? else { return invalid("its attribute `pads` is missing") };
    let value = node.float_or("value", 0.0)?;
    with_widths(node, &pads, None, value)
}

/// `Pad` with widths, value and axes as inputs.
#[rule(import.onnx, key = "Pad", since = 11)]
fn import(node: &mut Node<'_>) -> Outputs {
    let pads = match node.input_ints(1) {
        Err(Problem::NotConstant { .. }) => return of_dims(node),
        known => known?,
    };
    let value = match node.optional(2) {
        None => 0.0,
        Some(value) => match node.number(value).and_then(Scalar::as_float) {
            Some(value) => value,
            None => return node.not_constant(2),
        },
    };
    let axes = node.optional_axes(3)?;
    with_widths(node, &pads, axes, value)
}

/// `Pad` with widths that are dimensions: each axis is read at the places that its mode says.
fn of_dims(node: &mut Node<'_>) -> Outputs {
    let (mut x, pads) = (node.input(0)?, node.input_dims(1)?);
    let mode = node.text("mode", "constant")?;
    let rank = node.dims(x)?.len();
    let axes = match node.optional_axes(3)? {
        Some(axes) => node.axes(&axes, rank)?,
        None => (0..rank).collect(),
    };
    if pads.len() != 2 * axes.len() {
        return invalid(format!("it has {} widths for {} axes", pads.len(), axes.len()));
    }
    let value = match node.optional(2) {
        Some(value) => reshape_to(node, value, &[])?,
        None => node.scalar_like(x, 0.0)?,
    };
    for (at, &axis) in axes.iter().enumerate() {
        let widths = [pads[at], pads[at + axes.len()]];
        let extent = node.dims(x)?[axis];
        let whole = widths.iter().fold(extent, |sum, &width| node.cx().dim_add(sum, width));
        if whole == extent {
            continue;
        }
        let shape = node.shape(&[whole])?;
        let places = node.apply("arange", &[shape])?;
        let before = node.known(&Known::scalar(DType::I64, widths[0]))?;
        x = with_places(node, x, (axis, whole), [places, before], (&mode, value))?;
    }
    Ok(vec![x])
}

/// `Pad` with widths that are computed, below zero as well, along axes that may be computed too.
#[rule(import.onnx, domain = "tenon.found", key = "Pad", since = 11)]
fn of_numbers(node: &mut Node<'_>) -> Outputs {
    let (mut x, pads) = (node.input(0)?, node.input(1)?);
    let mode = node.text("mode", "constant")?;
    let rank = node.dims(x)?.len();
    let value = match node.optional(2) {
        Some(value) => reshape_to(node, value, &[])?,
        None => node.scalar_like(x, 0.0)?,
    };
    let (widths, computed) = widths(node, pads, rank)?;
    for (axis, [before, behind]) in widths {
        let dim = node.dims(x)?[axis];
        let own = number(node, dim)?;
        let whole = node.apply("add", &[own, before])?;
        let mut whole = node.apply("add", &[whole, behind])?;
        if axis == 0 {
            whole = if_axes_are_there(node, &computed, rank, whole)?;
        }
        let whole = extent(node, whole, None)?;
        let shape = node.shape(&[whole])?;
        let places = node.apply("arange", &[shape])?;
        x = with_places(node, x, (axis, whole), [places, before], (&mode, value))?;
    }
    Ok(vec![x])
}

/// An axis, and how much is put before it and behind it.
type Widths = (usize, [Value; 2]);

/// The axes that are padded, and how much as numbers: all of them where a call computes which these are, with what it computes.
fn widths(
    node: &mut Node<'_>,
    pads: Value,
    rank: usize,
) -> Result<(Vec<Widths>, Vec<Value>), Problem> {
    let known = match node.optional_ints(3) {
        Ok(Some(axes)) => Some(node.axes(&axes, rank)?),
        Ok(None) => Some((0..rank).collect()),
        Err(_) => None,
    };
    let count = match &known {
        Some(axes) => Some(axes.len() as i64),
        None => {
            let named = node.input(3)?;
            node.dims(named)?.first().and_then(|&count| node.terms().dim_value(count))
        }
    };
    let Some(count) = count else {
        return unsupported("axes of which it is not known how many they are");
    };
    let given = node.dims(pads)?.iter().map(|&dim| node.terms().dim_value(dim)).collect::<Vec<_>>();
    if given != [Some(2 * count)] {
        return invalid(format!("its widths are not {}", 2 * count));
    }
    let all = 0..2 * count as usize;
    let all = all.map(|at| element(node, pads, at)).collect::<Result<Vec<_>, _>>()?;
    let (before, behind) = all.split_at(count as usize);
    if let Some(axes) = known {
        let pairs = before.iter().zip(behind).map(|(&before, &behind)| [before, behind]);
        return Ok((axes.into_iter().zip(pairs).collect(), Vec::new()));
    }
    let named = node.input(3)?;
    let axes = 0..count as usize;
    let axes = axes.map(|at| element(node, named, at)).collect::<Result<Vec<_>, _>>()?;
    let mut widths = Vec::with_capacity(rank);
    for axis in 0..rank {
        let none = node.scalar(DType::I64, 0.0)?;
        let pair = [before, behind].map(|list| of_axis(node, &axes, (axis, rank), list, none));
        let [before, behind] = pair;
        widths.push((axis, [before?, behind?]));
    }
    Ok((widths, axes))
}

/// `x` with a number before and behind an axis, so many before and as many in all as two dimensions say.
pub(crate) fn with_around(
    node: &mut Node<'_>,
    x: Value,
    axis: usize,
    [before, whole]: [Dim; 2],
    number: f64,
) -> Result<Value, Problem> {
    let shape = node.shape(&[whole])?;
    let places = node.apply("arange", &[shape])?;
    let before = node.known(&Known::scalar(DType::I64, before))?;
    let number = node.scalar_like(x, number)?;
    with_places(node, x, (axis, whole), [places, before], ("constant", number))
}

/// `x` with another extent of an axis, whose places are counted from as many before its first element.
fn with_places(
    node: &mut Node<'_>,
    x: Value,
    (axis, whole): (usize, Dim),
    [places, before]: [Value; 2],
    (mode, value): (&str, Value),
) -> Result<Value, Problem> {
    let (rank, extent) = (node.dims(x)?.len(), node.dims(x)?[axis]);
    let places = node.apply("subtract", &[places, before])?;
    let inside = places_inside(node, mode, places, extent)?;
    let x = node.call("take", &[x, inside], &[("axis", (axis as i64).into())])?;
    if mode != "constant" {
        return Ok(x);
    }
    let mut shape = vec![whole];
    shape.resize(rank - axis, node.cx().dim(1));
    let is_own = node.apply("equal", &[places, inside])?;
    let is_own = reshape_to(node, is_own, &shape)?;
    node.apply("where", &[is_own, x, value])
}

/// The places within an axis that stand for places beyond it too.
fn places_inside(
    node: &mut Node<'_>,
    mode: &str,
    places: Value,
    extent: Dim,
) -> Result<Value, Problem> {
    let one = node.cx().dim(1);
    let last = node.cx().dim_sub(extent, one);
    let number = |node: &mut Node<'_>, dim| node.known(&Known::scalar(DType::I64, dim));
    match mode {
        "constant" | "edge" => {
            let (zero, last) = (node.scalar_like(places, 0.0)?, number(node, last)?);
            let places = node.apply("maximum", &[places, zero])?;
            node.apply("minimum", &[places, last])
        }
        "wrap" => {
            let extent = number(node, extent)?;
            counted_around(node, places, extent)
        }
        // There and back again.
        "reflect" => {
            let period = node.cx().dim_max(node.cx().dim_add(last, last), one);
            let period = number(node, period)?;
            let there = counted_around(node, places, period)?;
            let back = node.apply("subtract", &[period, there])?;
            node.apply("minimum", &[there, back])
        }
        other => not_among("mode", other, &["constant", "edge", "reflect", "wrap"]),
    }
}

/// Places modulo a period, which are never negative.
fn counted_around(node: &mut Node<'_>, places: Value, period: Value) -> Result<Value, Problem> {
    let left = left_of(node, places, period)?;
    let left = node.apply("add", &[left, period])?;
    left_of(node, left, period)
}

fn with_widths(node: &mut Node<'_>, pads: &[i64], axes: Option<Vec<i64>>, value: f64) -> Outputs {
    let mut x = node.input(0)?;
    let mode = node.text("mode", "constant")?;
    if !["constant", "edge", "reflect", "wrap"].contains(&mode.as_str()) {
        return not_among("mode", &mode, &["constant", "edge", "reflect", "wrap"]);
    }
    let rank = node.dims(x)?.len();
    let axes = match axes {
        Some(axes) => node.axes(&axes, rank)?,
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
        x = cropped(node, x, &widths)?;
        widths.iter_mut().for_each(|width| *width = (*width).max(0));
    }
    if mode == "wrap" {
        return wrapped(node, x, &widths);
    }
    let mut attrs = vec![("pad_width", widths.into()), ("mode", mode.as_str().into())];
    if mode == "constant" {
        attrs.push(("value", value.into()));
    }
    Ok(vec![node.call("nn.pad", &[x], &attrs)?])
}

/// Elements of the other end before and after each axis.
fn wrapped(node: &mut Node<'_>, mut x: Value, widths: &[i64]) -> Outputs {
    for (axis, pair) in widths.chunks_exact(2).enumerate() {
        let &[before, after] = pair else { continue };
        if before.max(after) == 0 {
            continue;
        }
        let extent = extent_of(node, node.dims(x)?[axis], "dimension that is wrapped around")?;
        if before.max(after) > extent {
            return unsupported(format!("{before} and {after} elements around {extent}"));
        }
        let mut parts = vec![x];
        if before > 0 {
            parts.insert(0, sliced(node, x, axis, [extent - before, extent])?);
        }
        if after > 0 {
            parts.push(sliced(node, x, axis, [0, after])?);
        }
        x = joined(node, &parts, axis as i64)?;
    }
    Ok(vec![x])
}

/// Takes away what negative widths say.
fn cropped(node: &mut Node<'_>, x: Value, widths: &[i64]) -> Result<Value, Problem> {
    let begin = widths.iter().step_by(2).map(|&width| width.min(0).saturating_neg());
    let end =
        widths.iter().skip(1).step_by(2).map(|&width| if width < 0 { width } else { i64::MAX });
    let attrs =
        [("begin", begin.collect::<Vec<i64>>().into()), ("end", end.collect::<Vec<i64>>().into())];
    node.call("strided_slice", &[x], &attrs)
}
