//! Matrix products of any extents.

use tenon_plugin_api::ir::Dim;
use tenon_plugin_api::op::{Layout, Result};
use tenon_plugin_api::program::{Buffer, Program, Reducer, Scalar, compute_dtype};

use crate::program::index::broadcast;
use crate::program::layout_index::{Coordinate, place};

/// `x * transpose(w)` over the last axis of `x`, with weights of any layout.
pub(crate) fn dense(program: &Program, layout: &Layout) {
    let (data, weight) = (program.input(0), program.input(1));
    product(program, depth(&data, 0), |i, k| {
        let (column, row) = i.split_last().expect("the result has columns");
        let weight = weight.wide(&place(layout, |axis| match axis {
            b'N' => Coordinate::whole(*column),
            _ => Coordinate::whole(k),
        }));
        data.wide(&[row, &[k]].concat()) * weight
    });
}

/// The product over the last two axes; those before are broadcast.
pub(crate) fn matmul<'p>(program: &'p Program, is_flipped: [bool; 2]) -> Result<()> {
    let (a, b, out) = (program.input(0), program.input(1), program.output(0));
    let batch = out.shape().len() - 2;
    let at = |matrix: &Buffer<'p>, i: &[Scalar<'p>], places: [_; 2]| {
        let own = &matrix.shape()[..matrix.shape().len() - 2];
        let mut indices = broadcast(program, own, &out.shape()[..batch], &i[..batch]);
        indices.extend(places);
        indices
    };
    let places =
        |first, second, is_flipped| if is_flipped { [second, first] } else { [first, second] };
    product(program, depth(&a, is_flipped[0] as usize), |i, k| {
        let (row, column) = (i[batch], i[batch + 1]);
        let left = a.wide(&at(&a, i, places(row, k, is_flipped[0])));
        left * b.wide(&at(&b, i, places(k, column, is_flipped[1])))
    });
    Ok(())
}

/// The extent of an axis, counted from the last.
fn depth(buffer: &Buffer<'_>, from_last: usize) -> Dim {
    buffer.shape()[buffer.shape().len() - 1 - from_last]
}

/// Each element of the result as a sum of `depth` terms.
fn product<'p>(
    program: &'p Program,
    depth: Dim,
    term: impl FnOnce(&[Scalar<'p>], Scalar<'p>) -> Scalar<'p>,
) {
    let out = program.output(0);
    let dtype = compute_dtype(out.dtype());
    let sum =
        program.reduce("acc", Reducer::Sum, dtype, out.shape(), &[depth], |i, r| term(i, r[0]));
    program.set(&out, |i| sum.at(i));
}
