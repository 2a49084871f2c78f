//! Operators on integers that are known as dimensions, computed at once.
//!
//! ```text
//! s = Shape(x)              [batch, 64, 7, 7]
//! n = Gather(s, 0)          batch
//! t = Concat(Unsqueeze(n), [-1])     [batch, -1]
//! ```
//!
//! What cannot be computed so is translated like on any other tensor.

use std::rc::Rc;

use crate::ir::{Context, Cx, DType, Dim};

use super::builder::Value;
use super::dim_math::{is_small, lower_bound};
use super::error::Problem;
use super::known::{Known, LARGEST, is_number};
use super::node::NodeCx;
use super::ops::cast::target;
use super::ops::shape::{axes_of, reshaped_dims, squeezed_axes};
use super::ops::slice::ranges;

/// The outputs of a node whose inputs are all known as dimensions, if they can be computed.
pub(super) fn fold(cx: &mut NodeCx<'_, '_>, op_type: &str) -> Result<Option<Vec<Value>>, Problem> {
    let mut inputs: Vec<Rc<Known>> = Vec::new();
    for &input in cx.inputs.iter().flatten() {
        match cx.elements(input) {
            Some(known) => inputs.push(known),
            None => return Ok(None),
        }
    }
    if inputs.is_empty() || inputs.len() < cx.inputs.len() {
        return Ok(None);
    }
    let folded = folded(cx, op_type, &inputs)?;
    let is_fine = |known: &Known| {
        known.elements.iter().all(|&element| is_small(cx.terms(), element))
            && known.elements.len() <= LARGEST
    };
    let Some(known) = folded.filter(is_fine) else { return Ok(None) };
    match cx.spend(size_of_val(known.elements.as_slice())) {
        true => Ok(Some(vec![cx.known(known)])),
        false => Ok(None),
    }
}

fn folded(
    cx: &NodeCx<'_, '_>,
    op_type: &str,
    inputs: &[Rc<Known>],
) -> Result<Option<Known>, Problem> {
    let first = &inputs[0];
    let dims = cx.cx();
    let same = |of: &dyn Fn(&Cx, Dim, Dim) -> Option<Dim>| {
        let is_exact = matches!(first.dtype, DType::I64 | DType::I32);
        let known = is_exact.then(|| elementwise(dims, first, inputs.get(1)?, first.dtype, of))?;
        known.filter(|known| fits(dims, known))
    };
    let compare = |of: &dyn Fn(&Cx, Dim, Dim) -> Option<bool>| {
        let of = |cx: &Cx, a, b| Some(cx.dim(i64::from(of(cx, a, b)?)));
        elementwise(dims, first, inputs.get(1)?, DType::BOOL, &of)
    };
    Ok(match op_type {
        "Add" => same(&|cx, a, b| Some(cx.dim_add(a, b))),
        "Sub" => same(&|cx, a, b| Some(cx.dim_sub(a, b))),
        "Mul" => same(&multiply),
        "Div" => same(&divide),
        "Min" if inputs.len() == 2 => same(&|cx, a, b| Some(cx.dim_min(a, b))),
        "Max" if inputs.len() == 2 => same(&|cx, a, b| Some(cx.dim_max(a, b))),
        "Equal" => compare(&is_equal),
        "Less" => compare(&is_less),
        "Greater" => compare(&|cx, a, b| is_less(cx, b, a)),
        "And" => compare(&|cx, a, b| Some(truth(cx, a)? && truth(cx, b)?)),
        "Or" => compare(&|cx, a, b| Some(truth(cx, a)? || truth(cx, b)?)),
        "Mod" if !cx.flag("fmod", false)? => same(&remainder),
        "Not" => compare_with_zero(dims, first),
        "Where" => choose(dims, inputs),
        "Cast" => Some(Known { dtype: target(cx)?, ..(**first).clone() }).filter(|known| {
            // A cast to bool is a comparison, and a narrower type may not hold the number.
            is_number(known.dtype) && !known.dtype.is_bool() && fits(dims, known)
        }),
        "Concat" => concat(cx, inputs)?,
        "Gather" => gather(cx, first, inputs)?,
        "Slice" => slice(cx, first)?,
        "Squeeze" => squeeze(cx, first)?,
        "Unsqueeze" => unsqueeze(cx, first)?,
        "Reshape" => reshape(cx, first, inputs)?,
        "ReduceProd" if is_whole(cx, first)? => reduce(cx, first, multiply)?,
        "ReduceSum" if is_whole(cx, first)? => {
            reduce(cx, first, |cx, a, b| Some(cx.dim_add(a, b)))?
        }
        _ => None,
    })
}

