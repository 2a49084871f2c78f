//! How often sequences of numbers occur.
//!
//! ```text
//! TfIdfVectorizer { pool_int64s: [2, 3,  5, 4], … }    each place of a row compared with each sequence of the pool,
//!                                                      element by element, and what is equal counted
//! ```

use tenon_plugin_api::rule::prelude::*;

use crate::onnx::steps::{cast_to, extent_of, joined, not_among, reshape_to, sliced};

/// `TfIdfVectorizer` of integers.
#[rule(import.onnx, key = "TfIdfVectorizer", since = 9)]
fn import(node: &mut Node<'_>) -> Outputs {
    let pool = Pool::of(node)?;
    let x = node.input(0)?;
    let dims = node.dims(x)?;
    let (rows, columns) = match dims[..] {
        [] => (node.cx().dim(1), node.cx().dim(1)),
        [columns] => (node.cx().dim(1), columns),
        [rows, columns] => (rows, columns),
        _ => return invalid(format!("its data have {} dimensions", dims.len())),
    };
    let length = extent_of(node, columns, "length of a row")?;
    let x = cast_to(node, x, DType::I64)?;
    let x = reshape_to(node, x, &[rows, columns])?;
    let mut counts = Vec::new();
    for grams in &pool.grams {
        let mut of_size: Option<Value> = None;
        for distance in 1..=pool.distances(grams.size) {
            let windows = length - (grams.size - 1) * distance;
            if windows < 1 {
                break;
            }
            let found = occurrences(node, x, grams, [distance, windows], rows)?;
            of_size = Some(match of_size {
                Some(so_far) => node.apply("add", &[so_far, found])?,
                None => found,
            });
        }
        counts.push(match of_size {
            Some(counts) => counts,
            None => {
                let shape = [rows, node.cx().dim(grams.count())];
                let shape = node.shape(&shape)?;
                node.call("full", &[shape], &[("value", 0.0.into()), ("dtype", "f32".into())])?
            }
        });
    }
    let counts = joined(node, &counts, 1)?;
    let y = pool.placed(node, counts)?;
    let y = pool.weighted(node, y)?;
    match dims.len() {
        2 => Ok(vec![y]),
        _ => {
            let width = node.cx().dim(pool.width);
            Ok(vec![reshape_to(node, y, &[width])?])
        }
    }
}

/// How often each sequence occurs in each row, its elements at a distance of each other.
fn occurrences(
    node: &mut Node<'_>,
    x: Value,
    grams: &Grams,
    [distance, windows]: [i64; 2],
    rows: Dim,
) -> Result<Value, Problem> {
    let mut is_equal: Option<Value> = None;
    for place in 0..grams.size {
        let first = place * distance;
        let own = sliced(node, x, 1, [first, first + windows])?;
        let shape = [rows, node.cx().dim(windows), node.cx().dim(1)];
        let own = reshape_to(node, own, &shape)?;
        let column = grams.elements.iter().skip(place as usize).step_by(grams.size as usize);
        let column: Vec<u8> = column.flat_map(|element| element.to_le_bytes()).collect();
        let column = node.constant(DType::I64, &[grams.count()], &column)?;
        let here = node.apply("equal", &[own, column])?;
        is_equal = Some(match is_equal {
            Some(so_far) => node.apply("logical_and", &[so_far, here])?,
            None => here,
        });
    }
    let Some(is_equal) = is_equal else { return invalid("its sequences have no elements") };
    let is_equal = cast_to(node, is_equal, DType::F32)?;
    node.call("sum", &[is_equal], &[("axis", vec![1].into()), ("keepdims", false.into())])
}

/// Sequences of one length.
struct Grams {
    size: i64,
    elements: Vec<i64>,
    /// The number of the first one among all.
    first: usize,
}

impl Grams {
    fn count(&self) -> i64 {
        self.elements.len() as i64 / self.size
    }
}

/// The sequences that are looked for.
struct Pool {
    /// Those of the lengths that are asked for.
    grams: Vec<Grams>,
    /// Where each one is counted.
    indexes: Vec<i64>,
    width: i64,
    skips: i64,
    mode: String,
    weights: Vec<f32>,
}

