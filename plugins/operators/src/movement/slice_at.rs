//! `Slice` between places that are computed, as NumPy has them: below zero they count from the end.
//!
//! ```text
//! begin = clip(s < 0 ? s + n : s, 0, n)       count = ceil(max(end - begin, 0) / step)       at most n
//! backwards: clip(…, 0, n - 1)                count = ceil(max(begin - end, 0) / -step)      an end may be -1
//! ```

use tenon_plugin_api::rule::prelude::*;

use crate::found::numbers::{between, element, extent, if_axes_are_there, list, number, of_axis};
use crate::onnx::steps::below_zero;

/// One axis of a slice.
struct Part {
    axis: usize,
    begin: Value,
    step: Step,
    count: Dim,
}

/// From one place to the next.
#[derive(Clone, Copy)]
enum Step {
    Known(i64),
    Computed(Value),
}

/// `Slice` whose starts, ends, axes or steps are computed.
#[rule(import.onnx, domain = "tenon.found", key = "Slice", since = 10)]
fn slice(node: &mut Node<'_>) -> Outputs {
    let x = node.input(0)?;
    let dims = node.dims(x)?;
    let Some(starts) = elements(node, 1)? else { return invalid("it has no starts") };
    let Some(ends) = elements(node, 2)? else { return invalid("it has no ends") };
    let count = starts.len();
    let (axes, steps) = (elements(node, 3)?, elements(node, 4)?);
    let has_all = |list: &Option<Vec<Value>>| list.as_ref().is_none_or(|list| list.len() == count);
    if ends.len() != count || !has_all(&axes) || !has_all(&steps) {
        return invalid("its starts, ends, axes and steps differ in number");
    }
    let mut parts = Vec::with_capacity(count);
    let Ok(known) = node.optional_ints(3) else {
        let one = node.cx().dim(1);
        let one = number(node, one)?;
        let steps = steps.unwrap_or_else(|| vec![one; count]);
        let axes = axes.unwrap_or_default();
        let lists = [&axes, &starts, &ends, &steps].map(Vec::as_slice);
        for axis in 0..dims.len() {
            parts.push(part_of_any(node, (axis, &dims), lists)?);
        }
        return taken(node, x, &dims, &parts);
    };
    let axes = known.unwrap_or_else(|| (0..count as i64).collect());
    for (at, axis) in node.axes(&axes, dims.len())?.into_iter().enumerate() {
        let step = match &steps {
            Some(steps) => step_of(node, steps[at]),
            None => Step::Known(1),
        };
        parts.push(part(node, (axis, &dims), [starts[at], ends[at]], step, &[])?);
    }
    taken(node, x, &dims, &parts)
}

/// The elements of an input that is a list of numbers.
fn elements(node: &mut Node<'_>, index: usize) -> Result<Option<Vec<Value>>, Problem> {
    let Some(list) = node.optional(index) else { return Ok(None) };
    let count = node.dims(list)?.first().and_then(|&count| node.terms().dim_value(count));
    let Some(count) = count else {
        return unsupported("places of which it is not known how many they are");
    };
    (0..count as usize).map(|at| element(node, list, at)).collect::<Result<_, _>>().map(Some)
}

fn step_of(node: &Node<'_>, step: Value) -> Step {
    let known = node.elements(step).and_then(|known| known.numbers(node.terms()));
    match known.as_deref() {
        Some(&[step]) => Step::Known(step),
        _ => Step::Computed(step),
    }
}

/// What is taken of an axis that any of these axes may be.
fn part_of_any(
    node: &mut Node<'_>,
    (axis, dims): (usize, &[Dim]),
    [axes, starts, ends, steps]: [&[Value]; 4],
) -> Result<Part, Problem> {
    let (at, dim) = ((axis, dims.len()), dims[axis]);
    let [zero, one] = [0, 1].map(|value| node.cx().dim(value));
    let [first, last, by] = [zero, dim, one].map(|dim| number(node, dim));
    let start = of_axis(node, axes, at, starts, first?)?;
    let end = of_axis(node, axes, at, ends, last?)?;
    let all_are_one = steps.iter().all(|&step| matches!(step_of(node, step), Step::Known(1)));
    let step = match all_are_one {
        true => Step::Known(1),
        false => Step::Computed(of_axis(node, axes, at, steps, by?)?),
    };
    // Whether there are such axes is asked once.
    let named = if axis == 0 { axes } else { &[] };
    part(node, (axis, dims), [start, end], step, named)
}

