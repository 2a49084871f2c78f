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

use crate::ir::{BinaryOp, DType, Dim};
use crate::ops::{LegalizeCx, OpError, OpPattern};

use super::fold::fold_lanes;
use super::kernel::{Buffer, Extent, Kernel, Stmt, vector_width};
use super::program::{axis_of, check_count, program};
use super::reshape::regroup;
use super::scalar::{Scalar, compute_dtype, highest, lowest};
use super::symbolic;

/// `sum`, `mean`, `prod`, `max` and `min`.
pub(crate) fn reduce(cx: &mut LegalizeCx<'_>) -> Result<(), OpError> {
    check_count(cx, 1)?;
    let (_, dims) = Dim::tensor(cx, cx.inputs()[0])?;
    let axes: Vec<usize> = match cx.attrs.has("axis") {
        true => {
            let given = cx.attrs.ints("axis")?;
            given.iter().map(|&axis| axis_of(axis, dims.len())).collect::<Result<_, _>>()?
        }
        false => (0..dims.len()).collect(),
    };
    let reduction = Reduction::of(cx.op.name)?;
    if !cx.is_static() {
        return symbolic::reduce(cx, reduction, &axes);
    }
    let (dtype, shape) = cx.static_tensor(cx.inputs()[0])?;
    let lanes = cx.lanes_of(dtype);
    program(cx, OpPattern::Reduction, |kernel, inputs, outputs| {
        let (data, out) = (&inputs[0], &outputs[0]);
        let is_reduced: Vec<bool> = (0..shape.len()).map(|axis| axes.contains(&axis)).collect();
        let last = shape.len().checked_sub(1);
        let width = last.map_or(1, |last| vector_width(shape[last], lanes));
        let kept: Vec<i64> =
            (0..shape.len()).map(|axis| if is_reduced[axis] { 1 } else { shape[axis] }).collect();
        let row = Row { kernel, data, out, reduction, width, is_reduced, kept };
        Ok(row.program())
    })
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Reduction {
    Sum,
    Mean,
    Product,
    Max,
    Min,
}

impl Reduction {
    fn of(name: &str) -> Result<Self, OpError> {
        Ok(match name {
            "sum" => Self::Sum,
            "mean" => Self::Mean,
            "prod" => Self::Product,
            "max" => Self::Max,
            "min" => Self::Min,
            name => return Err(OpError::Unsupported(format!("`{name}` is no reduction"))),
        })
    }

    pub(super) fn start(self, kernel: &Kernel, dtype: DType) -> Scalar<'_> {
        match self {
            Self::Sum | Self::Mean => kernel.literal(dtype, 0.0),
            Self::Product => kernel.literal(dtype, 1.0),
            Self::Max => lowest(kernel, dtype),
            Self::Min => highest(kernel, dtype),
        }
    }

    pub(super) fn combine<'k>(self, a: Scalar<'k>, b: Scalar<'k>) -> Scalar<'k> {
        match self {
            Self::Sum | Self::Mean => a + b,
            Self::Product => a * b,
            Self::Max => a.max(b),
            Self::Min => a.min(b),
        }
    }
}

struct Row<'a, 'k> {
    kernel: &'k Kernel,
    data: &'a Buffer<'k>,
    out: &'a Buffer<'k>,
    reduction: Reduction,
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
        let vars = kernel.axes(reduced.len());
        kernel.parallel("p", count, |p| {
            let mut body = kernel.block();
            let at =
                |l: Scalar<'k>| regroup(kernel, &[p * results + l], &[count * results], &self.kept);
            let acc = body.local("acc", dtype, &[width]);
            let start = self.reduction.start(kernel, dtype);
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
                acc.set(&[l], self.reduction.combine(acc.at(&[l]), value))
            });
            body.push(kernel.over_axes(&vars, &steps, step));
            if is_last_reduced {
                fold_lanes(&mut body, &acc, width, &|a, b| self.reduction.combine(a, b));
            }
            body.push(kernel.vectorized("l", results, |l| {
                let indices = regroup(kernel, &at(l), &self.kept, &self.out.shape);
                self.out.set(&indices, self.finish(acc.at(&[l])))
            }));
            body.finish()
        })
    }

    fn finish(&self, value: Scalar<'k>) -> Scalar<'k> {
        if self.reduction != Reduction::Mean {
            return value;
        }
        let whole: i64 = self.data.shape.iter().product();
        value / (whole / self.kept.iter().product::<i64>()) as f64
    }
}

/// `argmax` and `argmin`.
pub(crate) fn arg_extreme(cx: &mut LegalizeCx<'_>) -> Result<(), OpError> {
    check_count(cx, 1)?;
    let is_max = cx.op.name == "argmax";
    let axis = cx.attrs.int("axis")?;
    program(cx, OpPattern::Reduction, |kernel, inputs, outputs| {
        let (data, out) = (&inputs[0], &outputs[0]);
        let axis = axis_of(axis, data.shape.len())?;
        let mut kept = data.shape.clone();
        kept[axis] = 1;
        let count: i64 = kept.iter().product();
        Ok(kernel.parallel("p", count, |p| {
            let mut body = kernel.block();
            let outer = regroup(kernel, &[p], &[count], &kept);
            let element = |i| {
                let mut indices = outer.clone();
                indices[axis] = i;
                data.wide(&indices)
            };
            let first = [kernel.index(0)];
            let best = body.local("best", compute_dtype(data.dtype), &[1]);
            let place = body.local("place", DType::I64, &[1]);
            body.push(best.set(&first, element(first[0])));
            body.push(place.set(&first, kernel.index(0)));
            let (from, end) = (kernel.index(1), kernel.index(data.shape[axis]));
            body.push(kernel.range("i", from, end, |i| {
                let value = element(i);
                let is_better = || {
                    let held = best.at(&first);
                    let is_past = if is_max { value.gt(held) } else { value.lt(held) };
                    if !value.dtype().is_float() {
                        return is_past;
                    }
                    // Only what is no number differs from itself; the first of those is the best.
                    let is_nan = value.binary(BinaryOp::Ne, value);
                    let is_open = held.binary(BinaryOp::Eq, held);
                    is_open.and(is_past.binary(BinaryOp::Or, is_nan))
                };
                kernel.seq(&[
                    place.set(&first, is_better().select(i, place.at(&first))),
                    best.set(&first, is_better().select(value, best.at(&first))),
                ])
            }));
            let indices = regroup(kernel, &outer, &kept, &out.shape);
            body.push(out.set(&indices, place.at(&first)));
            body.finish()
        }))
    })
}
