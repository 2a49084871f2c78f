//! Matrix products whose extents are known.

use tenon_plugin_api::ir::DType;
use tenon_plugin_api::op::Layout;

use super::{dots, each, tiled};
use crate::program::fixed::{Buffer, Fixed, Kernel, Scalar, Stmt, compute_dtype};
use crate::program::index::{broadcast, regroup};
use crate::program::layout_index::{Coordinate, place};

/// A product of matrices: extents, and how elements are read and written.
pub(super) struct Product<'a, 'k> {
    pub(super) kernel: &'k Kernel,
    pub(super) batch: i64,
    pub(super) rows: i64,
    pub(super) columns: i64,
    pub(super) depth: i64,
    /// The dtype that is summed in.
    pub(super) dtype: DType,
    pub(super) lanes: i64,
    pub(super) registers: i64,
    /// The element of the left matrix at batch, row and place in the sum.
    pub(super) left: &'a dyn Fn(Scalar<'k>, Scalar<'k>, Scalar<'k>) -> Scalar<'k>,
    /// The element of the right matrix at batch, place in the sum and column.
    pub(super) right: &'a dyn Fn(Scalar<'k>, Scalar<'k>, Coordinate<'k>) -> Scalar<'k>,
    /// Writes the element of the result at batch, row and column.
    pub(super) write: &'a dyn Fn(Scalar<'k>, Scalar<'k>, Coordinate<'k>, Scalar<'k>) -> Stmt,
}

/// `x * transpose(w)` over the last axis of `x`.
pub(crate) fn dense(kernel: &Kernel, layout: &Layout) -> Option<Stmt> {
    let args = Fixed::of(kernel)?;
    let (data, weight, out) = (&args.inputs[0], &args.inputs[1], &args.outputs[0]);
    let (lanes, registers) = (args.lanes_of(out.dtype), args.registers);
    let depth = last(data);
    let columns = last(out);
    let product = Product {
        kernel,
        batch: 1,
        rows: out.shape.iter().product::<i64>() / columns,
        columns,
        depth,
        dtype: compute_dtype(out.dtype),
        lanes,
        registers,
        left: &|_, row, k| data.wide(&in_row(data, row, k)),
        right: &|_, k, column| {
            weight.wide(&place(layout, |axis| match axis {
                b'N' => column,
                _ => Coordinate::whole(k),
            }))
        },
        write: &|_, row, column, value| out.set(&in_row(out, row, column.index()), value),
    };
    Some(match (layout.axes(), layout.blocks()) {
        (b"NK", &[(b'N', size)]) => tiled::tiled(&product, &[size]),
        (b"NK", []) => dots::dots(&product),
        _ => each::each(&product),
    })
}

/// The product over the last two axes; those before are broadcast.
pub(crate) fn matmul(
    kernel: &Kernel,
    [is_left_flipped, is_right_flipped]: [bool; 2],
) -> Option<Stmt> {
    let args = Fixed::of(kernel)?;
    let (a, b, out) = (&args.inputs[0], &args.inputs[1], &args.outputs[0]);
    let (lanes, registers) = (args.lanes_of(out.dtype), args.registers);
    let (batch, matrix) = out.shape.split_at(out.shape.len() - 2);
    let rank = a.shape.len();
    let count: i64 = batch.iter().product();
    let product = Product {
        kernel,
        batch: count,
        rows: matrix[0],
        columns: matrix[1],
        depth: a.shape[if is_left_flipped { rank - 2 } else { rank - 1 }],
        dtype: compute_dtype(out.dtype),
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
    Some(match (is_left_flipped, is_right_flipped) {
        (_, false) => tiled::tiled(&product, &tiled::sizes(matrix[1], lanes)),
        (false, true) => dots::dots(&product),
        (true, true) => each::each(&product),
    })
}

fn last(buffer: &Buffer<'_>) -> i64 {
    buffer.shape.last().copied().unwrap_or(1)
}

/// The indices of the element at `place` of row `row`, all axes but the last taken as one.
fn in_row<'k>(buffer: &Buffer<'k>, row: Scalar<'k>, place: Scalar<'k>) -> Vec<Scalar<'k>> {
    let outer = &buffer.shape[..buffer.shape.len() - 1];
    let mut indices = regroup(row.program(), &[row], &[outer.iter().product()], outer);
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
