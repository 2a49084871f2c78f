//! Products of states with weights of bytes: a state is quantized on a scale of its own at each step, as `DynamicQuantizeLinear` does.
//!
//! ```text
//! scale = (max(state, 0) - min(state, 0)) / 255        zero = round(-min(state, 0) / scale)
//! q = round(state / scale) + zero                      sum_k (q_k - zero) (w_k - z) = q w - zero sum(w) - z (sum(q) - K zero)
//! ```
//!
//! Sums are those of integers, by quads of rows and 16 columns, as instructions for dot products read them.

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::program::{Buffer, Program, Reducer, Scalar, Stmt};

use super::programs::{Group, Way};
use super::sequence::{DEPTH, LANES};

/// Vectors of sums that an instruction's results stay in: enough to wait for none, and to fit in registers.
const TILE: i64 = 16;

/// Buffers of quantized states, of each sequence.
pub(super) struct Bytes<'p> {
    /// `u8[batch, depth]`
    state: Buffer<'p>,
    /// The least and the greatest element of the state, and its scale.
    bounds: [Buffer<'p>; 3],
    /// Its zero point, and the sum of its bytes.
    zero: Buffer<'p>,
    total: Buffer<'p>,
    /// `i32[batch, columns]`
    sums: Buffer<'p>,
    hidden: i64,
    quads: i64,
    tiles: i64,
    /// Vectors of columns in a tile.
    vectors: i64,
}

impl<'p> Bytes<'p> {
    /// Those of a direction.
    pub(super) fn new(program: &'p Program, way: &Way<'p>) -> Result<Self> {
        let weight = program.input(1);
        let known = |dim: Dim| {
            let why = || OpError::Unsupported("a weight whose extents are not known".into());
            program.dim_value(dim).ok_or_else(why)
        };
        let hidden = known(way.hidden)?;
        let &[_, tiles, quads, width, _] = weight.shape() else {
            return Err(OpError::Unsupported("a weight of five dimensions is expected".into()));
        };
        let [tiles, quads, width] = [known(tiles)?, known(quads)?, known(width)?];
        let batch = way.held[0].shape()[0];
        let row = |name, dtype, extent: i64| {
            program.temporary(name, dtype, &[batch, program.cx().dim(extent)])
        };
        let each = |name, dtype| program.temporary(name, dtype, &[batch]);
        Ok(Self {
            state: row("bytes", DType::U8, quads * DEPTH),
            bounds: ["least", "greatest", "scale"].map(|name| each(name, DType::F32)),
            zero: each("zero", DType::I32),
            total: each("total", DType::I32),
            sums: row("sums", DType::I32, tiles * width),
            hidden,
            quads,
            tiles,
            vectors: width / LANES,
        })
    }

    /// Quantizes the states of a group, and multiplies them with the weight.
    pub(super) fn product(&self, way: &Way<'p>, group: Group<'p>) -> Stmt {
        let program = way.program;
        let quantized =
            program.in_turn(program.index(group.count), |at| self.quantized(way, group.first + at));
        let few = (1..=TILE / group.count).rev().find(|few| self.vectors % few == 0).unwrap_or(1);
        let products = program.in_turn(program.index(self.tiles), |tile| {
            program.in_turn(program.index(self.vectors / few), |part| {
                self.sums_of(way, group, [tile, part * few], few)
            })
        });
        program.seq(&[quantized, products])
    }