/// What is taken of an axis; nothing can be where one of the axes `named` is none.
fn part(
    node: &mut Node<'_>,
    (axis, dims): (usize, &[Dim]),
    places: [Value; 2],
    step: Step,
    named: &[Value],
) -> Result<Part, Problem> {
    let dim = dims[axis];
    let (begin, count) = match step {
        Step::Known(step) if step == 0 || step.checked_abs().is_none() => {
            return invalid(format!("one of its steps is {step}"));
        }
        Step::Known(by) => {
            // Forwards a place is one up to the end, backwards one from before the first element on.
            let shift = node.cx().dim(i64::from(by < 0));
            let shift = number(node, shift)?;
            let [begin, end] = bounded(node, dim, places, shift)?;
            let ends = if by > 0 { [end, begin] } else { [begin, end] };
            let room = node.apply("subtract", &ends)?;
            let by = node.cx().dim(by.abs());
            let by = number(node, by)?;
            (begin, counted(node, room, by)?)
        }
        Step::Computed(by) => {
            let [zero, one] = [0, 1].map(|value| node.cx().dim(value));
            let [zero, one] = [zero, one].map(|dim| number(node, dim));
            let (zero, one) = (zero?, one?);
            let is_back = node.apply("less", &[by, zero])?;
            let shift = node.apply("where", &[is_back, one, zero])?;
            let [begin, end] = bounded(node, dim, places, shift)?;
            let [there, back] =
                [[end, begin], [begin, end]].map(|ends| node.apply("subtract", &ends));
            let room = node.apply("where", &[is_back, back?, there?])?;
            let width = node.apply("abs", &[by])?;
            let width = node.apply("maximum", &[width, one])?;
            let count = counted(node, room, width)?;
            // A step of 0 leads nowhere: no extent is below zero.
            let is_none = node.apply("equal", &[by, zero])?;
            let none = node.apply("subtract", &[zero, one])?;
            (begin, node.apply("where", &[is_none, none, count])?)
        }
    };
    let count = if_axes_are_there(node, named, dims.len(), count)?;
    let count = extent(node, count, Some(dim))?;
    Ok(Part { axis, begin, step, count })
}

/// Where a slice begins and ends, counted from the beginning: up to `shift` before the end, and only the end may lie before the first
/// element, by `shift`.
fn bounded(
    node: &mut Node<'_>,
    dim: Dim,
    [begin, end]: [Value; 2],
    shift: Value,
) -> Result<[Value; 2], Problem> {
    let (whole, zero) = (number(node, dim)?, node.cx().dim(0));
    let zero = number(node, zero)?;
    let before = node.apply("subtract", &[zero, shift])?;
    let most = node.apply("subtract", &[whole, shift])?;
    let [begin, end] = [(begin, zero), (end, before)].map(|(place, least)| {
        let from_end = node.apply("add", &[place, whole])?;
        let place = below_zero(node, place, from_end)?;
        between(node, place, [least, most])
    });
    Ok([begin?, end?])
}

/// How many steps begin in a room.
fn counted(node: &mut Node<'_>, room: Value, step: Value) -> Result<Value, Problem> {
    let zero = node.scalar_like(room, 0.0)?;
    let one = node.scalar_like(room, 1.0)?;
    let room = node.apply("maximum", &[room, zero])?;
    let above = node.apply("subtract", &[step, one])?;
    let above = node.apply("add", &[room, above])?;
    node.apply("divide", &[above, step])
}

/// A box where all steps are 1, else the elements one axis after the other.
fn taken(node: &mut Node<'_>, mut x: Value, dims: &[Dim], parts: &[Part]) -> Outputs {
    if parts.iter().all(|part| matches!(part.step, Step::Known(1))) {
        let zero = node.cx().dim(0);
        let mut first = vec![number(node, zero)?; dims.len()];
        let mut size = dims.to_vec();
        for part in parts {
            first[part.axis] = part.begin;
            size[part.axis] = part.count;
        }
        let first = list(node, &first)?;
        let size = node.shape(&size)?;
        return Ok(vec![node.apply("dynamic_slice", &[x, first, size])?]);
    }
    for part in parts {
        let shape = node.shape(&[part.count])?;
        let places = node.apply("arange", &[shape])?;
        let step = match part.step {
            Step::Computed(step) => step,
            Step::Known(step) => {
                let step = node.cx().dim(step);
                number(node, step)?
            }
        };
        let places = node.apply("multiply", &[places, step])?;
        let places = node.apply("add", &[places, part.begin])?;
        x = node.call("take", &[x, places], &[("axis", (part.axis as i64).into())])?;
    }
    Ok(vec![x])
}