/// Whether all numbers are within the range of their type.
fn fits(cx: &Cx, known: &Known) -> bool {
    let bits = known.dtype.bits();
    let in_range = |value: i64| match known.dtype.is_signed() {
        true => bits >= 64 || (value << (64 - bits) >> (64 - bits)) == value,
        false => value >= 0 && (bits >= 64 || value < 1 << bits),
    };
    known.elements.iter().all(|&element| cx.terms().dim_value(element).is_none_or(in_range))
}

fn multiply(cx: &Cx, a: Dim, b: Dim) -> Option<Dim> {
    Some(cx.dim_mul(a, b))
}

/// Division towards zero, which is rounding down as long as nothing is negative.
fn divide(cx: &Cx, a: Dim, b: Dim) -> Option<Dim> {
    let terms = cx.terms();
    match (terms.dim_value(a), terms.dim_value(b)) {
        (_, Some(0)) => None,
        (Some(a), Some(b)) => a.checked_div(b).map(|quotient| cx.dim(quotient)),
        _ => {
            let is_right = lower_bound(terms, a)? >= 0 && lower_bound(terms, b)? > 0;
            is_right.then(|| match super::dim_math::quotient(cx, &[a], &[b]) {
                Some(quotient) => quotient,
                None => cx.dim_floor_div(a, b),
            })
        }
    }
}

/// The remainder of a division rounded down, as long as the divisor is positive.
fn remainder(cx: &Cx, a: Dim, b: Dim) -> Option<Dim> {
    let is_right = lower_bound(cx.terms(), b)? > 0;
    is_right.then(|| cx.dim_floor_mod(a, b))
}

fn truth(cx: &Cx, x: Dim) -> Option<bool> {
    Some(cx.terms().dim_value(x)? != 0)
}

fn is_equal(cx: &Cx, a: Dim, b: Dim) -> Option<bool> {
    match (is_less(cx, a, b), is_less(cx, b, a)) {
        _ if a == b => Some(true),
        (Some(true), _) | (_, Some(true)) => Some(false),
        (Some(false), Some(false)) => Some(true),
        _ => None,
    }
}

fn is_less(cx: &Cx, a: Dim, b: Dim) -> Option<bool> {
    let terms = cx.terms();
    if lower_bound(terms, cx.dim_sub(b, a)).is_some_and(|bound| bound > 0) {
        return Some(true);
    }
    lower_bound(terms, cx.dim_sub(a, b)).filter(|&bound| bound >= 0).map(|_| false)
}

fn compare_with_zero(cx: &Cx, x: &Known) -> Option<Known> {
    let flip = |&element: &Dim| Some(cx.dim(i64::from(cx.terms().dim_value(element)? == 0)));
    let elements = x.elements.iter().map(flip).collect::<Option<_>>()?;
    x.dtype.is_bool().then_some(Known { elements, ..x.clone() })
}

fn choose(cx: &Cx, inputs: &[Rc<Known>]) -> Option<Known> {
    let [condition, then, otherwise] = inputs else { return None };
    let shape = broadcast(&broadcast(&condition.shape, &then.shape)?, &otherwise.shape)?;
    let pick = |place: usize| {
        let at = |known: &Known| known.elements[index_of(&shape, &known.shape, place)];
        let is_true = cx.terms().dim_value(at(condition))? != 0;
        Some(if is_true { at(then) } else { at(otherwise) })
    };
    let elements = (0..count(&shape)?).map(pick).collect::<Option<_>>()?;
    (then.dtype == otherwise.dtype).then_some(Known { dtype: then.dtype, shape, elements })
}

