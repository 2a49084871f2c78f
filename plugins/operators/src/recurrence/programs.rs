//! The programs of recurrences: loops over the sequences, and within them over their steps.
//!
//! ```text
//! for b in batch {
//!   held[b] = state[b]
//!   for s in steps { …; y[s, b] = held[b] }          from the last on, where it goes backwards
//!   end[b] = held[b]
//! }
//! ```
//!
//! Sequences depend on nothing but themselves, and so do the columns of a row times a matrix, whose rows are added one after the other: by blocks
//! of columns, which threads share.

use tenon_plugin_api::op::OpError;
use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::program::{Buffer, Extent, Program, Scalar, Stmt};

use super::activation::Activation;
use super::sequence::Sequences;

/// Rows of a weight that are added at once, so that sums are read and written for all of them once.
const ROWS: i64 = 8;

/// Columns that a step computes together, the most first: blocks of them are shared out among threads.
const BLOCKS: [i64; 3] = [256, 128, 64];

/// How many columns are a block, where there are several of them.
fn block_of(columns: i64) -> Option<i64> {
    BLOCKS.into_iter().find(|&block| columns > block && columns % block == 0)
}

/// One direction in a program.
pub(super) struct Way<'p> {
    program: &'p Program,
    /// Its number.
    pub(super) number: usize,
    pub(super) functions: Vec<Activation>,
    pub(super) clip: Option<f64>,
    /// The states, `[batch, hidden]` each.
    pub(super) held: Vec<Buffer<'p>>,
    /// The extent of a state.
    pub(super) hidden: Dim,
    dtype: DType,
}

/// A step of a sequence.
#[derive(Clone, Copy)]
pub(super) struct Step<'p> {
    pub(super) sequence: Scalar<'p>,
    time: Scalar<'p>,
}

/// Adds the whole program: in each direction and for each sequence what `step` says at each step.
pub(super) fn walk<'p>(
    program: &'p Program,
    by: &Sequences<'_>,
    make: impl Fn(&'p Program, &Way<'p>) -> Vec<Buffer<'p>>,
    step: impl Fn(&Way<'p>, &[Buffer<'p>], Step<'p>) -> Stmt,
) -> Result<()> {
    let functions = by.functions().map_err(OpError::Unsupported)?;
    let (x, y) = (program.input(0), program.output(0));
    let dtype = x.compute_dtype();
    let &[steps, _, batch, hidden] = y.shape() else {
        return Err(OpError::Unsupported("four dimensions are expected".into()));
    };
    let lengths = by.has_lengths.then(|| program.input(by.lengths()));
    for (number, (functions, &is_backwards)) in functions.into_iter().zip(by.ways()).enumerate() {
        let held = (0..by.states).map(|_| program.temporary("held", dtype, &[batch, hidden]));
        let held = held.collect();
        let clip = by.clip;
        let way = Way { program, number, functions, clip, held, hidden, dtype };
        let made = make(program, &way);
        let index = program.index(number as i64);
        let sequence = |sequence: Scalar<'p>| {
            let mut all = program.block();
            for (state, held) in way.held.iter().enumerate() {
                let from = program.input(2 + state);
                all.push(way.each(|j| held.set(&[sequence, j], from.wide(&[index, sequence, j]))));
            }
            let all_steps = steps.index(program);
            let length = lengths.as_ref().map(|lengths| {
                let length = lengths.at(&[sequence]).cast(DType::I64);
                all.bind("length", length.max(0).min(all_steps))
            });
            let write = |time: Scalar<'p>, value: &dyn Fn(Scalar<'p>) -> Scalar<'p>| {
                way.each(|j| y.set(&[time, index, sequence, j], value(j)))
            };
            all.push(program.in_turn(all_steps, |number| {
                let last = length.unwrap_or(all_steps) - 1;
                let time = if is_backwards { last - number } else { number };
                let mut this = program.block();
                this.push(step(&way, &made, Step { sequence, time }));
                this.push(write(time, &|j| way.held[0].at(&[sequence, j])));
                let this = this.finish();
                let zero = program.literal(dtype, 0.0);
                match length {
                    None => this,
                    Some(length) => {
                        program.choose(number.lt(length), this, write(number, &|_| zero))
                    }
                }
            }));
            for (state, held) in way.held.iter().enumerate() {
                let to = program.output(1 + state);
                all.push(way.each(|j| to.set(&[index, sequence, j], held.at(&[sequence, j]))));
            }
            all.finish()
        };
        program.run(program.in_turn(batch.index(program), sequence));
    }
    Ok(())
}

