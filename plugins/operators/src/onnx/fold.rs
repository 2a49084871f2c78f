//! Operators on integers that are known as dimensions, computed at once.
//!
//! ```text
//! s = Shape(x)              [batch, 64, 7, 7]
//! n = Gather(s, 0)          batch
//! t = Concat(Unsqueeze(n), [-1])     [batch, -1]
//! ```
//!
//! Rules of this kind have a greater benefit than the one that makes a call, and decline what cannot be computed so.

use tenon_plugin_api::rule::import::LARGEST_KNOWN;
use tenon_plugin_api::rule::prelude::*;

/// What a rule for dimensions answers; nothing where it declines.
pub(crate) type Folded = Result<Option<Vec<Value>>, Problem>;

/// The output of a node whose inputs are all known as dimensions, if `of` computes it from them.
pub(crate) fn fold(
    node: &mut Node<'_>,
    of: impl FnOnce(&Node<'_>, &[Known]) -> Result<Option<Known>, Problem>,
) -> Folded {
    let Some(inputs) = node.known_inputs() else { return Ok(None) };
    let Some(known) = of(node, &inputs)? else { return Ok(None) };
    let is_small = known.elements.iter().all(|&element| node.terms().is_small_dim(element));
    let bytes = size_of_val(known.elements.as_slice());
    match is_small && known.elements.len() <= LARGEST_KNOWN && node.spend(bytes) {
        true => Ok(Some(vec![node.known(&known)?])),
        false => Ok(None),
    }
}

/// Arithmetic of two tensors of integers that are not narrower than 32 bits.
pub(crate) fn arithmetic(
    node: &mut Node<'_>,
    of: impl Fn(&Node<'_>, Dim, Dim) -> Option<Dim>,
) -> Folded {
    fold(node, |node, inputs| {
        let [a, b] = inputs else { return Ok(None) };
        let is_exact = matches!(a.dtype, DType::I64 | DType::I32);
        let known = is_exact.then(|| elementwise(a, b, a.dtype, |a, b| of(node, a, b))).flatten();
        Ok(known.filter(|known| fits(node, known)))
    })
}

/// Whether something is true of two tensors, element by element.
pub(crate) fn comparison(
    node: &mut Node<'_>,
    of: impl Fn(&Node<'_>, Dim, Dim) -> Option<bool>,
) -> Folded {
    fold(node, |node, inputs| {
        let [a, b] = inputs else { return Ok(None) };
        let truth = |a, b| Some(node.cx().dim(i64::from(of(node, a, b)?)));
        Ok(elementwise(a, b, DType::BOOL, truth))
    })
}

/// A reduction over all elements of a vector.
pub(crate) fn total(node: &mut Node<'_>, of: impl Fn(&Node<'_>, Dim, Dim) -> Dim) -> Folded {
    fold(node, |node, inputs| {
        let data = &inputs[0];
        let is_exact = matches!(data.dtype, DType::I64 | DType::I32);
        let is_noop = node.flag("noop_with_empty_axes", false)?;
        node.ignore("axes");
        if data.shape.len() != 1 || !is_exact || is_noop {
            return Ok(None);
        }
        let Some((&first, rest)) = data.elements.split_first() else { return Ok(None) };
        let mut result = first;
        for &element in rest {
            result = of(node, result, element);
            if !node.terms().is_small_dim(result) {
                return Ok(None);
            }
        }
        let shape = if node.flag("keepdims", true)? { vec![1] } else { Vec::new() };
        let known = Known { dtype: data.dtype, shape, elements: vec![result] };
        Ok(Some(known).filter(|known| fits(node, known)))
    })
}

/// Whether all numbers are within the range of their type.
pub(crate) fn fits(node: &Node<'_>, known: &Known) -> bool {
    let bits = known.dtype.bits();
    let in_range = |value: i64| match known.dtype.is_signed() {
        true => bits >= 64 || (value << (64 - bits) >> (64 - bits)) == value,
        false => value >= 0 && (bits >= 64 || value < 1 << bits),
    };
    known.elements.iter().all(|&element| node.terms().dim_value(element).is_none_or(in_range))
}

/// A truth value, if it is known.
pub(crate) fn truth(node: &Node<'_>, x: Dim) -> Option<bool> {
    Some(node.terms().dim_value(x)? != 0)
}

/// Whether two dimensions are equal whatever their symbols stand for, or different.
pub(crate) fn is_equal(node: &Node<'_>, a: Dim, b: Dim) -> Option<bool> {
    match (is_less(node, a, b), is_less(node, b, a)) {
        _ if a == b => Some(true),
        (Some(true), _) | (_, Some(true)) => Some(false),
        (Some(false), Some(false)) => Some(true),
        _ => None,
    }
}

/// Whether a dimension is below another whatever their symbols stand for, or is not.
pub(crate) fn is_less(node: &Node<'_>, a: Dim, b: Dim) -> Option<bool> {
    let (cx, terms) = (node.cx(), node.terms());
    if terms.dim_lower_bound(cx.dim_sub(b, a)).is_some_and(|bound| bound > 0) {
        return Some(true);
    }
    terms.dim_lower_bound(cx.dim_sub(a, b)).filter(|&bound| bound >= 0).map(|_| false)
}

fn elementwise(
    a: &Known,
    b: &Known,
    dtype: DType,
    of: impl Fn(Dim, Dim) -> Option<Dim>,
) -> Option<Known> {
    if a.dtype != b.dtype {
        return None;
    }
    let shape = broadcast(&[a, b])?;
    let elements = (0..count(&shape)?)
        .map(|place| of(at(a, &shape, place), at(b, &shape, place)))
        .collect::<Option<_>>()?;
    Some(Known { dtype, shape, elements })
}

/// The shape that tensors are broadcast to.
pub(crate) fn broadcast(all: &[&Known]) -> Option<Vec<usize>> {
    let rank = all.iter().map(|known| known.shape.len()).max()?;
    let extent = |axis: usize| {
        all.iter().try_fold(1, |so_far, known| {
            let own = (axis + known.shape.len()).checked_sub(rank);
            match (so_far, own.map_or(1, |own| known.shape[own])) {
                (x, y) if x == y => Some(x),
                (1, x) | (x, 1) => Some(x),
                _ => None,
            }
        })
    };
    (0..rank).map(extent).collect()
}

/// Number of elements, if they are few.
pub(crate) fn count(shape: &[usize]) -> Option<usize> {
    let count = shape.iter().try_fold(1usize, |count, &dim| count.checked_mul(dim))?;
    (count <= LARGEST_KNOWN).then_some(count)
}

/// What stands at `place` when a tensor is broadcast to `shape`.
pub(crate) fn at(known: &Known, shape: &[usize], mut place: usize) -> Dim {
    let from = &known.shape;
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
    known.elements[index]
}