impl Pool {
    fn of(node: &mut Node<'_>) -> Result<Self, Problem> {
        if node.ints("pool_int64s")?.is_none() {
            return unsupported("a pool of strings");
        }
        let ints = |name: &str| Ok::<_, Problem>(node.ints(name)?.unwrap_or_default());
        let (pool, starts) = (ints("pool_int64s")?, ints("ngram_counts")?);
        let indexes = ints("ngram_indexes")?;
        let needed = |name: &str| match node.int(name)? {
            Some(value) => Ok(value),
            None => invalid(format!("its attribute `{name}` is missing")),
        };
        let (shortest, longest) = (needed("min_gram_length")?, needed("max_gram_length")?);
        let skips = needed("max_skip_count")?;
        let (mut grams, mut first) = (Vec::new(), 0);
        for (at, (&start, size)) in starts.iter().zip(1..).enumerate() {
            let end = starts.get(at + 1).map_or(pool.len() as i64, |&end| end);
            let part = usize::try_from(start).ok().zip(usize::try_from(end).ok());
            let part = part.and_then(|(start, end)| pool.get(start..end));
            let Some(part) = part.filter(|part| part.len() as i64 % size == 0) else {
                return invalid(format!("its sequences of {size} are not within the pool"));
            };
            if !part.is_empty() && (shortest..=longest).contains(&size) {
                grams.push(Grams { size, elements: part.to_vec(), first });
            }
            first += part.len() / size as usize;
        }
        let width = indexes.iter().max().map_or(0, |last| last.saturating_add(1));
        let is_placed = indexes.len() >= first && indexes.iter().all(|&index| index >= 0);
        let cells = width.checked_mul(first as i64).and_then(|cells| usize::try_from(cells).ok());
        if !is_placed || grams.is_empty() || !cells.is_some_and(|cells| node.spend(4 * cells)) {
            return invalid(format!("its {first} sequences have {} places", indexes.len()));
        }
        let weights = node.floats("weights")?.unwrap_or_default();
        let mode = node.text("mode", "")?;
        Ok(Self { grams, indexes, width, skips, mode, weights })
    }

    /// At how many distances sequences of a length are looked for; for single elements all are one.
    fn distances(&self, size: i64) -> i64 {
        if size == 1 { 1 } else { self.skips.max(0) + 1 }
    }

    /// Counts of sequences at their places in the result.
    fn placed(&self, node: &mut Node<'_>, counts: Value) -> Result<Value, Problem> {
        let numbers = self.grams.iter().flat_map(|grams| {
            let first = grams.first;
            (0..grams.count() as usize).map(move |number| first + number)
        });
        let numbers: Vec<usize> = numbers.collect();
        let mut matrix = vec![0f32; numbers.len() * self.width as usize];
        for (row, number) in numbers.iter().enumerate() {
            matrix[row * self.width as usize + self.indexes[*number] as usize] = 1.0;
        }
        let bytes: Vec<u8> = matrix.into_iter().flat_map(f32::to_le_bytes).collect();
        let matrix = node.constant(DType::F32, &[numbers.len() as i64, self.width], &bytes)?;
        node.apply("matmul", &[counts, matrix])
    }

    /// What the mode makes of counts.
    fn weighted(&self, node: &mut Node<'_>, mut y: Value) -> Result<Value, Problem> {
        match self.mode.as_str() {
            "TF" => return Ok(y),
            "IDF" => y = node.call("clip", &[y], &[("min", 0.0.into()), ("max", 1.0.into())])?,
            "TFIDF" => {}
            other => return not_among("mode", other, &["TF", "IDF", "TFIDF"]),
        }
        if self.weights.is_empty() {
            return Ok(y);
        }
        if self.weights.len() as i64 != self.width {
            return invalid(format!("it has {} weights for {}", self.weights.len(), self.width));
        }
        let bytes = self.weights.iter().flat_map(|weight| weight.to_le_bytes());
        let bytes: Vec<u8> = bytes.collect();
        let weights = node.constant(DType::F32, &[self.width], &bytes)?;
        node.apply("multiply", &[y, weights])
    }
}
