//! Support vector machines that tell classes: `SVMClassifier`.
//!
//! ```text
//! k[n, v] = how like row n and support vector v are
//! s[n, p] = sum over v of weights[p, v] * k[n, v] + rho[p]      for each pair p of classes i < j: above zero means i
//! label[n] = labels[the class that most pairs mean]
//! scores = transform(s), and where `prob_a` and `prob_b` are given, probabilities of the classes
//! ```
//!
//! The coefficients come as a matrix of a row less than there are classes: a vector of class i has those of the pair (i, j) in row
//! `j - 1`, one of class j in row `i`. Without support vectors they are those of a linear model.

use tenon_plugin_api::rule::prelude::*;

use crate::onnx::steps::{cast_to, joined, shifted};

use super::attributes::{constant, floats, table};
use super::labels::{label_of_greatest, label_of_two, labels};
use super::linear::{matrix, rows};
use super::pairwise_coupling::coupled;
use super::post_transform::{Single, is_above, of_two, post_transform, transformed};
use super::support_vectors::{Kernel, first_of};

/// `SVMClassifier`: labels, and scores of pairs of classes or probabilities of each.
#[rule(import.onnx, domain = "ai.onnx.ml", key = "SVMClassifier", since = 1)]
fn classifier(node: &mut Node<'_>) -> Outputs {
    let labels = labels(node, "classlabels_ints")?;
    let transform = post_transform(node)?;
    let kernel = Kernel::of(node)?;
    let vectors = node.ints("vectors_per_class")?.unwrap_or_default();
    let x = rows(node)?;
    if vectors.iter().all(|&count| count == 0) {
        let coefficients = floats(node, "coefficients")?;
        let weights = matrix(node, "coefficients", &coefficients, labels.len() as i64)?;
        let scores = node.apply("nn.dense", &[x, weights])?;
        let rho = first_of(node, "rho")?;
        let scores = shifted(node, scores, rho)?;
        let label = label_of_greatest(node, scores, &labels)?;
        return Ok(vec![label, transformed(node, scores, transform)?]);
    }
    let pairs = Pairs::of(node, vectors, labels.len())?;
    let x = kernel.with_vectors(node, x, pairs.count_of_vectors)?;
    let scores = pairs.scores(node, x)?;
    let means_first = is_above(node, scores, 0.0)?;
    let label = match *labels.as_slice() {
        [first, second] => label_of_two(node, means_first, [second, first])?,
        _ => {
            let votes = cast_to(node, means_first, DType::F32)?;
            let votes = pairs.by_class(node, votes)?;
            let along = [("axis", vec![2].into()), ("keepdims", false.into())];
            let votes = node.call("sum", &[votes], &along)?;
            label_of_greatest(node, votes, &labels)?
        }
    };
    let scores = match pairs.probabilities(node, scores)? {
        Some(probabilities) => transformed(node, probabilities, transform)?,
        None if labels.len() == 2 && transform == "NONE" => {
            of_two(node, scores, Single::Difference, transform)?
        }
        None if labels.len() == 2 => of_two(node, scores, Single::Probability, transform)?,
        None => transformed(node, scores, transform)?,
    };
    Ok(vec![label, scores])
}

/// The pairs of classes, each of which is told apart by itself.
struct Pairs {
    classes: usize,
    /// Of each class the place of its first support vector, and behind these the number of all.
    starts: Vec<usize>,
    count_of_vectors: i64,
}

impl Pairs {
    fn of(node: &mut Node<'_>, vectors: Vec<i64>, classes: usize) -> Result<Self, Problem> {
        let is_count = |&count: &i64| (0..=i64::from(i32::MAX)).contains(&count);
        if classes < 2 || vectors.len() != classes || !vectors.iter().all(is_count) {
            return invalid(format!(
                "its attribute `vectors_per_class` does not fit to {classes} classes"
            ));
        }
        let mut starts = vec![0];
        starts.extend(vectors.iter().scan(0, |sum, &count| {
            *sum += count as usize;
            Some(*sum)
        }));
        let all = starts[classes];
        // Two numbers for each pair of classes are what tables of them have.
        let pairs = classes.saturating_mul(classes);
        if !node.spend(pairs.saturating_mul(all.max(2)).saturating_mul(size_of::<f64>())) {
            return unsupported(format!("{classes} classes with {all} support vectors"));
        }
        Ok(Self { classes, starts, count_of_vectors: all as i64 })
    }