fn elementwise(
    cx: &Cx,
    a: &Known,
    b: &Known,
    dtype: DType,
    of: &dyn Fn(&Cx, Dim, Dim) -> Option<Dim>,
) -> Option<Known> {
    if a.dtype != b.dtype {
        return None;
    }
    let shape = broadcast(&a.shape, &b.shape)?;
    let at = |known: &Known, place| known.elements[index_of(&shape, &known.shape, place)];
    let elements = (0..count(&shape)?)
        .map(|place| of(cx, at(a, place), at(b, place)))
        .collect::<Option<_>>()?;
    Some(Known { dtype, shape, elements })
}

fn broadcast(a: &[usize], b: &[usize]) -> Option<Vec<usize>> {
    let rank = a.len().max(b.len());
    let at = |shape: &[usize], axis: usize| {
        (axis + shape.len()).checked_sub(rank).map_or(1, |at| shape[at])
    };
    (0..rank)
        .map(|axis| match (at(a, axis), at(b, axis)) {
            (x, y) if x == y => Some(x),
            (1, x) | (x, 1) => Some(x),
            _ => None,
        })
        .collect()
}

/// Number of elements, if they are few.
fn count(shape: &[usize]) -> Option<usize> {
    let count = shape.iter().try_fold(1usize, |count, &dim| count.checked_mul(dim))?;
    (count <= LARGEST).then_some(count)
}

/// Which element of a tensor of shape `from` stands at `place` when it is broadcast to `shape`.
fn index_of(shape: &[usize], from: &[usize], mut place: usize) -> usize {
    let (mut index, mut step) = (0, 1);
    for axis in (0..shape.len()).rev() {
        let at = place % shape[axis];
        place /= shape[axis];
        let Some(own) = (axis + from.len()).checked_sub(shape.len()) else { break };
        if from[own] != 1 {
            index += at * step;
        }
        step *= from[own];
    }
    index
}

fn concat(cx: &NodeCx<'_, '_>, inputs: &[Rc<Known>]) -> Result<Option<Known>, Problem> {
    let first = &inputs[0];
    let is_like = |known: &Rc<Known>| known.shape.len() == 1 && known.dtype == first.dtype;
    if !inputs.iter().all(is_like) {
        return Ok(None);
    }
    cx.axis(cx.int_or("axis", 0)?, 1)?;
    let elements: Vec<Dim> =
        inputs.iter().flat_map(|known| known.elements.iter().copied()).collect();
    Ok(Some(Known { dtype: first.dtype, shape: vec![elements.len()], elements }))
}

/// Elements of a vector.
fn gather(
    cx: &NodeCx<'_, '_>,
    data: &Known,
    inputs: &[Rc<Known>],
) -> Result<Option<Known>, Problem> {
    let (&[extent], Some(indices)) = (data.shape.as_slice(), inputs.get(1)) else {
        return Ok(None);
    };
    cx.axis(cx.int_or("axis", 0)?, 1)?;
    let element = |index: i64| {
        let index = if index < 0 { index + extent as i64 } else { index };
        data.elements.get(usize::try_from(index).ok()?).copied()
    };
    let elements = indices
        .numbers(cx.terms())
        .and_then(|indices| indices.into_iter().map(element).collect::<Option<Vec<Dim>>>());
    Ok(elements.map(|elements| Known { dtype: data.dtype, shape: indices.shape.clone(), elements }))
}