impl<'p> Way<'p> {
    /// A statement for each element of a state.
    pub(super) fn each(&self, stmt: impl FnOnce(Scalar<'p>) -> Stmt) -> Stmt {
        self.program.in_turn(self.hidden.index(self.program), stmt)
    }

    /// A buffer with a row of so many times the extent of a state for each sequence.
    pub(super) fn rows(&self, name: &str, times: i64) -> Buffer<'p> {
        let batch = self.held[0].shape()[0];
        let cx = self.program.cx();
        let row = cx.dim_mul(cx.dim(times), self.hidden);
        self.program.temporary(name, self.dtype, &[batch, row])
    }

    /// What a step takes from the data.
    pub(super) fn taken(&self, step: Step<'p>, column: Scalar<'p>) -> Scalar<'p> {
        let number = self.program.index(self.number as i64);
        self.program.input(0).wide(&[step.time, step.sequence, number, column])
    }

    /// An element of an argument that has a row for each direction.
    pub(super) fn of(&self, argument: usize, column: Scalar<'p>) -> Scalar<'p> {
        let number = self.program.index(self.number as i64);
        self.program.input(argument).wide(&[number, column])
    }

    /// The place of element `j` of part `part` of a row, of parts as long as a state.
    pub(super) fn part(&self, part: i64, j: Scalar<'p>) -> Scalar<'p> {
        self.hidden.index(self.program) * part + j
    }

    /// Sets columns of a row, as many as `columns` from the first of part `part` on: to `first`, and then adds the state that `row` is times the
    /// weight.
    pub(super) fn product(
        &self,
        step: Step<'p>,
        sums: &Buffer<'p>,
        row: &Buffer<'p>,
        [part, parts]: [i64; 2],
        first: impl Fn(Scalar<'p>) -> Scalar<'p>,
    ) -> Stmt {
        let (program, sequence, weight) = (self.program, step.sequence, self.program.input(1));
        let number = program.index(self.number as i64);
        let cx = program.cx();
        let columns = cx.dim_mul(cx.dim(parts), self.hidden);
        let of_block = program.dim_value(columns).and_then(block_of);
        let width = of_block.map_or(columns.index(program), |width| program.index(width));
        let of_columns = |start: Option<Scalar<'p>>| {
            let place =
                |column: Scalar<'p>| self.part(part, start.map_or(column, |start| start + column));
            let set = program.in_turn(width, |column| {
                let at = place(column);
                sums.set(&[sequence, at], first(at))
            });
            let add = |first: Scalar<'p>, rows: i64| {
                let mut add = program.block();
                let factors: Vec<Scalar<'p>> = (0..rows)
                    .map(|place| add.bind("factor", row.at(&[sequence, first + place])))
                    .collect();
                add.push(program.in_turn(width, |column| {
                    let at = place(column);
                    let mut sum = sums.at(&[sequence, at]);
                    for (place, &factor) in (0..).zip(&factors) {
                        sum = sum + factor * weight.wide(&[number, first + place, at]);
                    }
                    sums.set(&[sequence, at], sum)
                }));
                add.finish()
            };
            program.seq(&[set, self.rows_of_weight(add)])
        };
        match of_block.zip(program.dim_value(columns)) {
            None => of_columns(None),
            Some((width, columns)) => program
                .in_turn(program.index(columns / width), |block| of_columns(Some(block * width))),
        }
    }

    /// A statement for each `ROWS` rows of a weight, from their first on, and one for those that are left.
    fn rows_of_weight(&self, add: impl Fn(Scalar<'p>, i64) -> Stmt) -> Stmt {
        let program = self.program;
        let Some(hidden) = program.dim_value(self.hidden) else {
            return program.in_turn(self.hidden.index(program), |k| add(k, 1));
        };
        let (whole, rest) = (hidden / ROWS, hidden % ROWS);
        let mut all = Vec::new();
        if whole > 0 {
            all.push(program.in_turn(program.index(whole), |k| add(k * ROWS, ROWS)));
        }
        if rest > 0 {
            all.push(add(program.index(whole * ROWS), rest));
        }
        program.seq(&all)
    }

    /// The value of a gate.
    pub(super) fn gate(&self, function: usize, x: Scalar<'p>) -> Scalar<'p> {
        let x = match self.clip {
            Some(bound) => x.max(-bound).min(bound),
            None => x,
        };
        self.functions[function].of_scalar(x)
    }
}
