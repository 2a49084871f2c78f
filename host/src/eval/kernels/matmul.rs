//! Matrix multiplication: every element is a dot product of two rows.

use super::number::{Number, Sum};
use super::parallel::fill;
use super::shape::{parse, permute, relayout};
use super::space::{Rows, Space, broadcast_strides};
use super::unary::convert;
use super::{Result, with_number};
use crate::eval::Tensor;
use crate::ir::DType;
use crate::ops::EvalCx;

/// Elements of the result that one thread computes at once.
const BLOCK: usize = 32;

/// Dot products of `row` with `N` neighbouring rows.
fn dots<T: Number, const N: usize>(row: &[T], others: [&[T]; N]) -> [T::Sum; N] {
    let mut sums = [[T::Sum::default(); 4]; N];
    let depth = row.len();
    let whole = depth / 4 * 4;
    for k in (0..whole).step_by(4) {
        for lane in 0..4 {
            let x = row[k + lane].widen();
            for n in 0..N {
                sums[n][lane] = sums[n][lane].add(x.mul(others[n][k + lane].widen()));
            }
        }
    }
    std::array::from_fn(|n| {
        let rest = (whole..depth)
            .fold(T::Sum::default(), |sum, k| sum.add(row[k].widen().mul(others[n][k].widen())));
        sums[n].into_iter().fold(rest, T::Sum::add)
    })
}

/// `out[m, n] = dot(a[m], b[n])`, for each pair of matrices; `starts` has where the matrices begin.
fn multiply<T: Number>(
    a: &[T],
    b: &[T],
    [m, n, depth]: [usize; 3],
    starts: &[[isize; 2]],
) -> Vec<T> {
    let mut out = vec![T::default(); starts.len() * m * n];
    let each = |row: usize, out: &mut [T], first: usize| {
        let [a_start, b_start] = starts[row / m].map(|start| start as usize);
        let x = &a[a_start + row % m * depth..][..depth];
        let y = |n: usize| &b[b_start + (first + n) * depth..][..depth];
        let mut done = 0;
        while done + 4 <= out.len() {
            let sums = dots(x, [y(done), y(done + 1), y(done + 2), y(done + 3)]);
            (0..4).for_each(|n| out[done + n] = T::narrow(sums[n]));
            done += 4;
        }
        for (n, out) in out.iter_mut().enumerate().skip(done) {
            *out = T::narrow(dots(x, [y(n)])[0]);
        }
    };
    if n > 0 {
        fill(&mut out, n, &|row, out| {
            fill(out, BLOCK, &|block, out| each(row, out, block * BLOCK));
        });
    }
    out
}

pub(crate) fn dense(cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
    let (dtype, shape) = cx.out()?;
    let layout = parse(cx.attrs.str("weight_layout")?)?;
    // Elements of a wider type hold what the narrow ones are.
    let (data, weight) = (convert(cx.arg(0)?, dtype)?, convert(cx.arg(1)?, dtype)?);
    let weight = relayout(&weight, &layout, &parse("NK")?)?;
    let depth = weight.shape()[1];
    let n = shape.last().copied().unwrap_or(0);
    let m = shape[..shape.len() - 1].iter().product();
    with_number!(dtype, T => {
        let (x, w) = (data.elements::<T>(), weight.elements::<T>());
        let out = multiply(&x, &w, [m, n, depth], &[[0, 0]]);
        Ok(vec![Tensor::from_vec_as(dtype, shape.to_vec(), out)])
    })
}

pub(crate) fn matmul(cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
    let (dtype, shape) = cx.out()?;
    let (a, b) = (convert(cx.arg(0)?, dtype)?, convert(cx.arg(1)?, dtype)?);
    let a = with_last_axes(&a, cx.attrs.bool("transpose_a")?)?;
    let b = with_last_axes(&b, !cx.attrs.bool("transpose_b")?)?;
    let (batch, [m, n]) = split_matrix(shape);
    let (a_batch, [_, depth]) = split_matrix(a.shape());
    let (b_batch, _) = split_matrix(b.shape());
    let scaled = |strides: Vec<isize>, size: usize| -> Vec<isize> {
        strides.iter().map(|stride| stride * size as isize).collect()
    };
    let space = Space::new(
        batch,
        [
            scaled(broadcast_strides(batch, a_batch), m * depth),
            scaled(broadcast_strides(batch, b_batch), n * depth),
        ],
    );
    let count = batch.iter().product();
    let starts: Vec<[isize; 2]> = Rows::new(&space.dims, &space.strides, 0).take(count).collect();
    with_number!(dtype, T => {
        let out = multiply(&a.elements::<T>(), &b.elements::<T>(), [m, n, depth], &starts);
        Ok(vec![Tensor::from_vec_as(dtype, shape.to_vec(), out)])
    })
}

/// The shape of the batch, and that of the matrices.
fn split_matrix(shape: &[usize]) -> (&[usize], [usize; 2]) {
    let (batch, matrix) = shape.split_at(shape.len() - 2);
    (batch, [matrix[0], matrix[1]])
}

/// The tensor with its last two axes swapped, if `is_swapped`.
fn with_last_axes(tensor: &Tensor, is_swapped: bool) -> Result<Tensor> {
    let rank = tensor.shape().len();
    let mut axes: Vec<usize> = (0..rank).collect();
    if is_swapped {
        axes.swap(rank - 2, rank - 1);
    }
    permute(tensor, &axes)
}