/// A part of a vector.
fn slice(cx: &NodeCx<'_, '_>, data: &Known) -> Result<Option<Known>, Problem> {
    let &[extent] = data.shape.as_slice() else { return Ok(None) };
    let extent = extent as i64;
    let ranges = ranges(cx, &[cx.cx().dim(extent)])?;
    let Some(range) = ranges.first() else { return Ok(Some(data.clone())) };
    let (low, high) = if range.step > 0 { (0, extent) } else { (-1, extent - 1) };
    let clamp = |index: i64| {
        let index = if index < 0 { index.saturating_add(extent) } else { index };
        index.clamp(low, high.max(low))
    };
    let (mut at, end) = (clamp(range.start), clamp(range.end));
    let mut elements = Vec::new();
    while if range.step > 0 { at < end } else { at > end } {
        elements.push(data.elements[at as usize]);
        at = at.saturating_add(range.step);
    }
    Ok(Some(Known { dtype: data.dtype, shape: vec![elements.len()], elements }))
}

fn squeeze(cx: &NodeCx<'_, '_>, data: &Known) -> Result<Option<Known>, Problem> {
    let dims: Vec<Dim> = data.shape.iter().map(|&dim| cx.cx().dim(dim as i64)).collect();
    let axes = squeezed_axes(cx, &dims)?;
    if axes.iter().any(|&axis| data.shape[axis] != 1) {
        return Ok(None);
    }
    let shape = data.shape.iter().enumerate();
    let shape = shape.filter(|(axis, _)| !axes.contains(axis)).map(|(_, &dim)| dim).collect();
    Ok(Some(Known { shape, ..data.clone() }))
}

fn unsqueeze(cx: &NodeCx<'_, '_>, data: &Known) -> Result<Option<Known>, Problem> {
    let Some(axes) = axes_of(cx)? else { return Ok(None) };
    let rank = data.shape.len() + axes.len();
    let axes = cx.axes(&axes, rank)?;
    let mut rest = data.shape.iter().copied();
    let shape = (0..rank).map(|axis| match axes.contains(&axis) {
        true => Some(1),
        false => rest.next(),
    });
    Ok(shape.collect::<Option<_>>().map(|shape| Known { shape, ..data.clone() }))
}

fn reshape(
    cx: &NodeCx<'_, '_>,
    data: &Known,
    inputs: &[Rc<Known>],
) -> Result<Option<Known>, Problem> {
    let Some(wanted) = inputs.get(1) else { return Ok(None) };
    let dims: Vec<Dim> = data.shape.iter().map(|&dim| cx.cx().dim(dim as i64)).collect();
    let dims = reshaped_dims(cx, &dims, &wanted.elements)?;
    let size = |&dim: &Dim| usize::try_from(cx.terms().dim_value(dim)?).ok();
    let shape: Option<Vec<usize>> = dims.iter().map(size).collect();
    let shape = shape.filter(|shape| count(shape) == Some(data.elements.len()));
    Ok(shape.map(|shape| Known { shape, ..data.clone() }))
}

/// Whether a reduction is over all elements of a vector.
fn is_whole(cx: &NodeCx<'_, '_>, data: &Known) -> Result<bool, Problem> {
    let is_exact = matches!(data.dtype, DType::I64 | DType::I32);
    let noop = cx.flag("noop_with_empty_axes", false)?;
    cx.ignore("axes");
    Ok(data.shape.len() == 1 && is_exact && !noop)
}

fn reduce(
    cx: &NodeCx<'_, '_>,
    data: &Known,
    of: fn(&Cx, Dim, Dim) -> Option<Dim>,
) -> Result<Option<Known>, Problem> {
    let Some((&first, rest)) = data.elements.split_first() else { return Ok(None) };
    let mut result = first;
    for &element in rest {
        match of(cx.cx(), result, element) {
            Some(next) if is_small(cx.terms(), next) => result = next,
            _ => return Ok(None),
        }
    }
    let shape = if cx.flag("keepdims", true)? { vec![1] } else { Vec::new() };
    let known = Known { dtype: data.dtype, shape, elements: vec![result] };
    Ok(Some(known).filter(|known| fits(cx.cx(), known)))
}
