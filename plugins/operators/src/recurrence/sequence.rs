//! Sequences: what the operators that walk along them take, the types of their results, and the walk itself.
//!
//! ```text
//! x        [steps, batch, directions, gates * hidden]    what each step takes from the data
//! weight   [directions, hidden, gates * hidden]          what it takes from the state before
//! states   [directions, batch, hidden]                   those before the first step
//! more     [directions, n * hidden]                      what an operator has besides
//! lengths  [batch]                                       how many steps each sequence has, where they differ
//! ```
//!
//! The results are the first state after each step, `[steps, directions, batch, hidden]`, and all states after the last one. Behind the
//! end of a sequence there are zeros. Backwards it is read from its own end on.

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::{with_float, with_number};

use super::activation::Activation;

/// Columns of a weight of bytes of which there are whole numbers together, and rows of each.
pub(super) const LANES: i64 = 16;
pub(super) const DEPTH: i64 = 4;

/// What a call says, and what its operator is.
pub(super) struct Sequences<'a> {
    pub(super) direction: &'a str,
    pub(super) activations: &'a str,
    /// How far from zero the argument of a gate may be.
    pub(super) clip: Option<f64>,
    /// The functions of one direction, where nothing is said.
    pub(super) default: &'static str,
    pub(super) has_lengths: bool,
    /// How many times as long as the state a row of the weight is.
    pub(super) gates: i64,
    /// How many states are carried.
    pub(super) states: usize,
    /// How many times as long as the state each of the arguments is that an operator has besides.
    pub(super) more: &'a [i64],
    /// Whether the weight is of bytes, `[directions, tiles, hidden / 4, width, 4]`: by tiles of columns and quads of rows, filled up with
    /// zeros. Behind the first of `more`, which has its scales, are integers.
    pub(super) is_packed: bool,
}

