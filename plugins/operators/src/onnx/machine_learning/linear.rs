//! Linear models.
//!
//! ```text
//! s = x * coefficients^T + intercepts
//! LinearRegressor:   transform(s)
//! LinearClassifier:  label[n] = labels[the greatest of s[n, k]], scores = transform(s)
//!                    of one score and two labels: label[n] = labels[s[n] > 0], scores = [1 - s, s]
//! ```

use tenon_plugin_api::rule::prelude::*;

use crate::onnx::steps::{cast_to, reshape_to};

use super::attributes::{floats, table};
use super::labels::{label_of_greatest, label_of_two, labels};
use super::post_transform::{Single, is_above, of_two, post_transform, transformed};

/// `LinearRegressor`.
#[rule(import.onnx, domain = "ai.onnx.ml", key = "LinearRegressor", since = 1)]
fn regressor(node: &mut Node<'_>) -> Outputs {
    let targets = node.int_or("targets", 1)?;
    let intercepts = floats(node, "intercepts")?;
    let transform = post_transform(node)?;
    let x = rows(node)?;
    let scores = scores(node, x, targets, &intercepts)?;
    Ok(vec![transformed(node, scores, transform)?])
}

/// `LinearClassifier`: labels, and scores for each class.
#[rule(import.onnx, domain = "ai.onnx.ml", key = "LinearClassifier", since = 1)]
fn classifier(node: &mut Node<'_>) -> Outputs {
    // How the model was trained.
    node.ignore("multi_class");
    let labels = labels(node, "classlabels_ints")?;
    let intercepts = floats(node, "intercepts")?;
    let transform = post_transform(node)?;
    let classes = if intercepts.is_empty() { labels.len() } else { intercepts.len() };
    let x = rows(node)?;
    let scores = scores(node, x, classes as i64, &intercepts)?;
    match *labels.as_slice() {
        [no, yes] if classes == 1 => {
            let is_second = is_above(node, scores, 0.0)?;
            let label = label_of_two(node, is_second, [no, yes])?;
            Ok(vec![label, of_two(node, scores, Single::Probability, transform)?])
        }
        _ if labels.len() == classes => {
            let label = label_of_greatest(node, scores, &labels)?;
            Ok(vec![label, transformed(node, scores, transform)?])
        }
        _ => invalid(format!("it has {} labels for {classes} classes", labels.len())),
    }
}

/// The input as a matrix of f32; a vector is one row.
pub(super) fn rows(node: &mut Node<'_>) -> Result<Value, Problem> {
    let x = node.input(0)?;
    let x = cast_to(node, x, DType::F32)?;
    match *node.dims(x)?.as_slice() {
        [columns] => {
            let one = node.cx().dim(1);
            reshape_to(node, x, &[one, columns])
        }
        [_, _] => Ok(x),
        _ => invalid("its input is no matrix"),
    }
}

/// A product with a matrix of so many rows in an attribute, and what is added to each column.
fn scores(node: &mut Node<'_>, x: Value, count: i64, intercepts: &[f64]) -> Result<Value, Problem> {
    let coefficients = floats(node, "coefficients")?;
    let weights = matrix(node, "coefficients", &coefficients, count)?;
    let scores = node.apply("nn.dense", &[x, weights])?;
    // ONNX Runtime takes intercepts that are not as many for none.
    if intercepts.len() as i64 != count {
        return Ok(scores);
    }
    let intercepts = table(node, intercepts, &[count], DType::F32)?;
    node.apply("add", &[scores, intercepts])
}

/// Numbers of an attribute as a matrix of so many rows.
pub(super) fn matrix(
    node: &mut Node<'_>,
    name: &str,
    numbers: &[f64],
    rows: i64,
) -> Result<Value, Problem> {
    let length = numbers.len() as i64;
    if rows < 1 || length == 0 || length % rows != 0 {
        return invalid(format!("its attribute `{name}` has {length} numbers for {rows} rows"));
    }
    table(node, numbers, &[rows, length / rows], DType::F32)
}