    /// Quantizes the state of a sequence.
    fn quantized(&self, way: &Way<'p>, sequence: Scalar<'p>) -> Stmt {
        let (program, state, one) = (way.program, &way.held[0], &[0i64; 0]);
        let [least, greatest, scales] = &self.bounds;
        let mut all = program.block();
        for (bound, reducer) in [(least, Reducer::Min), (greatest, Reducer::Max)] {
            let elements = (&one[..], &[self.hidden][..]);
            all.push(program.reduced_into(
                bound,
                reducer,
                elements,
                |_| vec![sequence],
                |_, r| state.at(&[sequence, r[0]]),
            ));
        }
        let least = all.bind("low", least.at(&[sequence]).min(0.0));
        let range = all.bind("range", greatest.at(&[sequence]).max(0.0) - least);
        let [one_of, top] = [1.0, 255.0].map(|value| program.literal(DType::F32, value));
        let scale = range.gt(0.0).select(range / top, one_of);
        let scale = all.bind("by", scale);
        let nothing = program.literal(DType::F32, 0.0);
        let zero = ((nothing - least) / scale).max(0.0).min(255.0).call("round");
        let zero = all.bind("middle", zero);
        all.push(scales.set(&[sequence], scale));
        all.push(self.zero.set(&[sequence], zero.cast(DType::I32)));
        all.push(program.in_turn(program.index(self.hidden), |j| {
            let place = [sequence, j];
            let value = (state.at(&place) / scale).call("round") + zero;
            self.state.set(&place, value.max(0.0).min(255.0).cast(DType::U8))
        }));
        let left = self.quads * DEPTH - self.hidden;
        if left > 0 {
            all.push(program.in_turn(program.index(left), |j| {
                self.state.set(&[sequence, j + self.hidden], program.int(DType::U8, 0))
            }));
        }
        let bytes = (&one[..], &[self.hidden][..]);
        all.push(program.reduced_into(
            &self.total,
            Reducer::Sum,
            bytes,
            |_| vec![sequence],
            |_, r| self.state.at(&[sequence, r[0]]).cast(DType::I32),
        ));
        all.finish()
    }

    /// The sums of some vectors of a tile of columns, from its vector `first` on.
    fn sums_of(
        &self,
        way: &Way<'p>,
        group: Group<'p>,
        [tile, first]: [Scalar<'p>; 2],
        vectors: i64,
    ) -> Stmt {
        let (program, weight) = (way.program, way.program.input(1));
        let number = program.index(way.number as i64);
        program.reduced_into(
            &self.sums,
            Reducer::Sum,
            (&[group.count, vectors, LANES], &[self.quads, DEPTH]),
            |i| {
                let vector = tile * self.vectors + first + i[1];
                vec![group.first + i[0], vector * LANES + i[2]]
            },
            |i, r| {
                let byte = self.state.at(&[group.first + i[0], r[0] * DEPTH + r[1]]);
                let column = (first + i[1]) * LANES + i[2];
                let weight = weight.at(&[number, tile, r[0], column, r[1]]);
                byte.cast(DType::I32) * weight.cast(DType::I32)
            },
        )
    }

    /// An element of the product, with what its column is scaled by and stands for: argument `first` has the scales, the two behind
    /// it the sums and zero points.
    pub(super) fn sum(
        &self,
        way: &Way<'p>,
        first: usize,
        [sequence, column]: [Scalar<'p>; 2],
    ) -> Scalar<'p> {
        let zero = self.zero.at(&[sequence]);
        let moved = self.total.at(&[sequence]) - zero * self.hidden;
        let sum = self.sums.at(&[sequence, column]) - zero * way.of(first + 1, column);
        let sum = sum - moved * way.of(first + 2, column);
        sum.cast(DType::F32) * (self.bounds[2].at(&[sequence]) * way.of(first, column))
    }
}

/// A state in bytes, with its scale and its zero point.
pub(super) fn quantized(state: &[f64]) -> (Vec<i64>, f32, i64) {
    let state: Vec<f32> = state.iter().map(|&element| element as f32).collect();
    // What is no number is the least and the greatest, as it is to the program.
    let bound = |of: fn(f32, f32) -> f32| {
        let elements = state.iter().copied();
        elements.fold(0.0, |a: f32, b| if a.is_nan() || b.is_nan() { f32::NAN } else { of(a, b) })
    };
    let least = bound(f32::min);
    let range = bound(f32::max) - least;
    let scale = if range > 0.0 { range / 255.0 } else { 1.0 };
    let zero = (-least / scale).clamp(0.0, 255.0).round_ties_even();
    let byte =
        |element: &f32| ((element / scale).round_ties_even() + zero).clamp(0.0, 255.0) as i64;
    (state.iter().map(byte).collect(), scale, zero as i64)
}
