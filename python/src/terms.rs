//! Terms as JSON, which Python reads and writes: numbers, truth values, texts, lists and dictionaries of them. Types and
//! dimensions are their texts.

use std::collections::BTreeMap;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use serde_json::{Map, Value};
use tenon_compiler::ir::{Attrs, Context, Cx, Term, TermView, Terms};

/// Lists and dictionaries within each other beyond this are null: attributes of any use have two levels.
const DEEPEST: usize = 16;

/// The entries of a dictionary.
pub(crate) fn dict(terms: Terms<'_>, attrs: Attrs) -> Value {
    entries(terms, attrs, 0)
}

fn entries(terms: Terms<'_>, attrs: Attrs, depth: usize) -> Value {
    let each = terms.attrs(attrs).iter();
    let each = each.map(|(name, term)| (name.to_owned(), value(terms, term, depth)));
    Value::Object(each.collect::<Map<_, _>>())
}

fn value(terms: Terms<'_>, term: Term, depth: usize) -> Value {
    if depth > DEEPEST {
        return Value::Null;
    }
    match terms.view(term) {
        TermView::Int(value) => value.into(),
        TermView::Float(value) => value.into(),
        TermView::Bool(value) => value.into(),
        TermView::Str(text) => text.into(),
        TermView::List(items) => items.iter().map(|&it| value(terms, it, depth + 1)).collect(),
        TermView::Dict(_) => entries(terms, Attrs(term.0), depth + 1),
        TermView::Dim(dim) => terms.dim_text(dim).into(),
        TermView::Type(ty) => terms.type_text(ty).into(),
        TermView::None | TermView::Unknown { .. } => Value::Null,
    }
}

/// A dictionary of attributes, as JSON.
pub(crate) fn attrs(cx: &Cx, json: &str) -> PyResult<Attrs> {
    let parsed: Value =
        serde_json::from_str(json).map_err(|error| PyValueError::new_err(error.to_string()))?;
    let Value::Object(entries) = parsed else {
        return Err(PyTypeError::new_err("attributes are a dictionary"));
    };
    let mut made: BTreeMap<&str, Term> = BTreeMap::new();
    for (name, value) in &entries {
        made.insert(name, term(cx, name, value)?);
    }
    Ok(cx.dict(&made))
}

fn term(cx: &Cx, name: &str, value: &Value) -> PyResult<Term> {
    Ok(match value {
        Value::Bool(value) => cx.bool(*value),
        Value::String(text) => cx.symbol(text).into(),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(value), _) => cx.int(value),
            (None, Some(value)) => cx.float(value),
            (None, None) => return Err(no_value(name)),
        },
        Value::Array(items) => {
            let items: PyResult<Vec<Term>> = items
                .iter()
                .map(|item| match item {
                    Value::Array(_) | Value::Object(_) => Err(no_value(name)),
                    item => term(cx, name, item),
                })
                .collect();
            cx.list(&items?)
        }
        Value::Null | Value::Object(_) => return Err(no_value(name)),
    })
}

fn no_value(name: &str) -> PyErr {
    PyTypeError::new_err(format!(
        "attribute `{name}` is a number, a truth value, a text, or a list of these"
    ))
}
