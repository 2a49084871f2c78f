//! What rows have in common with support vectors: the kernel of a machine, and `SVMRegressor`.
//!
//! ```text
//! LINEAR     k[n, v] = x[n] * vector[v]
//! POLY       k[n, v] = (gamma * x[n] * vector[v] + coef0) ^ degree
//! RBF        k[n, v] = exp(-gamma * |x[n] - vector[v]|^2)
//! SIGMOID    k[n, v] = tanh(gamma * x[n] * vector[v] + coef0)
//!
//! SVMRegressor:  y[n] = k[n] * coefficients + rho
//! ```
//!
//! Without support vectors the coefficients are those of a linear model.

use tenon_plugin_api::rule::prelude::*;

use crate::onnx::steps::{not_among, scaled, shifted};

use super::attributes::floats;
use super::linear::{matrix, rows};
use super::post_transform::is_above;

/// `SVMRegressor`: numbers, or one and minus one for what is within a class and what is not.
#[rule(import.onnx, domain = "ai.onnx.ml", key = "SVMRegressor", since = 1)]
fn regressor(node: &mut Node<'_>) -> Outputs {
    let transform = node.text("post_transform", "NONE")?;
    if transform != "NONE" {
        return unsupported(format!("the transform {transform}"));
    }
    let kernel = Kernel::of(node)?;
    let (count, is_one_class) = (node.int_or("n_supports", 0)?, node.flag("one_class", false)?);
    let rho = first_of(node, "rho")?;
    let mut x = rows(node)?;
    if count > 0 {
        x = kernel.with_vectors(node, x, count)?;
    }
    let coefficients = floats(node, "coefficients")?;
    let coefficients = matrix(node, "coefficients", &coefficients, 1)?;
    let y = node.apply("nn.dense", &[x, coefficients])?;
    let y = shifted(node, y, rho)?;
    if !is_one_class {
        return Ok(vec![y]);
    }
    let is_inside = is_above(node, y, 0.0)?;
    let (inside, outside) = (node.scalar_like(y, 1.0)?, node.scalar_like(y, -1.0)?);
    Ok(vec![node.apply("where", &[is_inside, inside, outside])?])
}

/// The first number of a list that has one.
pub(super) fn first_of(node: &Node<'_>, name: &str) -> Result<f64, Problem> {
    match floats(node, name)?.first() {
        Some(&first) => Ok(first),
        None => invalid(format!("it has no attribute `{name}`")),
    }
}

/// How like two vectors are.
pub(super) struct Kernel {
    kind: String,
    gamma: f64,
    coef0: f64,
    degree: f64,
}

impl Kernel {
    pub(super) fn of(node: &Node<'_>) -> Result<Self, Problem> {
        let kind = node.text("kernel_type", "LINEAR")?;
        let [gamma, coef0, degree] = match *floats(node, "kernel_params")?.as_slice() {
            [] => [0.0; 3],
            [gamma, coef0, degree] => [gamma, coef0, degree],
            _ => return invalid("its attribute `kernel_params` is not three numbers"),
        };
        Ok(Self { kind, gamma, coef0, degree })
    }

    /// A column for each of so many support vectors, which stand in an attribute.
    pub(super) fn with_vectors(
        &self,
        node: &mut Node<'_>,
        x: Value,
        count: i64,
    ) -> Result<Value, Problem> {
        let vectors = floats(node, "support_vectors")?;
        let vectors = matrix(node, "support_vectors", &vectors, count)?;
        if self.kind == "RBF" {
            return self.of_distances(node, x, vectors);
        }
        let product = node.apply("nn.dense", &[x, vectors])?;
        if self.kind == "LINEAR" {
            return Ok(product);
        }
        let product = scaled(node, product, self.gamma)?;
        let inner = shifted(node, product, self.coef0)?;
        match self.kind.as_str() {
            "SIGMOID" => node.apply("tanh", &[inner]),
            "POLY" => {
                let degree = node.scalar_like(inner, self.degree)?;
                node.apply("power", &[inner, degree])
            }
            other => not_among("kernel_type", other, &["LINEAR", "POLY", "RBF", "SIGMOID"]),
        }
    }

    /// The differences are taken one by one: a difference of products would lose what is near.
    fn of_distances(
        &self,
        node: &mut Node<'_>,
        x: Value,
        vectors: Value,
    ) -> Result<Value, Problem> {
        let x = node.call("expand_dims", &[x], &[("axis", vec![1].into())])?;
        let apart = node.apply("subtract", &[x, vectors])?;
        let square = node.apply("multiply", &[apart, apart])?;
        let along = [("axis", vec![2].into()), ("keepdims", false.into())];
        let distance = node.call("sum", &[square], &along)?;
        let inner = scaled(node, distance, -self.gamma)?;
        node.apply("exp", &[inner])
    }
}
