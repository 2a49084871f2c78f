//! Softmax and its logarithm along an axis.
//!
//! ```text
//! max = the largest x[i]                                   so that no power overflows
//! power[i] = exp(x[i] - max)
//! out[i] = power[i] * (1 / sum of power)                   or x[i] - (max + log(sum))
//! ```
//!
//! In vectors where the axis is contiguous: each lane has a maximum and a sum of its own until the end.

use crate::ops::{LegalizeCx, OpError, OpPattern};

use super::fold::fold_lanes;
use super::kernel::{Buffer, Kernel, Stmt, vector_width};
use super::program::{axis_of, check_count, program};
use super::reshape::regroup;
use super::scalar::{Scalar, compute_dtype, lowest};
use super::symbolic;

/// Powers that are kept rather than computed twice, at most.
const MAX_KEPT: i64 = 4096;

/// `nn.softmax`.
pub(crate) fn softmax(cx: &mut LegalizeCx<'_>) -> Result<(), OpError> {
    along_axis(cx, false)
}

/// `nn.log_softmax`.
pub(crate) fn log_softmax(cx: &mut LegalizeCx<'_>) -> Result<(), OpError> {
    along_axis(cx, true)
}

fn along_axis(cx: &mut LegalizeCx<'_>, is_log: bool) -> Result<(), OpError> {
    check_count(cx, 1)?;
    let axis = cx.attrs.int("axis")?;
    if !cx.is_static() {
        return symbolic::softmax(cx, axis, is_log);
    }
    let (dtype, shape) = cx.static_tensor(cx.out)?;
    let lanes = cx.lanes_of(dtype);
    let axis = axis_of(axis, shape.len())?;
    program(cx, OpPattern::OutFusable, |kernel, inputs, outputs| {
        let (data, out) = (&inputs[0], &outputs[0]);
        let is_contiguous = shape[axis + 1..].iter().all(|&extent| extent == 1);
        let width = if is_contiguous { vector_width(shape[axis], lanes) } else { 1 };
        let rows: i64 = shape.iter().product::<i64>() / shape[axis];
        Ok(kernel.parallel("p", rows, |p| {
            let row = Row { kernel, data, out, axis, width, outer: outer_indices(p, &shape, axis) };
            row.program(is_log)
        }))
    })
}

/// The indices of row `p` along `axis`; that at the axis is of no meaning.
fn outer_indices<'k>(p: Scalar<'k>, shape: &[i64], axis: usize) -> Vec<Scalar<'k>> {
    let mut outer = shape.to_vec();
    outer[axis] = 1;
    regroup(p.kernel(), &[p], &[outer.iter().product()], &outer)
}

/// One row.
struct Row<'a, 'k> {
    kernel: &'k Kernel,
    data: &'a Buffer<'k>,
    out: &'a Buffer<'k>,
    axis: usize,
    width: i64,
    outer: Vec<Scalar<'k>>,
}

impl<'k> Row<'_, 'k> {
    fn program(&self, is_log: bool) -> Stmt {
        let Self { kernel, width, .. } = *self;
        let dtype = compute_dtype(self.data.dtype);
        let length = self.data.shape[self.axis];
        let mut body = kernel.block();

        let max = body.local("max", dtype, &[width]);
        let least = lowest(kernel, dtype);
        body.push(kernel.vectorized("l", width, |l| max.set(&[l], least)));
        body.push(self.each(|l, i| max.set(&[l], max.at(&[l]).max(self.element(i)))));
        fold_lanes(&mut body, &max, width, &|a, b| a.max(b));
        let max = max.at(&[kernel.index(0)]);

        let is_kept = !is_log && length <= MAX_KEPT;
        let power = is_kept.then(|| body.local("power", dtype, &[length]));
        let sum = body.local("sum", dtype, &[width]);
        let zero = kernel.literal(dtype, 0.0);
        body.push(kernel.vectorized("l", width, |l| sum.set(&[l], zero)));
        if let Some(power) = &power {
            body.push(
                kernel.vectorized("i", length, |i| {
                    power.set(&[i], (self.element(i) - max).call("exp"))
                }),
            );
        }
        let power_at = |i| match &power {
            Some(power) => power.at(&[i]),
            None => (self.element(i) - max).call("exp"),
        };
        body.push(self.each(|l, i| sum.set(&[l], sum.at(&[l]) + power_at(i))));
        fold_lanes(&mut body, &sum, width, &|a, b| a + b);

        let first = [kernel.index(0)];
        let last = match is_log {
            true => max + sum.at(&first).call("log"),
            false => kernel.literal(dtype, 1.0) / sum.at(&first),
        };
        body.push(sum.set(&first, last));
        body.push(kernel.vectorized("i", length, |i| {
            let value = match is_log {
                true => self.element(i) - sum.at(&first),
                false => power_at(i) * sum.at(&first),
            };
            self.out.set(&self.indices(i), value)
        }));
        body.finish()
    }

    /// A loop over the row in vectors of one width: lane and index.
    fn each(&self, body: impl FnOnce(Scalar<'k>, Scalar<'k>) -> Stmt) -> Stmt {
        let length = self.data.shape[self.axis];
        self.kernel.serial("i", length / self.width, |i| {
            self.kernel.vectorized("l", self.width, |l| body(l, i * self.width + l))
        })
    }

    fn element(&self, i: Scalar<'k>) -> Scalar<'k> {
        self.data.wide(&self.indices(i))
    }

    fn indices(&self, i: Scalar<'k>) -> Vec<Scalar<'k>> {
        let mut indices = self.outer.clone();
        indices[self.axis] = i;
        indices
    }
}
