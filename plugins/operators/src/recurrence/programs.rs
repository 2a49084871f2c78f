//! The programs of recurrences: loops over the sequences, and within them over their steps.
//!
//! ```text
//! for b in groups of the batch {
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

/// Sequences that take their steps together: what is read of the weight is used for all of them.
const TOGETHER: i64 = 4;

/// Rows of a weight that are added at once for several sequences: `TOGETHER * ROWS_TOGETHER` factors stay in vector registers.
const ROWS_TOGETHER: i64 = 4;

/// Elements between rows of several sequences: states are as long as powers of two often, and the rows would share the sets of a cache.
const BETWEEN_ROWS: i64 = 16;

/// Columns that a step computes together, the most first: blocks of them are shared out among threads.
const BLOCKS: [i64; 3] = [256, 128, 64];

/// How many columns are a block, where there are several of them.
fn block_of(columns: i64) -> Option<i64> {
    BLOCKS.into_iter().find(|&block| columns > block && columns % block == 0)
}

/// One direction in a program.
pub(super) struct Way<'p> {
    pub(super) program: &'p Program,
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

/// Sequences that take their steps together.
#[derive(Clone, Copy)]
pub(super) struct Group<'p> {
    pub(super) first: Scalar<'p>,
    pub(super) count: i64,
}

/// A step of the sequences of a group.
#[derive(Clone, Copy)]
pub(super) struct Step<'p> {
    pub(super) group: Group<'p>,
    time: Scalar<'p>,
}

/// Adds the whole program: in each direction and for each group of sequences what `step` says at each step, with the buffers that `make`
/// makes for the direction.
pub(super) fn walk<'p, M>(
    program: &'p Program,
    by: &Sequences<'_>,
    make: impl Fn(&Way<'p>) -> Result<M>,
    step: impl Fn(&Way<'p>, &M, Step<'p>) -> Stmt,
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
        let made = make(&way)?;
        let index = program.index(number as i64);
        let of_group = |group: Group<'p>| {
            let mut all = program.block();
            for (state, held) in way.held.iter().enumerate() {
                let from = program.input(2 + state);
                all.push(way.each(group, |sequence, j| {
                    held.set(&[sequence, j], from.wide(&[index, sequence, j]))
                }));
            }
            let all_steps = steps.index(program);
            let length = lengths.as_ref().map(|lengths| {
                let length = lengths.at(&[group.first]).cast(DType::I64);
                all.bind("length", length.max(0).min(all_steps))
            });
            let write = |time: Scalar<'p>, value: &dyn Fn([Scalar<'p>; 2]) -> Scalar<'p>| {
                way.each(group, |sequence, j| {
                    y.set(&[time, index, sequence, j], value([sequence, j]))
                })
            };
            all.push(program.in_turn(all_steps, |number| {
                let last = length.unwrap_or(all_steps) - 1;
                let time = if is_backwards { last - number } else { number };
                let mut this = program.block();
                this.push(step(&way, &made, Step { group, time }));
                this.push(write(time, &|place| way.held[0].at(&place)));
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
                all.push(way.each(group, |sequence, j| {
                    to.set(&[index, sequence, j], held.at(&[sequence, j]))
                }));
            }
            all.finish()
        };
        // Sequences of different lengths end at different steps.
        let together = if by.has_lengths { 1 } else { TOGETHER };
        program.run(in_groups(program, batch, together, &of_group));
    }
    Ok(())
}

/// What `of_group` says of all sequences, `together` at a time and then of those that are left: of a batch that is known they
/// are a group, too.
fn in_groups<'p>(
    program: &'p Program,
    batch: Dim,
    together: i64,
    of_group: &dyn Fn(Group<'p>) -> Stmt,
) -> Stmt {
    let groups = |whole: Scalar<'p>| {
        program.in_turn(whole, |at| of_group(Group { first: at * together, count: together }))
    };
    let mut all = Vec::new();
    match program.dim_value(batch).map(|batch| (batch / together, batch % together)) {
        Some((whole, rest)) => {
            if whole > 0 {
                all.push(groups(program.index(whole)));
            }
            if rest > 0 {
                let first = program.index(whole * together);
                all.push(of_group(Group { first, count: rest }));
            }
        }
        None => {
            let batch = batch.index(program);
            let whole = batch / together;
            all.push(groups(whole));
            if together > 1 {
                let first = whole * together;
                all.push(
                    program.in_turn(batch - first, |at| {
                        of_group(Group { first: first + at, count: 1 })
                    }),
                );
            }
        }
    }
    program.seq(&all)
}

impl<'p> Way<'p> {
    /// A statement for each element of the states of a group, by its sequence and its place.
    pub(super) fn each(
        &self,
        group: Group<'p>,
        stmt: impl Fn(Scalar<'p>, Scalar<'p>) -> Stmt,
    ) -> Stmt {
        let of =
            |sequence| self.program.in_turn(self.hidden.index(self.program), |j| stmt(sequence, j));
        match group.count {
            1 => of(group.first),
            count => self.program.in_turn(self.program.index(count), |at| of(group.first + at)),
        }
    }

