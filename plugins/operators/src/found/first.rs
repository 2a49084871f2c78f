//! The part of a tensor that is meant, when it is known how much that is.

use tenon_plugin_api::rule::prelude::*;

/// The elements of a tensor of i64 as dimensions, each of which is at most what stands in `most`.
pub(crate) fn bound(node: &mut Node<'_>, counts: Value, most: &[Dim]) -> Result<Vec<Dim>, Problem> {
    let most = node.cx().shape_type(Some(most));
    let sizes = node.call("bind_dims", &[counts], &[("most", AttrValue::Term(most.into()))])?;
    dims_of(node, sizes)
}

/// The same where nobody knows what they are at most.
pub(crate) fn bound_open(node: &mut Node<'_>, counts: Value) -> Result<Vec<Dim>, Problem> {
    let sizes = node.call("bind_dims", &[counts], &[])?;
    dims_of(node, sizes)
}

fn dims_of(node: &Node<'_>, sizes: Value) -> Result<Vec<Dim>, Problem> {
    match node.terms().ty(node.ty(sizes)) {
        TypeView::Shape(Some(dims)) => Ok(dims.to_vec()),
        _ => invalid("dimensions are bound to no shape"),
    }
}

/// The first elements along each axis, as many as the dimensions say.
pub(crate) fn first(node: &mut Node<'_>, x: Value, dims: &[Dim]) -> Result<Value, Problem> {
    let begin = vec![0u8; size_of::<i64>() * dims.len()];
    let begin = node.constant(DType::I64, &[dims.len() as i64], &begin)?;
    let shape = node.shape(dims)?;
    node.apply("dynamic_slice", &[x, begin, shape])
}

/// The places of elements that are not zero, in a tensor of one dimension, and how many there are.
pub(crate) fn places(node: &mut Node<'_>, x: Value) -> Result<(Value, Dim), Problem> {
    let length = node.dims(x)?[0];
    let found = node.apply("nonzero", &[x])?;
    let found = node.items(found)?;
    let count = bound(node, found[1], &[length])?[0];
    let one = node.cx().dim(1);
    let places = first(node, found[0], &[one, count])?;
    let shape = node.shape(&[count])?;
    Ok((node.apply("reshape", &[places, shape])?, count))
}
