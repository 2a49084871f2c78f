//! Matrix products.
//!
//! * [`tiled`]: the right matrix in vectors of columns, either row by row, `[K, N]`, or in panels,
//!   `NK16n`, what constant weights are packed into. Tiles of rows by columns are summed in registers.
//! * [`dots`]: the right matrix column by column, `[N, K]`: vectors along the sum.
//! * [`plain`]: everything else, one element after the other.

mod dots;
mod plain;
mod tiled;

use crate::ir::DType;
use crate::ops::{LegalizeCx, OpError, OpPattern};

use super::elementwise::broadcast;
use super::kernel::{Buffer, Kernel, Stmt};
use super::layout_index::{Coordinate, place};
use super::program::{check_count, program};
use super::reshape::regroup;
use super::scalar::{Scalar, compute_dtype};
use super::symbolic;

/// A product of matrices: extents, and how elements are read and written.
struct Product<'a, 'k> {
    kernel: &'k Kernel,
    batch: i64,
    rows: i64,
    columns: i64,
    depth: i64,
    /// The dtype that is summed in.
    dtype: DType,
    lanes: i64,
    registers: i64,
    /// The element of the left matrix at batch, row and place in the sum.
    left: &'a dyn Fn(Scalar<'k>, Scalar<'k>, Scalar<'k>) -> Scalar<'k>,
    /// The element of the right matrix at batch, place in the sum and column.
    right: &'a dyn Fn(Scalar<'k>, Scalar<'k>, Coordinate<'k>) -> Scalar<'k>,
    /// Writes the element of the result at batch, row and column.
    write: &'a dyn Fn(Scalar<'k>, Scalar<'k>, Coordinate<'k>, Scalar<'k>) -> Stmt,
}

/// `nn.dense`: `x * transpose(w)` over the last axis of `x`.
pub(crate) fn dense(cx: &mut LegalizeCx<'_>) -> Result<(), OpError> {
    check_count(cx, 2)?;
    let layout = super::layout_attr(cx, "weight_layout")?;
    if !cx.is_static() {
        return symbolic::dense(cx, &layout);
    }
    let (dtype, _) = cx.static_tensor(cx.out)?;
    let (lanes, registers) = (cx.lanes_of(dtype), cx.vectors.registers);
    program(cx, OpPattern::OutFusable, |kernel, inputs, outputs| {
        let (data, weight, out) = (&inputs[0], &inputs[1], &outputs[0]);
        let depth = last(data);
        let columns = last(out);
        let product = Product {
            kernel,
            batch: 1,
            rows: out.shape.iter().product::<i64>() / columns,
            columns,
            depth,
            dtype: compute_dtype(dtype),
            lanes,
            registers,
            left: &|_, row, k| data.wide(&in_row(data, row, k)),
            right: &|_, k, column| {
                weight.wide(&place(&layout, |axis| match axis {
                    b'N' => column,
                    _ => Coordinate::whole(k),
                }))
            },
            write: &|_, row, column, value| out.set(&in_row(out, row, column.index()), value),
        };
        Ok(match (layout.axes(), layout.blocks()) {
            (b"NK", &[(b'N', size)]) => tiled::tiled(&product, &[size]),
            (b"NK", []) => dots::dots(&product),
            _ => plain::plain(&product),
        })
    })
}

/// `matmul`: products over the last two axes; those before are broadcast.
pub(crate) fn matmul(cx: &mut LegalizeCx<'_>) -> Result<(), OpError> {
    check_count(cx, 2)?;
    let is_left_flipped = cx.attrs.bool("transpose_a")?;
    let is_right_flipped = cx.attrs.bool("transpose_b")?;
    if !cx.is_static() {
        return symbolic::matmul(cx, is_left_flipped, is_right_flipped);
    }
    let (dtype, _) = cx.static_tensor(cx.out)?;
    let (lanes, registers) = (cx.lanes_of(dtype), cx.vectors.registers);
    program(cx, OpPattern::OutFusable, |kernel, inputs, outputs| {
        let (a, b, out) = (&inputs[0], &inputs[1], &outputs[0]);
        let (batch, matrix) = out.shape.split_at(out.shape.len() - 2);
        let rank = a.shape.len();
        let count: i64 = batch.iter().product();
        let product = Product {
            kernel,
            batch: count,
            rows: matrix[0],
            columns: matrix[1],
            depth: a.shape[if is_left_flipped { rank - 2 } else { rank - 1 }],
            dtype: compute_dtype(dtype),
            lanes,
            registers,
            left: &|index, row, k| {
                let matrix = if is_left_flipped { [k, row] } else { [row, k] };
                a.wide(&[batch_of(kernel, batch, a, index), matrix.to_vec()].concat())
            },
            right: &|index, k, column| {
                let column = column.index();
                let matrix = if is_right_flipped { [column, k] } else { [k, column] };
                b.wide(&[batch_of(kernel, batch, b, index), matrix.to_vec()].concat())
            },
            write: &|index, row, column, value| {
                out.set(
                    &[batch_of(kernel, batch, out, index), vec![row, column.index()]].concat(),
                    value,
                )
            },
        };
        Ok(match (is_left_flipped, is_right_flipped) {
            (_, false) => tiled::tiled(&product, &tiled::sizes(matrix[1], lanes)),
            (false, true) => dots::dots(&product),
            (true, true) => plain::plain(&product),
        })
    })
}

fn last(buffer: &Buffer<'_>) -> i64 {
    buffer.shape.last().copied().unwrap_or(1)
}

/// The indices of the element at `place` of row `row`, all axes but the last taken as one.
fn in_row<'k>(buffer: &Buffer<'k>, row: Scalar<'k>, place: Scalar<'k>) -> Vec<Scalar<'k>> {
    let outer = &buffer.shape[..buffer.shape.len() - 1];
    let mut indices = regroup(row.kernel(), &[row], &[outer.iter().product()], outer);
    indices.push(place);
    indices
}

/// The first indices of the matrix of `buffer` that number `index` of the batch `shape` stands for.
fn batch_of<'k>(
    kernel: &'k Kernel,
    shape: &[i64],
    buffer: &Buffer<'k>,
    index: Scalar<'k>,
) -> Vec<Scalar<'k>> {
    let whole = regroup(kernel, &[index], &[shape.iter().product()], shape);
    broadcast(kernel, &buffer.shape[..buffer.shape.len() - 2], &whole)
}
