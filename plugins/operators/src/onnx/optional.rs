//! Optional values. Where it is known whether one is there, that is all that is left of it; an input of the model is a tensor and a
//! truth value, which the importer has as a tuple in a tuple: `((%x, %x_is_there),)`.

use tenon_plugin_api::rule::prelude::*;

/// The value, and whether it is there, that input 0 is when a call says that.
fn said(node: &mut Node<'_>) -> Result<Option<(Value, Value)>, Problem> {
    let Some(optional) = node.optional(0) else { return Ok(None) };
    let inner = match node.terms().ty(node.ty(optional)) {
        TypeView::Tuple(&[inner]) => node.terms().ty(inner),
        _ => return Ok(None),
    };
    if !matches!(inner, TypeView::Tuple(&[_, _])) {
        return Ok(None);
    }
    let inner = node.items(optional)?[0];
    let parts = node.items(inner)?;
    Ok(Some((parts[0], parts[1])))
}

/// `Optional` of a value.
#[rule(import.onnx, key = "Optional", since = 15)]
fn optional(node: &mut Node<'_>) -> Outputs {
    node.ignore("type");
    match node.optional(0) {
        Some(value) => Ok(vec![value]),
        None => unsupported("an optional value that is not there"),
    }
}

/// `OptionalGetElement`. What is not there has no value that anything may count on.
#[rule(import.onnx, key = "OptionalGetElement", since = 15)]
fn element(node: &mut Node<'_>) -> Outputs {
    match said(node)? {
        Some((value, _)) => Ok(vec![value]),
        None => Ok(vec![node.input(0)?]),
    }
}

/// `OptionalHasElement`: whether it was given a value.
#[rule(import.onnx, key = "OptionalHasElement", since = 15)]
fn has_element(node: &mut Node<'_>) -> Outputs {
    if let Some((_, is_there)) = said(node)? {
        return Ok(vec![is_there]);
    }
    let is_there = i64::from(node.optional(0).is_some());
    let is_there = Known::scalar(DType::BOOL, node.cx().dim(is_there));
    Ok(vec![node.known(&is_there)?])
}
