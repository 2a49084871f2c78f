//! Reductions, softmax and matrix products of tensors whose dimensions are symbols, one element after the other.
//!
//! ```text
//! sum(a: f32[n, m], axis = 1)     for i in n { acc = 0; for j in m { acc += a[i, j] }; out[i] = acc }
//! ```
//!
//! Serial loops over the axes of the result around what is summed: which of them are worth threads and vectors is
//! known when their extents are.

use crate::ir::{DType, Dim};
use crate::ops::{Layout, LegalizeCx, OpError, OpPattern};

use super::elementwise::{broadcast, check_broadcast};
use super::kernel::{Block, Buffer, Extent, Kernel};
use super::layout_index::{Coordinate, place};
use super::program::{axis_of, program_of_any_shape};
use super::reduce::Reduction;
use super::scalar::{Scalar, compute_dtype, lowest};

/// A reduction over `axes`.
pub(super) fn reduce(
    cx: &mut LegalizeCx<'_>,
    reduction: Reduction,
    axes: &[usize],
) -> Result<(), OpError> {
    program_of_any_shape(cx, OpPattern::Reduction, |kernel, inputs, outputs| {
        let (data, out) = (&inputs[0], &outputs[0]);
        let dtype = compute_dtype(data.dtype);
        let rank = data.shape.len();
        let keeps_axes = out.shape.len() == rank;
        let extents: Vec<Dim> = axes.iter().map(|&axis| data.shape[axis]).collect();
        let reduced = kernel.axes(extents.len());
        Ok(kernel.nest(&out.shape, |i| {
            let mut own = i.iter();
            let mut indices = Vec::with_capacity(rank);
            for axis in 0..rank {
                match axes.iter().position(|&other| other == axis) {
                    Some(position) => {
                        indices.push(reduced[position]);
                        keeps_axes.then(|| own.next());
                    }
                    None => indices.extend(own.next()),
                }
            }
            let mut body = kernel.block();
            let start = reduction.start(kernel, dtype);
            let acc = Accumulator::new(&mut body, "acc", start);
            let step = acc.set(reduction.combine(acc.get(), data.wide(&indices)));
            body.push(kernel.over_axes(&reduced, &extents, step));
            let mut value = acc.get();
            if reduction == Reduction::Mean {
                let count = extents.iter().map(|extent| extent.index(kernel));
                let count = count.reduce(|a, b| a * b).unwrap_or(kernel.index(1));
                value = value / count.cast(dtype);
            }
            body.push(out.set(i, value));
            body.finish()
        }))
    })
}

/// `nn.softmax` and `nn.log_softmax`.
pub(super) fn softmax(cx: &mut LegalizeCx<'_>, axis: i64, is_log: bool) -> Result<(), OpError> {
    program_of_any_shape(cx, OpPattern::OutFusable, |kernel, inputs, outputs| {
        let (data, out) = (&inputs[0], &outputs[0]);
        let dtype = compute_dtype(data.dtype);
        let axis = axis_of(axis, data.shape.len())?;
        let length = data.shape[axis];
        let outer = kernel.axes(data.shape.len());
        let at = |k| {
            let mut indices = outer.clone();
            indices[axis] = k;
            indices
        };
        let mut body = kernel.block();
        let max = Accumulator::new(&mut body, "max", lowest(kernel, dtype));
        body.push(kernel.serial("k", length, |k| max.set(max.get().max(data.wide(&at(k))))));
        let power = |k| (data.wide(&at(k)) - max.get()).call("exp");
        let sum = Accumulator::new(&mut body, "sum", kernel.literal(dtype, 0.0));
        body.push(kernel.serial("k", length, |k| sum.set(sum.get() + power(k))));
        body.push(kernel.serial("k", length, |k| {
            let value = match is_log {
                true => data.wide(&at(k)) - (max.get() + sum.get().call("log")),
                false => power(k) / sum.get(),
            };
            out.set(&at(k), value)
        }));
        let (mut vars, mut shape) = (outer.clone(), data.shape.clone());
        vars.remove(axis);
        shape.remove(axis);
        Ok(kernel.over_axes(&vars, &shape, body.finish()))
    })
}

