//! Reductions along axes.
//!
//! ```text
//! sum(a: f32[8, 64], axis = 1)                             acc[l] += a[i, k * 16 + l]
//!                                                          acc[0] = acc[0] + … + acc[15]
//!                                                          out[i] = acc[0]
//! sum(a: f32[8, 64], axis = 0)                             acc[l] += a[k, j * 16 + l]
//!                                                          out[j * 16 + l] = acc[l]
//! ```
//!
//! In vectors of the last axis: of one that is reduced, each lane has a part of its own until the end.

use tenon_plugin_api::op::Result;
use tenon_plugin_api::program::Reducer;

use super::plain::Reduction;
use crate::program::fixed::fold_lanes::fold_lanes;
use crate::program::fixed::{
    Block, Buffer, Fixed, Kernel, Loops, Scalar, Stmt, compute_dtype, vector_width,
};
use crate::program::index::regroup;

/// The program where the extents are known.
pub(crate) fn fixed(kernel: &Kernel, reduction: Reduction<'_>) -> Result<Option<Stmt>> {
    let Some(args) = Fixed::of(kernel) else { return Ok(None) };
    let (data, out) = (&args.inputs[0], &args.outputs[0]);
    let axes = reduction.axes(data.shape.len())?;
    let is_reduced: Vec<bool> = (0..data.shape.len()).map(|axis| axes.contains(&axis)).collect();
    let width = data.shape.last().map_or(1, |&last| vector_width(last, args.lanes_of(data.dtype)));
    let kept = data.shape.iter().zip(&is_reduced);
    let kept = kept.map(|(&extent, &is_reduced)| if is_reduced { 1 } else { extent }).collect();
    let (reducer, is_mean) = (reduction.reducer, reduction.is_mean);
    let row = Row { kernel, data, out, reducer, is_mean, width, is_reduced, kept };
    Ok(Some(row.program()))
}

struct Row<'a, 'k> {
    kernel: &'k Kernel,
    data: &'a Buffer<'k>,
    out: &'a Buffer<'k>,
    reducer: Reducer,
    is_mean: bool,
    /// Lanes along the last axis.
    width: i64,
    is_reduced: Vec<bool>,
    /// The shape of the data with 1 for the reduced axes.
    kept: Vec<i64>,
}

impl<'k> Row<'_, 'k> {
    fn program(&self) -> Stmt {
        let Self { kernel, width, .. } = *self;
        let dtype = compute_dtype(self.data.dtype);
        let is_last_reduced = self.is_reduced.last().copied().unwrap_or(false);
        // Several results at once, or one after the other.
        let results = if is_last_reduced { 1 } else { width };
        let count = self.kept.iter().product::<i64>() / results;
        // The reduced axes; that over the last axis goes in steps of a vector.
        let rank = self.is_reduced.len();
        let reduced: Vec<(usize, i64)> = (0..rank)
            .filter(|&axis| self.is_reduced[axis])
            .map(|axis| (axis, self.data.shape[axis] / if axis + 1 == rank { width } else { 1 }))
            .collect();
        let steps: Vec<i64> = reduced.iter().map(|&(_, steps)| steps).collect();
        let vars = kernel.vars(reduced.len());
        kernel.parallel("p", count, |p| {
            let mut body = Block::new(kernel);
            let at =
                |l: Scalar<'k>| regroup(kernel, &[p * results + l], &[count * results], &self.kept);
            let acc = body.local("acc", dtype, &[width]);
            let start = self.reducer.identity(kernel, dtype);
            body.push(kernel.vectorized("l", width, |l| acc.set(&[l], start)));
            let step = kernel.vectorized("l", width, |l| {
                let mut indices = at(if is_last_reduced { kernel.index(0) } else { l });
                for (&(axis, _), &k) in reduced.iter().zip(&vars) {
                    indices[axis] = k;
                }
                if is_last_reduced && let Some(last) = indices.last_mut() {
                    *last = *last * width + l;
                }
                let value = self.data.wide(&indices);
                acc.set(&[l], self.reducer.combine(acc.at(&[l]), value))
            });
            body.push(kernel.over(&vars, &steps, step));
            if is_last_reduced {
                fold_lanes(&mut body, &acc, width, &|a, b| self.reducer.combine(a, b));
            }
            body.push(kernel.vectorized("l", results, |l| {
                let indices = regroup(kernel, &at(l), &self.kept, &self.out.shape);
                self.out.set(&indices, self.finish(acc.at(&[l])))
            }));
            body.finish()
        })
    }

    fn finish(&self, value: Scalar<'k>) -> Scalar<'k> {
        if !self.is_mean {
            return value;
        }
        let whole: i64 = self.data.shape.iter().product();
        value / (whole / self.kept.iter().product::<i64>()) as f64
    }
}
