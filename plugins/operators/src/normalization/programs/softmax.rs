//! Softmax and its logarithm along an axis: for any extents, and in vectors where the extents are known.
//!
//! ```text
//! max = the largest x[i]                                   so that no power overflows
//! power[i] = exp(x[i] - max)
//! out[i] = power[i] * (1 / sum of power)                   or x[i] - (max + log(sum))
//! ```
//!
//! In vectors where the axis is contiguous: each lane has a maximum and a sum of its own until the end.

use tenon_plugin_api::ir::Dim;
use tenon_plugin_api::op::Result;
use tenon_plugin_api::program::{Program, Reducer};

use crate::program::fixed::fold_lanes::fold_lanes;
use crate::program::fixed::{Block, Buffer, Fixed, Kernel, Loops, Scalar, Stmt, vector_width};
use crate::program::index::{axis_of, regroup};

/// Powers that are kept rather than computed twice, at most.
const MAX_KEPT: i64 = 4096;

/// Of any extents.
pub(crate) fn softmax<'p>(program: &'p Program, axis: i64, is_log: bool) -> Result<()> {
    let (data, out) = (program.input(0), program.output(0));
    let axis = axis_of(axis, data.shape().len())?;
    let mut rows: Vec<Dim> = data.shape().to_vec();
    let length = [rows.remove(axis)];
    let dtype = data.compute_dtype();
    let at = |i: &[Scalar<'p>], r: &[Scalar<'p>]| [&i[..axis], r, &i[axis..]].concat();
    let row = |i: &[Scalar<'p>]| [&i[..axis], &i[axis + 1..]].concat();
    let max =
        program.reduce("max", Reducer::Max, dtype, &rows, &length, |i, r| data.wide(&at(i, r)));
    let power =
        program.map("power", dtype, out.shape(), |i| (data.wide(i) - max.at(&row(i))).call("exp"));
    let sum =
        program.reduce("sum", Reducer::Sum, dtype, &rows, &length, |i, r| power.at(&at(i, r)));
    program.set(&out, |i| match is_log {
        true => data.wide(i) - (max.at(&row(i)) + sum.at(&row(i)).call("log")),
        false => power.at(i) / sum.at(&row(i)),
    });
    Ok(())
}

/// The program where the extents are known.
pub(crate) fn fixed(kernel: &Kernel, axis: i64, is_log: bool) -> Result<Option<Stmt>> {
    let Some(args) = Fixed::of(kernel) else { return Ok(None) };
    let (data, out) = (&args.inputs[0], &args.outputs[0]);
    let shape = &out.shape;
    let axis = axis_of(axis, shape.len())?;
    let is_contiguous = shape[axis + 1..].iter().all(|&extent| extent == 1);
    let lanes = args.lanes_of(out.dtype);
    let width = if is_contiguous { vector_width(shape[axis], lanes) } else { 1 };
    let rows: i64 = shape.iter().product::<i64>() / shape[axis];
    Ok(Some(kernel.parallel("p", rows, |p| {
        let outer = outer_indices(p, shape, axis);
        Row { kernel, data, out, axis, width, outer }.program(is_log)
    })))
}

/// The indices of row `p` along `axis`; that at the axis is of no meaning.
fn outer_indices<'k>(p: Scalar<'k>, shape: &[i64], axis: usize) -> Vec<Scalar<'k>> {
    let mut outer = shape.to_vec();
    outer[axis] = 1;
    regroup(p.program(), &[p], &[outer.iter().product()], &outer)
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
        let dtype = self.data.compute_dtype();
        let length = self.data.shape[self.axis];
        let mut body = Block::new(kernel);

        let max = body.local("max", dtype, &[width]);
        let least = Reducer::Max.identity(kernel, dtype);
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
