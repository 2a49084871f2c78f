//! Steps that several rules take.

use tenon_plugin_api::rule::prelude::*;

use super::fold::is_equal;

/// `value` with elements of `dtype`; itself if it has these.
pub(crate) fn cast_to(node: &mut Node<'_>, value: Value, dtype: DType) -> Result<Value, Problem> {
    if node.dtype(value)? == dtype {
        return Ok(value);
    }
    node.call("cast", &[value], &[("dtype", dtype.to_string().into())])
}

/// `value` in another shape; a constant stays one, with the same bytes.
pub(crate) fn reshape_to(
    node: &mut Node<'_>,
    value: Value,
    dims: &[Dim],
) -> Result<Value, Problem> {
    if node.is_constant(value) {
        return node.reshaped(value, dims);
    }
    let shape = node.shape(dims)?;
    node.apply("reshape", &[value, shape])
}

/// A dimension, or 0 where it is below.
pub(crate) fn not_below_zero(node: &Node<'_>, dim: Dim) -> Dim {
    match node.terms().dim_lower_bound(dim) {
        Some(0..) => dim,
        _ => node.cx().dim_max(dim, node.cx().dim(0)),
    }
}

/// The number of elements of a shape.
pub(crate) fn product(node: &Node<'_>, dims: &[Dim]) -> Dim {
    let cx = node.cx();
    cx.dim_product(dims)
}

/// The axes in an attribute, since version 13 in an input.
pub(crate) fn axes_of(node: &Node<'_>) -> Result<Option<Vec<i64>>, Problem> {
    match node.version() < 13 {
        true => node.ints("axes"),
        false => node.optional_axes(1),
    }
}

pub(crate) fn scaled(node: &mut Node<'_>, x: Value, by: f64) -> Result<Value, Problem> {
    if by == 1.0 {
        return Ok(x);
    }
    let dtype = node.dtype(x)?;
    if !dtype.is_float() && by.fract() != 0.0 {
        return unsupported(format!("the factor {by} of {dtype}"));
    }
    let by = node.scalar_like(x, by)?;
    node.apply("multiply", &[x, by])
}

pub(crate) fn shifted(node: &mut Node<'_>, x: Value, by: f64) -> Result<Value, Problem> {
    let by = node.scalar_like(x, by)?;
    node.apply("add", &[x, by])
}

/// `below` where x is below zero, x elsewhere.
pub(crate) fn below_zero(node: &mut Node<'_>, x: Value, below: Value) -> Result<Value, Problem> {
    let zero = node.scalar_like(x, 0.0)?;
    let is_below = node.apply("less", &[x, zero])?;
    node.apply("where", &[is_below, below, x])
}

/// What a division that truncates leaves.
pub(crate) fn left_of(node: &mut Node<'_>, x: Value, by: Value) -> Result<Value, Problem> {
    let times = node.apply("divide", &[x, by])?;
    let whole = node.apply("multiply", &[times, by])?;
    node.apply("subtract", &[x, whole])
}

pub(crate) fn each_with_next(node: &mut Node<'_>, op: &'static str) -> Result<Value, Problem> {
    let inputs = node.all_inputs()?;
    let Some((&first, rest)) = inputs.split_first() else { return invalid("it has no inputs") };
    rest.iter().try_fold(first, |so_far, &next| node.apply(op, &[so_far, next]))
}

/// The element type that arithmetic on `dtype` is done in where it must lose nothing on the way.
pub(crate) fn wide(dtype: DType) -> DType {
    if dtype == DType::F64 { dtype } else { DType::F32 }
}

/// The elements along `axis` from `begin` to before `end`.
pub(crate) fn sliced(
    node: &mut Node<'_>,
    x: Value,
    axis: usize,
    [begin, end]: [i64; 2],
) -> Result<Value, Problem> {
    let attrs = [
        ("begin", vec![begin].into()),
        ("end", vec![end].into()),
        ("axes", vec![axis as i64].into()),
    ];
    node.call("strided_slice", &[x], &attrs)
}

/// A tensor that has so many elements along an axis: no other has the shape that it is given.
pub(crate) fn has_enough(
    node: &mut Node<'_>,
    x: Value,
    axis: usize,
    count: Dim,
) -> Result<Value, Problem> {
    let mut dims = node.dims(x)?;
    let enough = node.cx().dim_max(dims[axis], count);
    if enough == dims[axis] {
        return Ok(x);
    }
    let [found, wanted] = [dims[axis], count].map(|dim| node.terms().dim_value(dim));
    if let (Some(found), Some(wanted)) = (found, wanted) {
        return invalid(format!("{wanted} of {found} elements are asked for"));
    }
    dims[axis] = enough;
    let shape = node.shape(&dims)?;
    node.apply("reshape", &[x, shape])
}

/// Tensors one after the other.
pub(crate) fn joined(node: &mut Node<'_>, parts: &[Value], axis: i64) -> Result<Value, Problem> {
    if let &[only] = parts {
        return Ok(only);
    }
    let parts = node.tuple(parts)?;
    node.call("concatenate", &[parts], &[("axis", axis.into())])
}

/// The numbers 0, 1, … as i64, one for each index along the axis of a tensor of these dimensions that is not 1.
pub(crate) fn counting(node: &mut Node<'_>, count: i64, shape: &[i64]) -> Result<Value, Problem> {
    let bytes = usize::try_from(count).ok().and_then(|count| count.checked_mul(size_of::<i64>()));
    if !bytes.is_some_and(|bytes| node.spend(bytes)) {
        return unsupported(format!("a dimension of {count} here"));
    }
    let numbers: Vec<u8> = (0..count).flat_map(i64::to_le_bytes).collect();
    node.constant(DType::I64, shape, &numbers)
}

/// The numbers 0, 1, … as i64, as many as a dimension that need not be known.
pub(crate) fn places_along(node: &mut Node<'_>, extent: Dim) -> Result<Value, Problem> {
    if let Some(count) = node.terms().dim_value(extent) {
        return counting(node, count, &[count]);
    }
    let shape = node.shape(&[extent])?;
    node.apply("arange", &[shape])
}

/// A dimension as a number; the error says what it is of.
pub(crate) fn extent_of(node: &Node<'_>, dim: Dim, what: &str) -> Result<i64, Problem> {
    match node.terms().dim_value(dim) {
        Some(extent) => Ok(extent),
        None => unsupported(format!("a symbolic {what}")),
    }
}

/// Refuses two dimensions that are different, whatever their symbols stand for.
pub(crate) fn check_equal(node: &Node<'_>, [a, b]: [Dim; 2], what: &str) -> Result<(), Problem> {
    match is_equal(node, a, b) {
        Some(false) => invalid(format!("{what} differ")),
        _ => Ok(()),
    }
}

/// Says that an attribute is none of the texts that the standard knows.
pub(crate) fn not_among<T>(name: &str, found: &str, known: &[&str]) -> Result<T, Problem> {
    invalid(format!("its attribute `{name}` is {found:?}; allowed is {}", known.join(", ")))
}

/// What a scattering node does with elements that are there: it has said so since version 16, and by comparison since 18.
pub(crate) fn reduction_of(node: &Node<'_>) -> Result<&'static str, Problem> {
    match node.text("reduction", "none")?.as_str() {
        "none" => Ok("update"),
        "add" => Ok("add"),
        "mul" => Ok("mul"),
        "max" => Ok("max"),
        "min" => Ok("min"),
        other => not_among("reduction", other, &["none", "add", "mul", "max", "min"]),
    }
}