impl Sequences<'_> {
    /// For each direction, whether it goes backwards.
    pub(super) fn ways(&self) -> &'static [bool] {
        match self.direction {
            "reverse" => &[true],
            "bidirectional" => &[false, true],
            _ => &[false],
        }
    }

    /// The functions of each direction.
    pub(super) fn functions(&self) -> std::result::Result<Vec<Vec<Activation>>, String> {
        let count = self.default.split_whitespace().count();
        let (ways, given) = (self.ways().len(), Activation::list(self.activations)?);
        if given.is_empty() {
            return Ok(vec![Activation::list(self.default)?; ways]);
        }
        if given.len() != ways * count {
            return Err(format!("{} functions are expected", ways * count));
        }
        Ok(given.chunks(count).map(<[_]>::to_vec).collect())
    }

    /// The argument of a gate.
    pub(super) fn clipped(&self, x: f64) -> f64 {
        self.clip.map_or(x, |bound| x.clamp(-bound, bound))
    }

    /// The argument that says how long the sequences are.
    pub(super) fn lengths(&self) -> usize {
        2 + self.states + self.more.len()
    }

    /// The type of the result.
    pub(super) fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        if let Err(reason) = self.functions() {
            return cx.bad_attr("activations", self.activations, reason);
        }
        if self.clip.is_some_and(|bound| bound.is_nan() || bound < 0.0) {
            return cx.bad_attr("clip", self.clip, "it must not be below zero");
        }
        cx.check_float(0)?;
        let dtype = cx.tensor(0)?.dtype;
        for index in 1..self.lengths() {
            let expected = match index {
                1 if self.is_packed => DType::I8,
                _ if self.is_packed && index > 2 + self.states => DType::I32,
                _ => dtype,
            };
            let found = cx.tensor(index)?.dtype;
            if found != expected {
                let expected = expected.to_string();
                return Err(OpError::WrongDType { index, expected, found });
            }
        }
        let results = |y: Option<&[Dim]>, state: Option<&[Dim]>| {
            let mut types = vec![cx.tensor_type(dtype, y)];
            types.resize(1 + self.states, cx.tensor_type(dtype, state));
            cx.tuple_type(&types)
        };
        let x = cx.tensor_of_rank(0, 4)?.dims;
        let weight = cx.tensor_of_rank(1, if self.is_packed { 5 } else { 3 })?.dims;
        let (Some(x), Some(first)) = (x, cx.tensor_of_rank(2, 3)?.dims) else {
            return Ok(results(None, None));
        };
        let (ways, hidden) = (cx.dim(self.ways().len() as i64), first[2]);
        let times = |count: i64| cx.dim_mul(cx.dim(count), hidden);
        let (steps, batch, row) = (x[0], x[1], times(self.gates));
        let check = |what: &str, found: &[Dim], wanted: &[Dim]| match found
            .iter()
            .zip(wanted)
            .any(|(&a, &b)| cx.is_different(a, b))
        {
            true => Err(cx.mismatch(what, found, wanted)),
            false => Ok(()),
        };
        let given = self.lengths() + usize::from(self.has_lengths);
        if cx.args.len() != given {
            return cx.unsupported(format!("by its attributes it takes {given} arguments"));
        }
        check("what the steps take and what they should", x, &[steps, batch, ways, row])?;
        if let Some(weight) = weight {
            let wanted = match self.is_packed {
                true => packed(cx, weight, [ways, hidden, row])?,
                false => vec![ways, hidden, row],
            };
            check("the weight and what it should be", weight, &wanted)?;
        }
        for index in 2..2 + self.states {
            if let Some(state) = cx.tensor_of_rank(index, 3)?.dims {
                check("a state and what it should be", state, &[ways, batch, hidden])?;
            }
        }
        for (index, &count) in self.more.iter().enumerate() {
            let more = cx.tensor_of_rank(2 + self.states + index, 2)?.dims;
            if let Some(more) = more {
                check("an argument and what it should be", more, &[ways, times(count)])?;
            }
        }
        if self.has_lengths {
            let index = self.lengths();
            let lengths = cx.tensor_of_rank(index, 1)?;
            if !lengths.dtype.is_int() {
                let (expected, found) = ("integers".to_owned(), lengths.dtype);
                return Err(OpError::WrongDType { index, expected, found });
            }
            if let Some(dims) = lengths.dims {
                check("the lengths and the batch", dims, &[batch])?;
            }
        }
        Ok(results(Some(&[steps, ways, batch, hidden]), Some(&[ways, batch, hidden])))
    }

    /// Walks along each sequence in each direction: `step` is given the number of the direction, what the step takes from the data, and
    /// the states, which it changes.
    pub(super) fn evaluate(
        &self,
        cx: &EvalCx<'_>,
        step: impl Fn(usize, &[f64], &mut [Vec<f64>]),
    ) -> Result<Vec<Tensor>> {
        let (_, shape) = cx.out()?;
        let &[steps, ways, batch, hidden] = shape else {
            return Err(OpError::Unsupported("four dimensions are expected".into()));
        };
        let x = numbers(cx.arg(0)?)?;
        let row = self.gates as usize * hidden;
        let states: Vec<Vec<f64>> =
            (0..self.states).map(|index| numbers(cx.arg(2 + index)?)).collect::<Result<_>>()?;
        let lengths = match self.has_lengths {
            true => Some(numbers(cx.arg(self.lengths())?)?),
            false => None,
        };
        let mut y = vec![0.0; steps * ways * batch * hidden];
        let mut ends = states.clone();
        for (way, &is_backwards) in self.ways().iter().enumerate() {
            for sequence in 0..batch {
                let first = (way * batch + sequence) * hidden;
                let mut held: Vec<Vec<f64>> =
                    states.iter().map(|all| all[first..first + hidden].to_vec()).collect();
                let length = lengths
                    .as_ref()
                    .map_or(steps, |lengths| (lengths[sequence].max(0.0) as usize).min(steps));
                for number in 0..length {
                    let time = if is_backwards { length - 1 - number } else { number };
                    let from = ((time * batch + sequence) * ways + way) * row;
                    step(way, &x[from..from + row], &mut held);
                    let to = ((time * ways + way) * batch + sequence) * hidden;
                    y[to..to + hidden].copy_from_slice(&held[0]);
                }
                for (end, held) in ends.iter_mut().zip(held) {
                    end[first..first + hidden].copy_from_slice(&held);
                }
            }
        }
        [y].into_iter().chain(ends).zip(cx.outs).map(|(all, out)| tensor(out, &all)).collect()
    }
}

/// The shape of a weight of bytes whose tiles are as wide as those of `given`.
fn packed(cx: &InferCx<'_>, given: &[Dim], [ways, hidden, row]: [Dim; 3]) -> Result<Vec<Dim>> {
    let known = [given[3], hidden, row].map(|dim| cx.value(dim));
    let [Some(width), Some(hidden), Some(row)] = known else {
        return cx.unsupported("a packed weight whose extents are not known");
    };
    if width < LANES || width % LANES != 0 {
        return cx.unsupported(format!("a weight with {width} columns together"));
    }
    let parts = |extent: i64, part: i64| (extent + part - 1) / part;
    let counts = [parts(row, width), parts(hidden, DEPTH), width, DEPTH];
    Ok([ways].into_iter().chain(counts.map(|count| cx.dim(count))).collect())
}

/// The elements of a tensor.
pub(super) fn numbers(tensor: &Tensor) -> Result<Vec<f64>> {
    with_number!(tensor.dtype(), T => {
        Ok(tensor.elements::<T>().iter().map(|x| x.to_f64()).collect())
    })
}

fn tensor((dtype, shape): &(DType, Vec<usize>), elements: &[f64]) -> Result<Tensor> {
    with_float!(*dtype, T => {
        let elements = elements.iter().map(|&x| T::from_f64(x)).collect();
        Ok(Tensor::from_vec_as(*dtype, shape.clone(), elements))
    })
}
