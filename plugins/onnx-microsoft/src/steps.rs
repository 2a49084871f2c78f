//! Steps that several rules take.

use tenon_plugin_api::rule::prelude::*;

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

/// The element type that arithmetic on `dtype` is done in where it must lose nothing on the way.
pub(crate) fn wide(dtype: DType) -> DType {
    if dtype == DType::F64 { dtype } else { DType::F32 }
}

/// `x` times a number.
pub(crate) fn scaled(node: &mut Node<'_>, x: Value, by: f64) -> Result<Value, Problem> {
    if by == 1.0 {
        return Ok(x);
    }
    let by = node.scalar_like(x, by)?;
    node.apply("multiply", &[x, by])
}

/// The sum of `x` and an input, where that is given.
pub(crate) fn plus_input(node: &mut Node<'_>, x: Value, index: usize) -> Result<Value, Problem> {
    match node.optional(index) {
        Some(other) => node.apply("add", &[x, other]),
        None => Ok(x),
    }
}

/// The elements along `axis` from `begin` to before `end`.
pub(crate) fn sliced(
    node: &mut Node<'_>,
    x: Value,
    axis: i64,
    [begin, end]: [i64; 2],
) -> Result<Value, Problem> {
    let attrs =
        [("begin", vec![begin].into()), ("end", vec![end].into()), ("axes", vec![axis].into())];
    node.call("strided_slice", &[x], &attrs)
}

/// Tensors one after the other.
pub(crate) fn joined(node: &mut Node<'_>, parts: &[Value], axis: i64) -> Result<Value, Problem> {
    if let &[only] = parts {
        return Ok(only);
    }
    let parts = node.tuple(parts)?;
    node.call("concatenate", &[parts], &[("axis", axis.into())])
}

/// A dimension as a number; the error says what it is of.
pub(crate) fn extent_of(node: &Node<'_>, dim: Dim, what: &str) -> Result<i64, Problem> {
    match node.terms().dim_value(dim) {
        Some(extent) => Ok(extent),
        None => unsupported(format!("a symbolic {what}")),
    }
}

/// An attribute that must be given.
pub(crate) fn needed(node: &Node<'_>, name: &str) -> Result<i64, Problem> {
    match node.int(name)? {
        Some(value) => Ok(value),
        None => invalid(format!("its attribute `{name}` is missing")),
    }
}

/// An input of one element, without dimensions.
pub(crate) fn scalar(node: &mut Node<'_>, index: usize) -> Result<Value, Problem> {
    let value = node.input(index)?;
    reshape_to(node, value, &[])
}

/// The numbers 0, 1, … as i64, as many as a dimension says.
pub(crate) fn places(node: &mut Node<'_>, count: Dim) -> Result<Value, Problem> {
    let shape = node.shape(&[count])?;
    node.apply("arange", &[shape])
}

/// Refuses an attribute that says something else than this.
pub(crate) fn only(node: &Node<'_>, name: &str, value: i64) -> Result<(), Problem> {
    match node.int_or(name, value)? {
        found if found == value => Ok(()),
        found => unsupported(format!("its attribute `{name}` is {found}")),
    }
}

/// Refuses an input that is given.
pub(crate) fn absent(node: &Node<'_>, index: usize, what: &str) -> Result<(), Problem> {
    match node.optional(index) {
        Some(_) => unsupported(what.to_owned()),
        None => Ok(()),
    }
}
