//! Sums of products by an equation.

use tenon_plugin_api::rule::import::LARGEST_RANK;
use tenon_plugin_api::rule::prelude::*;

use super::fold::is_equal;
use super::steps;

/// `Einsum`: operand by operand, a product of matrices for each pair that shares what is summed over.
///
/// ```text
/// bij,bjk->bik        matmul(a, b)
/// ii->i               a slice of the matrix as a row
/// ij->j               sum(a, 0)
/// ```
#[rule(import.onnx, key = "Einsum", since = 12)]
fn einsum(node: &mut Node<'_>) -> Outputs {
    let inputs = node.all_inputs()?;
    let text = node.text("equation", "")?;
    let mut ranks = Vec::with_capacity(inputs.len());
    for &input in &inputs {
        ranks.push(node.dims(input)?.len());
    }
    let equation = Equation::parse(&text, &ranks)?;
    // How many of the operands from each on, and the result, have a label.
    let mut uses = [0usize; LABELS];
    equation.operands.iter().flatten().chain(&equation.result).for_each(|&at| uses[at] += 1);
    let mut so_far: Option<Operand> = None;
    for (value, labels) in inputs.into_iter().zip(equation.operands) {
        labels.iter().for_each(|&label| uses[label] -= 1);
        let next = Operand { value, labels }.without_repeats(node)?;
        let known = so_far.as_ref().map_or(&[][..], |so_far| &so_far.labels);
        let is_needed = |label: usize| uses[label] > 0 || known.contains(&label);
        let next = next.summed(node, &is_needed)?;
        let is_needed = |label: usize| uses[label] > 0;
        so_far = Some(match so_far {
            None => next,
            Some(so_far) => {
                let is_needed = |label: usize| uses[label] > 0 || next.labels.contains(&label);
                so_far
                    .summed(node, &is_needed)?
                    .times(node, next.clone(), &|label| uses[label] > 0)?
            }
        });
        so_far = match so_far {
            Some(so_far) => Some(so_far.summed(node, &is_needed)?),
            None => None,
        };
    }
    let Some(result) = so_far else { return invalid("it has no inputs") };
    let order: Option<Vec<usize>> = equation.result.iter().map(|&at| result.place(at)).collect();
    let Some(order) = order else { return invalid("its result has a label of no operand") };
    Ok(vec![transposed(node, result.value, &order)?])
}

/// Letters, and axes that an ellipsis stands for.
const LABELS: usize = 52 + LARGEST_RANK;

/// The labels of axes, by their numbers.
struct Equation {
    operands: Vec<Vec<usize>>,
    result: Vec<usize>,
}

impl Equation {
    fn parse(text: &str, ranks: &[usize]) -> Result<Self, Problem> {
        let wrong = |what: &str| invalid(format!("its equation {text:?} {what}"));
        let plain: String = text.chars().filter(|letter| !letter.is_whitespace()).collect();
        let (left, right) = match plain.split_once("->") {
            Some((left, right)) => (left, Some(right)),
            None => (plain.as_str(), None),
        };
        let terms: Vec<&str> = left.split(',').collect();
        if terms.len() != ranks.len() {
            return wrong(&format!("has {} operands, the node {}", terms.len(), ranks.len()));
        }
        let mut operands = Vec::with_capacity(terms.len());
        let mut hidden = 0;
        for (term, &rank) in terms.iter().zip(ranks) {
            let letters = term.chars().filter(|&letter| letter != '.').count();
            let has_rest = letters != term.len();
            if rank > LARGEST_RANK || letters > rank || !has_rest && letters != rank {
                return wrong(&format!("has {term:?} for {rank} axes"));
            }
            hidden = hidden.max(rank - letters);
            match labels(term, rank - letters) {
                Some(labels) => operands.push(labels),
                None => return wrong(&format!("has {term:?}, expected letters and `...`")),
            }
        }
        let result = match right {
            Some(right) => labels(right, hidden),
            None => {
                let mut counts = [0usize; LABELS];
                operands.iter().flatten().for_each(|&label| counts[label] += 1);
                let once = (0..52).filter(|&label| counts[label] == 1);
                Some((LABELS - hidden..LABELS).chain(once).collect())
            }
        };
        let Some(result) = result else { return wrong("has a result that is no list of letters") };
        let mut is_named = [false; LABELS];
        let is_twice = |&label: &usize| std::mem::replace(&mut is_named[label], true);
        match result.iter().any(is_twice) {
            true => wrong("names an axis of its result twice"),
            false => Ok(Self { operands, result }),
        }
    }
}

/// The labels of a term in which an ellipsis stands for `hidden` axes, which are the last labels. Capital letters come first.
fn labels(term: &str, hidden: usize) -> Option<Vec<usize>> {
    let mut all = Vec::new();
    let mut rest = term;
    let mut has_rest = false;
    while let Some(letter) = rest.chars().next() {
        match letter {
            'A'..='Z' => all.push(letter as usize - 'A' as usize),
            'a'..='z' => all.push(letter as usize - 'a' as usize + 26),
            '.' if rest.starts_with("...") && !has_rest => {
                all.extend(LABELS - hidden..LABELS);
                has_rest = true;
                rest = &rest[3..];
                continue;
            }
            _ => return None,
        }
        rest = &rest[1..];
    }
    Some(all)
}

/// A value with labels of its axes.
#[derive(Clone)]
struct Operand {
    value: Value,
    labels: Vec<usize>,
}

impl Operand {
    fn place(&self, label: usize) -> Option<usize> {
        self.labels.iter().position(|&own| own == label)
    }