    /// A buffer with a row of so many times the extent of a state for each sequence.
    pub(super) fn rows(&self, name: &str, times: i64) -> Buffer<'p> {
        let batch = self.held[0].shape()[0];
        let cx = self.program.cx();
        let row = cx.dim_add(cx.dim_mul(cx.dim(times), self.hidden), cx.dim(BETWEEN_ROWS));
        self.program.temporary(name, self.dtype, &[batch, row])
    }

    /// What a step of a sequence takes from the data.
    pub(super) fn taken(
        &self,
        step: Step<'p>,
        sequence: Scalar<'p>,
        column: Scalar<'p>,
    ) -> Scalar<'p> {
        let number = self.program.index(self.number as i64);
        self.program.input(0).wide(&[step.time, sequence, number, column])
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

    /// Sets columns of the rows of a group, as many as `columns` from the first of part `part` on: to `first`, which is asked by
    /// sequence and column, and then adds the state that `row` is times the weight.
    pub(super) fn product(
        &self,
        group: Group<'p>,
        sums: &Buffer<'p>,
        row: &Buffer<'p>,
        [part, parts]: [i64; 2],
        first: impl Fn(Scalar<'p>, Scalar<'p>) -> Scalar<'p>,
    ) -> Stmt {
        let program = self.program;
        let cx = program.cx();
        let columns = cx.dim_mul(cx.dim(parts), self.hidden);
        let of_block = program.dim_value(columns).and_then(block_of);
        let width = of_block.map_or(columns.index(program), |width| program.index(width));
        let sequences: Vec<Scalar<'p>> = match group.count {
            1 => vec![group.first],
            count => (0..count).map(|at| group.first + at).collect(),
        };
        let of_columns = |start: Option<Scalar<'p>>| {
            let place =
                |column: Scalar<'p>| self.part(part, start.map_or(column, |start| start + column));
            let set = |&sequence: &Scalar<'p>| {
                program.in_turn(width, |column| {
                    let at = place(column);
                    sums.set(&[sequence, at], first(sequence, at))
                })
            };
            let mut all: Vec<Stmt> = sequences.iter().map(set).collect();
            all.push(self.rows_of_weight(group.count, |first, rows| {
                self.add_rows(&sequences, sums, row, [first, width], rows, &place)
            }));
            program.seq(&all)
        };
        match of_block.zip(program.dim_value(columns)) {
            None => of_columns(None),
            Some((width, columns)) => program
                .in_turn(program.index(columns / width), |block| of_columns(Some(block * width))),
        }
    }

    /// Adds `rows` rows of the weight from `first` on, times the elements of the states that they belong to, to the sums of
    /// each sequence: an element of the weight is read once for all of them.
    fn add_rows(
        &self,
        sequences: &[Scalar<'p>],
        sums: &Buffer<'p>,
        row: &Buffer<'p>,
        [first, width]: [Scalar<'p>; 2],
        rows: i64,
        place: &dyn Fn(Scalar<'p>) -> Scalar<'p>,
    ) -> Stmt {
        let (program, weight) = (self.program, self.program.input(1));
        let number = program.index(self.number as i64);
        let mut add = program.block();
        let mut factors = Vec::new();
        for &sequence in sequences {
            for place in 0..rows {
                factors.push(add.bind("factor", row.at(&[sequence, first + place])));
            }
        }
        add.push(program.in_turn(width, |column| {
            let mut add = program.block();
            let at = place(column);
            let weights = (0..rows).map(|place| weight.wide(&[number, first + place, at]));
            let weights: Vec<Scalar<'p>> = match sequences {
                [_] => weights.collect(),
                _ => weights.map(|weight| add.bind("weight", weight)).collect(),
            };
            for (&sequence, factors) in sequences.iter().zip(factors.chunks(rows as usize)) {
                let sum = factors.iter().zip(&weights);
                let sum = sum.fold(sums.at(&[sequence, at]), |sum, (&factor, &weight)| {
                    sum + factor * weight
                });
                add.push(sums.set(&[sequence, at], sum));
            }
            add.finish()
        }));
        add.finish()
    }

    /// A statement for as many rows of a weight as are added at once for `count` sequences, from their first on, and one for
    /// those that are left.
    fn rows_of_weight(&self, count: i64, add: impl Fn(Scalar<'p>, i64) -> Stmt) -> Stmt {
        let program = self.program;
        let Some(hidden) = program.dim_value(self.hidden) else {
            return program.in_turn(self.hidden.index(program), |k| add(k, 1));
        };
        let rows = if count == 1 { ROWS } else { ROWS_TOGETHER };
        let (whole, rest) = (hidden / rows, hidden % rows);
        let mut all = Vec::new();
        if whole > 0 {
            all.push(program.in_turn(program.index(whole), |k| add(k * rows, rows)));
        }
        if rest > 0 {
            all.push(add(program.index(whole * rows), rest));
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