    fn count(&self) -> usize {
        self.classes * (self.classes - 1) / 2
    }

    /// The pairs, in the order of their scores.
    fn each(&self) -> impl Iterator<Item = (usize, usize)> {
        let classes = self.classes;
        (0..classes).flat_map(move |i| (i + 1..classes).map(move |j| (i, j)))
    }

    /// A column for each pair, of one for each support vector.
    fn scores(&self, node: &mut Node<'_>, x: Value) -> Result<Value, Problem> {
        let (coefficients, rho) = (floats(node, "coefficients")?, self.numbers(node, "rho")?);
        let all = self.count_of_vectors as usize;
        if coefficients.len() < (self.classes - 1) * all {
            return invalid("its attribute `coefficients` is too short for its support vectors");
        }
        let mut weights = vec![0.0; self.count() * all];
        for (row, (i, j)) in weights.chunks_exact_mut(all).zip(self.each()) {
            for (class, from) in [(i, (j - 1) * all), (j, i * all)] {
                let own = self.starts[class]..self.starts[class + 1];
                row[own.clone()].copy_from_slice(&coefficients[from + own.start..from + own.end]);
            }
        }
        let count = self.count() as i64;
        let weights = table(node, &weights, &[count, all as i64], DType::F32)?;
        let scores = node.apply("nn.dense", &[x, weights])?;
        let rho = table(node, &rho, &[count], DType::F32)?;
        node.apply("add", &[scores, rho])
    }

    /// Attribute `name`, with a number for each pair.
    fn numbers(&self, node: &Node<'_>, name: &str) -> Result<Vec<f64>, Problem> {
        let mut numbers = floats(node, name)?;
        if numbers.len() < self.count() {
            return invalid(format!(
                "its attribute `{name}` has {} numbers for {} pairs of classes",
                numbers.len(),
                self.count()
            ));
        }
        numbers.truncate(self.count());
        Ok(numbers)
    }

    /// How much each class is meant beside each other one, of how much each pair means its first class: a matrix for each row.
    fn by_class(&self, node: &mut Node<'_>, first: Value) -> Result<Value, Problem> {
        let (classes, count) = (self.classes, self.count() as i64);
        let second = node.apply("negative", &[first])?;
        let second = shifted(node, second, 1.0)?;
        // Beside itself a class is not meant.
        let whole = node.dims(first)?[0];
        let shape = node.shape(&[whole, node.cx().dim(1)])?;
        let attrs = [("value", 0.0.into()), ("dtype", "f32".into())];
        let nothing = node.call("full", &[shape], &attrs)?;
        let columns = joined(node, &[first, second, nothing], 1)?;
        let mut places = vec![2 * count; classes * classes];
        for (pair, (i, j)) in (0..).zip(self.each()) {
            places[i * classes + j] = pair;
            places[j * classes + i] = count + pair;
        }
        let places = constant(node, &places, &[classes as i64, classes as i64])?;
        node.call("take", &[columns, places], &[("axis", 1.into())])
    }

    /// Probabilities of the classes, where the model has what they are made of.
    fn probabilities(&self, node: &mut Node<'_>, scores: Value) -> Result<Option<Value>, Problem> {
        if !node.has("prob_a") && !node.has("prob_b") {
            return Ok(None);
        }
        let count = self.count() as i64;
        let [a, b] = ["prob_a", "prob_b"].map(|name| -> Result<Value, Problem> {
            // Turned around, since the sigmoid that these are of is that of the second class.
            let numbers: Vec<f64> = self.numbers(node, name)?.iter().map(|it| -it).collect();
            table(node, &numbers, &[count], DType::F32)
        });
        let inner = node.apply("multiply", &[scores, a?])?;
        let inner = node.apply("add", &[inner, b?])?;
        let first = node.apply("sigmoid", &[inner])?;
        let (least, most) = (node.scalar_like(first, 1e-7)?, node.scalar_like(first, 1.0 - 1e-7)?);
        let first = node.apply("maximum", &[first, least])?;
        let first = node.apply("minimum", &[first, most])?;
        let each = self.by_class(node, first)?;
        coupled(node, each, self.classes).map(Some)
    }
}