    /// Of axes with one label the diagonal.
    fn without_repeats(mut self, node: &mut Node<'_>) -> Result<Self, Problem> {
        let mut axis = 0;
        while axis < self.labels.len() {
            let label = self.labels[axis];
            let Some(other) = (axis + 1..self.labels.len()).find(|&at| self.labels[at] == label)
            else {
                axis += 1;
                continue;
            };
            // Both of them last, as one.
            let mut order: Vec<usize> = (0..self.labels.len()).collect();
            order.remove(other);
            order.remove(axis);
            order.extend([axis, other]);
            let value = transposed(node, self.value, &order)?;
            let dims = node.dims(value)?;
            let (outer, pair) = dims.split_at(dims.len() - 2);
            let extents = [pair[0], pair[1]].map(|dim| node.terms().dim_value(dim));
            let [Some(extent), Some(same)] = extents else {
                return unsupported("a diagonal of a symbolic dimension");
            };
            if extent != same {
                return invalid(format!("one label for axes of {extent} and {same}"));
            }
            let mut flat = outer.to_vec();
            flat.push(node.cx().dim_mul(pair[0], pair[1]));
            let row = reshape_to(node, value, &flat)?;
            let attrs = [
                ("axes", vec![outer.len() as i64].into()),
                ("begin", vec![0].into()),
                ("end", vec![i64::MAX].into()),
                ("strides", vec![extent + 1].into()),
            ];
            self.value = node.call("strided_slice", &[row], &attrs)?;
            self.labels = order[..outer.len()].iter().map(|&at| self.labels[at]).collect();
            self.labels.push(label);
        }
        Ok(self)
    }

    /// The sum over the axes that nobody needs.
    fn summed(
        mut self,
        node: &mut Node<'_>,
        is_needed: &dyn Fn(usize) -> bool,
    ) -> Result<Self, Problem> {
        let axes: Vec<i64> = (0..self.labels.len())
            .filter(|&at| !is_needed(self.labels[at]))
            .map(|at| at as i64)
            .collect();
        if !axes.is_empty() {
            self.value = node.call("sum", &[self.value], &[("axis", axes.into())])?;
            self.labels.retain(|&label| is_needed(label));
        }
        Ok(self)
    }

    /// The product with another operand, summed over what both have and nobody needs.
    fn times(
        self,
        node: &mut Node<'_>,
        other: Self,
        is_needed: &dyn Fn(usize) -> bool,
    ) -> Result<Self, Problem> {
        let (dims, other_dims) = (node.dims(self.value)?, node.dims(other.value)?);
        let (mut shared, mut summed) = (Vec::new(), Vec::new());
        for (axis, &label) in self.labels.iter().enumerate() {
            let Some(place) = other.place(label) else { continue };
            let is_broadcast = is_equal(node, dims[axis], other_dims[place]) == Some(false);
            let one = node.cx().dim(1);
            if is_broadcast && label < 52 && dims[axis] != one && other_dims[place] != one {
                return invalid("a label stands for axes of different extents");
            }
            match is_needed(label) {
                false if is_broadcast => return unsupported("a sum over an axis of 1 and another"),
                false => summed.push(label),
                true => shared.push(label),
            }
        }
        let rest = |this: &Self, other: &Self| -> Vec<usize> {
            let is_own = |label: &usize| other.place(*label).is_none();
            this.labels.iter().copied().filter(is_own).collect()
        };
        let (rows, columns) = (rest(&self, &other), rest(&other, &self));
        let left = self.matrix(node, [&shared, &rows, &summed])?;
        let right = other.matrix(node, [&shared, &summed, &columns])?;
        let product = match summed.is_empty() {
            // One column times one row is a product of elements.
            true => node.apply("multiply", &[left, right])?,
            false => node.apply("matmul", &[left, right])?,
        };
        let mut shape = node.dims(product)?;
        shape.truncate(shared.len());
        let extents = |this: &Self, dims: &[Dim], labels: &[usize]| -> Vec<Dim> {
            labels.iter().filter_map(|&label| Some(dims[this.place(label)?])).collect()
        };
        shape.extend(extents(&self, &dims, &rows));
        shape.extend(extents(&other, &other_dims, &columns));
        let value = reshape_to(node, product, &shape)?;
        Ok(Self { value, labels: [shared, rows, columns].concat() })
    }

    /// Matrices: axes as they are, then two more of those of each list.
    fn matrix(&self, node: &mut Node<'_>, lists: [&[usize]; 3]) -> Result<Value, Problem> {
        let order = lists.concat();
        let order: Vec<usize> = order.iter().filter_map(|&label| self.place(label)).collect();
        let value = transposed(node, self.value, &order)?;
        let dims = node.dims(value)?;
        let (outer, rest) = dims.split_at(lists[0].len());
        let (rows, columns) = rest.split_at(lists[1].len());
        let mut shape = outer.to_vec();
        shape.extend([node.cx().dim_product(rows), node.cx().dim_product(columns)]);
        reshape_to(node, value, &shape)
    }
}

/// A value in another shape; itself where it has that.
fn reshape_to(node: &mut Node<'_>, value: Value, dims: &[Dim]) -> Result<Value, Problem> {
    match node.dims(value)? == dims {
        true => Ok(value),
        false => steps::reshape_to(node, value, dims),
    }
}

/// A value with its axes in another order.
fn transposed(node: &mut Node<'_>, value: Value, order: &[usize]) -> Result<Value, Problem> {
    if order.iter().copied().eq(0..order.len()) {
        return Ok(value);
    }
    let axes: Vec<i64> = order.iter().map(|&axis| axis as i64).collect();
    node.call("transpose", &[value], &[("axes", axes.into())])
}