/// `nn.dense` with weights of any layout.
pub(super) fn dense(cx: &mut LegalizeCx<'_>, layout: &Layout) -> Result<(), OpError> {
    program_of_any_shape(cx, OpPattern::OutFusable, |kernel, inputs, outputs| {
        let (data, weight, out) = (&inputs[0], &inputs[1], &outputs[0]);
        product(kernel, out, depth(data, 0)?, |i, k| {
            let (column, row) = i.split_last().expect("the result has columns");
            let weight = weight.wide(&place(layout, |axis| match axis {
                b'N' => Coordinate::whole(*column),
                _ => Coordinate::whole(k),
            }));
            data.wide(&[row, &[k]].concat()) * weight
        })
    })
}

/// `matmul`.
pub(super) fn matmul(
    cx: &mut LegalizeCx<'_>,
    is_left_flipped: bool,
    is_right_flipped: bool,
) -> Result<(), OpError> {
    program_of_any_shape(cx, OpPattern::OutFusable, |kernel, inputs, outputs| {
        let (a, b, out) = (&inputs[0], &inputs[1], &outputs[0]);
        let batch = out.shape.len() - 2;
        for matrix in [a, b] {
            let own = &matrix.shape[..matrix.shape.len() - 2];
            check_broadcast(kernel, own, &out.shape[..batch])?;
        }
        product(kernel, out, depth(a, is_left_flipped as usize)?, |i, k| {
            let (row, column) = (i[batch], i[batch + 1]);
            let at = |matrix: &Buffer<'_, Dim>, is_flipped, [first, second]: [_; 2]| {
                let own = &matrix.shape[..matrix.shape.len() - 2];
                let mut indices = broadcast(kernel, own, &i[..batch]);
                indices.extend(if is_flipped { [second, first] } else { [first, second] });
                indices
            };
            let left = a.wide(&at(a, is_left_flipped, [row, k]));
            left * b.wide(&at(b, is_right_flipped, [k, column]))
        })
    })
}

/// The extent of an axis, counted from the last.
fn depth(buffer: &Buffer<'_, Dim>, from_last: usize) -> Result<Dim, OpError> {
    let extent = buffer.shape.iter().rev().nth(from_last).copied();
    extent.ok_or_else(|| OpError::Unsupported("a matrix is expected".into()))
}

/// Each element of `out` as a sum of `depth` terms.
fn product<'k>(
    kernel: &'k Kernel,
    out: &Buffer<'k, Dim>,
    depth: Dim,
    term: impl FnOnce(&[Scalar<'k>], Scalar<'k>) -> Scalar<'k>,
) -> Result<super::kernel::Stmt, OpError> {
    let dtype = compute_dtype(out.dtype);
    Ok(kernel.nest(&out.shape, |i| {
        let mut body = kernel.block();
        let acc = Accumulator::new(&mut body, "acc", kernel.literal(dtype, 0.0));
        body.push(kernel.serial("k", depth, |k| acc.set(acc.get() + term(i, k))));
        body.push(out.set(i, acc.get()));
        body.finish()
    }))
}

/// A scalar that is written several times.
struct Accumulator<'k> {
    cell: Buffer<'k>,
    first: Scalar<'k>,
}

impl<'k> Accumulator<'k> {
    fn new(body: &mut Block<'k>, name: &str, start: Scalar<'k>) -> Self {
        let dtype: DType = start.dtype();
        let first = body.kernel().index(0);
        let acc = Self { cell: body.local(name, dtype, &[1]), first };
        body.push(acc.set(start));
        acc
    }

    fn get(&self) -> Scalar<'k> {
        self.cell.at(&[self.first])
    }

    fn set(&self, value: Scalar<'k>) -> super::kernel::Stmt {
        self.cell.set(&[self.first], value)
    }
}
