//! Probabilities of classes, of those that each has beside each other one.
//!
//! ```text
//! r[n, i, j] = how probable class i is, where it is class i or j
//! Q[i, i] = sum over j of r[j, i]^2, Q[i, j] = -r[j, i] * r[i, j]
//! p[n] = the probabilities for which p * Q * p is least
//! ```
//!
//! T. Wu, C. Lin and R. Weng, "Probability estimates for multi-class classification by pairwise coupling", algorithm 2: each sweep
//! brings one probability after the other closer, and a row is done where it is near enough. What comes out depends on where it stops,
//! so the sweeps and the limit are those of LIBSVM, by which models are trained and judged.

use tenon_plugin_api::rule::prelude::*;

use crate::onnx::steps::{scaled, sliced};

/// Rows are done behind three to five sweeps, whatever the probabilities are.
const SWEEPS: usize = 8;

/// How many classes there may be, since each step of a sweep is written out.
const MOST_CLASSES: usize = 32;

/// Probabilities of the classes, of a matrix for each row.
pub(super) fn coupled(node: &mut Node<'_>, each: Value, classes: usize) -> Result<Value, Problem> {
    if classes > MOST_CLASSES {
        return unsupported(format!("probabilities of more than {MOST_CLASSES} classes"));
    }
    let (q, own) = quadratic_form(node, each, classes)?;
    let rows = node.dims(each)?[0];
    let shape = node.shape(&[rows, node.cx().dim(classes as i64)])?;
    let attrs = [("value", (1.0 / classes as f64).into()), ("dtype", "f32".into())];
    let mut p = node.call("full", &[shape], &attrs)?;
    let near = node.scalar(DType::F32, 0.005 / classes as f64)?;
    for _ in 0..SWEEPS {
        let (products, whole) = products(node, q, p)?;
        let apart = node.apply("subtract", &[products, whole])?;
        let apart = node.apply("abs", &[apart])?;
        let along = [("axis", vec![1].into()), ("keepdims", true.into())];
        let apart = node.call("max", &[apart], &along)?;
        let is_done = node.apply("less", &[apart, near])?;
        let next = sweep(node, Sweep { q, own, p, products, whole }, classes)?;
        p = node.apply("where", &[is_done, p, next])?;
    }
    Ok(p)
}

/// Q, and what stands on its diagonal.
fn quadratic_form(
    node: &mut Node<'_>,
    each: Value,
    classes: usize,
) -> Result<(Value, Value), Problem> {
    let flipped = node.call("transpose", &[each], &[("axes", vec![0, 2, 1].into())])?;
    let product = node.apply("multiply", &[each, flipped])?;
    let square = node.apply("multiply", &[each, each])?;
    let along = [("axis", vec![1].into()), ("keepdims", true.into())];
    let own = node.call("sum", &[square], &along)?;
    let n = classes as i64;
    let eye = unit_vectors(node, classes, &[n, n], 0..classes)?;
    let diagonal = node.apply("multiply", &[own, eye])?;
    let q = node.apply("subtract", &[diagonal, product])?;
    let own = node.call("squeeze", &[own], &[("axis", vec![1].into())])?;
    Ok((q, own))
}

/// Q * p, and p * Q * p as a column.
fn products(node: &mut Node<'_>, q: Value, p: Value) -> Result<(Value, Value), Problem> {
    let across = node.call("expand_dims", &[p], &[("axis", vec![1].into())])?;
    let each = node.apply("multiply", &[q, across])?;
    let along = [("axis", vec![2].into()), ("keepdims", false.into())];
    let products = node.call("sum", &[each], &along)?;
    let each = node.apply("multiply", &[products, p])?;
    let along = [("axis", vec![1].into()), ("keepdims", true.into())];
    Ok((products, node.call("sum", &[each], &along)?))
}

/// Probabilities that need not have the sum one yet, and products of Q with them.
struct Sweep {
    q: Value,
    own: Value,
    p: Value,
    products: Value,
    whole: Value,
}

/// One probability after the other is brought closer. The sum of all is kept beside them, and they are divided by it in the end.
fn sweep(node: &mut Node<'_>, start: Sweep, classes: usize) -> Result<Value, Problem> {
    let Sweep { q, own, mut p, mut products, mut whole } = start;
    let mut sum = node.scalar(DType::F32, 1.0)?;
    for class in 0..classes {
        let at = [class as i64, class as i64 + 1];
        let own = sliced(node, own, 1, at)?;
        let product = sliced(node, products, 1, at)?;
        // (p * Q * p / sum - Q * p) / Q[i, i]: by how much the probability grows, times the sum.
        let mean = node.apply("divide", &[whole, sum])?;
        let left = node.apply("subtract", &[mean, product])?;
        let step = node.apply("divide", &[left, own])?;
        let n = classes as i64;
        let here = unit_vectors(node, classes, &[n], class..class + 1)?;
        let grown = node.apply("multiply", &[step, here])?;
        p = node.apply("add", &[p, grown])?;
        sum = node.apply("add", &[sum, step])?;
        if class + 1 == classes {
            break;
        }
        let twice = scaled(node, product, 2.0)?;
        let bent = node.apply("multiply", &[step, own])?;
        let slope = node.apply("add", &[bent, twice])?;
        let rise = node.apply("multiply", &[step, slope])?;
        whole = node.apply("add", &[whole, rise])?;
        let row = sliced(node, q, 1, at)?;
        let row = node.call("squeeze", &[row], &[("axis", vec![1].into())])?;
        let moved = node.apply("multiply", &[row, step])?;
        products = node.apply("add", &[products, moved])?;
    }
    node.apply("divide", &[p, sum])
}

/// Vectors with one where a class is, one after the other.
fn unit_vectors(
    node: &mut Node<'_>,
    classes: usize,
    shape: &[i64],
    of: std::ops::Range<usize>,
) -> Result<Value, Problem> {
    let ones = of.flat_map(|class| (0..classes).map(move |at| f64::from(at == class)));
    let bytes: Vec<u8> = ones.flat_map(|one| (one as f32).to_le_bytes()).collect();
    node.constant(DType::F32, shape, &bytes)
}
