//! How unlikely the right classes are.

use tenon_plugin_api::rule::prelude::*;

use crate::onnx::steps::{cast_to, check_equal, counting, not_among, reshape_to, wide};

/// `NegativeLogLikelihoodLoss` of logarithms of probabilities.
#[rule(import.onnx, key = "NegativeLogLikelihoodLoss", since = 12)]
fn negative_log_likelihood(node: &mut Node<'_>) -> Outputs {
    let x = node.input(0)?;
    Ok(vec![loss(node, x, x)?])
}

/// `SoftmaxCrossEntropyLoss`: the same of scores, which softmax makes probabilities of.
#[rule(import.onnx, key = "SoftmaxCrossEntropyLoss", since = 12)]
fn softmax_cross_entropy(node: &mut Node<'_>) -> Outputs {
    let x = node.input(0)?;
    let dtype = node.dtype(x)?;
    let scores = cast_to(node, x, wide(dtype))?;
    let log_prob = node.call("nn.log_softmax", &[scores], &[("axis", 1.into())])?;
    let loss = loss(node, log_prob, x)?;
    Ok(vec![loss, cast_to(node, log_prob, dtype)?])
}

/// The loss of logarithms of probabilities, with elements as those of `like`.
fn loss(node: &mut Node<'_>, log_prob: Value, like: Value) -> Result<Value, Problem> {
    let dtype = node.dtype(like)?;
    // A short float is soon full when many are summed.
    let log_prob = cast_to(node, log_prob, wide(dtype))?;
    let classes = Classes::of(node, log_prob)?;
    let zero = node.scalar_like(log_prob, 0.0)?;
    let found = classes.at_target(node, log_prob)?;
    let mut loss = node.apply("subtract", &[zero, found])?;
    let mut weights = match node.optional(2) {
        None => None,
        Some(weights) => {
            let weights = cast_to(node, weights, wide(dtype))?;
            let weights = classes.per_class(node, weights)?;
            Some(classes.at_target(node, weights)?)
        }
    };
    if let Some(weights) = weights {
        loss = node.apply("multiply", &[loss, weights])?;
    }
    if let Some(ignored) = node.int("ignore_index")? {
        let ignored = node.constant(DType::I64, &[], &ignored.to_le_bytes())?;
        let counts = node.apply("not_equal", &[classes.target, ignored])?;
        let one = node.scalar_like(loss, 1.0)?;
        loss = node.apply("where", &[counts, loss, zero])?;
        weights = Some(node.apply("where", &[counts, weights.unwrap_or(one), zero])?);
    }
    let loss = match node.text("reduction", "mean")?.as_str() {
        "none" => loss,
        "sum" => node.apply("sum", &[loss])?,
        "mean" => match weights {
            None => node.apply("mean", &[loss])?,
            Some(weights) => {
                let sums = [node.apply("sum", &[loss])?, node.apply("sum", &[weights])?];
                node.apply("divide", &sums)?
            }
        },
        other => return not_among("reduction", other, &["none", "sum", "mean"]),
    };
    cast_to(node, loss, dtype)
}

/// The classes along the second axis, and which of them is right.
struct Classes {
    /// N, D1, D2, …
    target: Value,
    /// N, C, D1, D2, …: whether a class is the right one.
    is_target: Value,
    /// 1, C, 1, 1, …
    dims: Vec<Dim>,
}

impl Classes {
    fn of(node: &mut Node<'_>, x: Value) -> Result<Self, Problem> {
        let target = node.input(1)?;
        let (dims, target_dims) = (node.dims(x)?, node.dims(target)?);
        if dims.len() < 2 || target_dims.len() + 1 != dims.len() {
            let (rank, of_target) = (dims.len(), target_dims.len());
            return invalid(format!("its target has rank {of_target}, its input {rank}"));
        }
        let others = dims[..1].iter().chain(&dims[2..]);
        for (&own, &other) in target_dims.iter().zip(others) {
            check_equal(node, [own, other], "dimensions of input and target")?;
        }
        let classes = classes(node, dims[1], dims.len() - 1)?;
        let target = cast_to(node, target, DType::I64)?;
        let spread = node.call("expand_dims", &[target], &[("axis", vec![1].into())])?;
        let is_target = node.apply("equal", &[spread, classes])?;
        let mut per_class = vec![node.cx().dim(1); dims.len()];
        per_class[1] = dims[1];
        Ok(Self { target, is_target, dims: per_class })
    }

    /// A vector of one element for each class.
    fn per_class(&self, node: &mut Node<'_>, vector: Value) -> Result<Value, Problem> {
        match node.dims(vector)?.as_slice() {
            &[count] => check_equal(node, [count, self.dims[1]], "weights and classes")?,
            dims => return invalid(format!("its weights have {} dimensions", dims.len())),
        }
        reshape_to(node, vector, &self.dims)
    }

    /// What stands at the right class; zero where there is none.
    fn at_target(&self, node: &mut Node<'_>, x: Value) -> Result<Value, Problem> {
        let zero = node.scalar_like(x, 0.0)?;
        let only = node.apply("where", &[self.is_target, x, zero])?;
        node.call("sum", &[only], &[("axis", vec![1].into())])
    }
}

/// The numbers of all classes along the first of some axes.
fn classes(node: &mut Node<'_>, count: Dim, axes: usize) -> Result<Value, Problem> {
    if let Some(count) = node.terms().dim_value(count) {
        let mut shape = vec![count];
        shape.resize(axes, 1);
        return counting(node, count, &shape);
    }
    let numbers = node.shape(&[count])?;
    let numbers = node.apply("arange", &[numbers])?;
    let mut shape = vec![count];
    shape.resize(axes, node.cx().dim(1));
    reshape_to(node, numbers, &shape)
}
