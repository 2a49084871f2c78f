//! Kernels of three by three taps as the products of a Winograd convolution want them.
//!
//! ```ir
//! %u = nn.winograd_weights(%w) { tile = 4 }    f32[8, 3, 3, 3]  =>  f32[8, 3, 6, 6]
//! ```
//!
//! Each kernel `w` becomes `G w Gᵀ` (Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2016), which is a constant
//! where the kernel is one.

use std::array;

use tenon_plugin_api::op::number::Number;
use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::op::zeros;
use tenon_plugin_api::program::{Reducer, compute_dtype};
use tenon_plugin_api::rule::prelude::*;
use tenon_plugin_api::with_float;

use super::cook_toom::{self, Points};
use crate::kernel::parallel::fill;

/// Taps of a kernel along an axis.
pub(super) const TAPS: usize = 3;

/// The matrix `G` of tiles of two places, and of four.
const OF_WEIGHTS_2: [[f64; TAPS]; 4] =
    [[-1.0, 0.0, 0.0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0.0, 0.0, 1.0]];
const OF_WEIGHTS_4: [[f64; TAPS]; 6] = {
    let [a, b, c] = [1.0 / 6.0, 1.0 / 12.0, 1.0 / 24.0];
    [[0.25, 0.0, 0.0], [-a, -a, -a], [-a, a, -a], [c, b, a], [c, -b, a], [0.0, 0.0, 1.0]]
};

/// Kernels that are transformed together.
const CHUNK: usize = 64;

/// Kernels of 3x3 taps, transformed for a Winograd convolution
#[op(name = "nn.winograd_weights", args = 1, pattern = "opaque")]
pub struct WinogradWeights {
    /// places along an axis that are computed together: 2 or 4
    #[attr(default = 4)]
    tile: i64,
}

impl Operator for WinogradWeights {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        check_tile(cx, self.tile)?;
        cx.check_float(0)?;
        let kernel = cx.tensor_of_rank(0, 4)?;
        let Some(dims) = kernel.dims else { return Ok(cx.tensor_type(kernel.dtype, None)) };
        let taps = cx.dim(TAPS as i64);
        let &[outputs, inputs, h, w] = dims else {
            return Err(cx.wrong_arg(0, "a tensor of four dimensions"));
        };
        if cx.is_different(h, taps) || cx.is_different(w, taps) {
            return Err(cx.mismatch("the taps of the kernel", &[h, w], &[taps, taps]));
        }
        let extent = cx.dim(self.tile + TAPS as i64 - 1);
        Ok(cx.tensor_type(kernel.dtype, Some(&[outputs, inputs, extent, extent])))
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        with_float!(cx.arg(0)?.dtype(), T => match self.tile {
            2 => transformed::<T, 4>(cx, &OF_WEIGHTS_2),
            _ => transformed::<T, 6>(cx, &OF_WEIGHTS_4),
        })
    }
}

/// The kernels times `rows` from both sides, each sum in f64.
fn transformed<T: Number + Default, const N: usize>(
    cx: &EvalCx<'_>,
    rows: &[[f64; TAPS]; N],
) -> Result<Vec<Tensor>> {
    let (dtype, shape) = cx.out()?;
    let kernels = cx.arg(0)?.elements::<T>();
    let mut out = zeros(shape.iter().product());
    let (kernels, _) = kernels.as_chunks::<{ TAPS * TAPS }>();
    fill(&mut out, N * N * CHUNK, &|chunk, out| {
        let (out, _) = out.as_chunks_mut::<N>();
        for (kernel, out) in kernels[chunk * CHUNK..].iter().zip(out.chunks_mut(N)) {
            let kernel = kernel.map(T::to_f64);
            for (row, out) in rows.iter().zip(out) {
                let half: [f64; TAPS] =
                    array::from_fn(|x| (0..TAPS).map(|r| row[r] * kernel[r * TAPS + x]).sum());
                let sum = |row: [f64; TAPS]| row.iter().zip(half).map(|(g, tap)| g * tap).sum();
                *out = rows.map(|row| T::from_f64(sum(row)));
            }
        }
    });
    Ok(vec![Tensor::from_vec_as(dtype, shape.to_vec(), out)])
}

/// Checks how many places along an axis are computed together.
pub(super) fn check_tile(cx: &InferCx<'_>, tile: i64) -> Result<()> {
    match tile {
        2 | 4 => Ok(()),
        _ => cx.bad_attr("tile", tile, "it must be 2 or 4"),
    }
}

/// Sums of taps, weighted by powers of the points.
#[rule(compute)]
fn program(op: &WinogradWeights, program: &mut Program) {
    let (kernel, out) = (program.input(0), program.output(0));
    let dtype = compute_dtype(kernel.dtype());
    let points = Points::of(op.tile);
    let taps = [TAPS as i64; 2];
    let sum = program.reduce("acc", Reducer::Sum, dtype, out.shape(), &taps, |i, tap| {
        let of_axis = |at: usize| {
            let weight = |point: usize, tap: usize| points.weight(point, tap);
            cook_toom::table(program, dtype, [i[2 + at], tap[at]], [points.count(), TAPS], weight)
        };
        kernel.wide(&[i[0], i[1], tap[0], tap[1]]) * of_axis(0) * of_axis(1)
    });
    program.set(&out, |i| sum.at(i));
}
