//! The product of matrices.
//!
//! ```ir
//! %c = matmul(%a, %b)    f32[h, n, 64], f32[64, 10]  =>  f32[h, n, 10]
//! ```

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;
use tenon_plugin_api::with_number;

use super::cost::of_product;
use super::dots::multiply;
use super::factors::{check_dtypes, in_one_dtype, narrowed, of_weight};
use super::programs;
use super::transposed::product;
use crate::broadcast::types::broadcast;
use crate::kernel::convert::convert;
use crate::kernel::moves::permute;
use crate::kernel::space::{Rows, Space, broadcast_strides};
use crate::precision::gains_by_precision;
use crate::shape::transpose::Transpose;

/// Matrix product over the last two axes; those before are broadcast; with data of f32 the weight may be f16 or bf16
#[op(name = "matmul", args = 2, pattern = "out_fusable")]
pub struct Matmul {
    /// a is given transposed
    #[attr(default = false)]
    transpose_a: bool,
    /// b is given transposed
    #[attr(default = false)]
    transpose_b: bool,
    /// element type of the result: that of the data when empty, or f32 for f16 and bf16
    #[attr(default = "")]
    out_dtype: String,
}

impl Operator for Matmul {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        check_dtypes(cx)?;
        let (a, b) = (cx.tensor(0)?, cx.tensor(1)?);
        let dtype = cx.product_dtype("out_dtype", &self.out_dtype)?;
        let (Some(a_dims), Some(b_dims)) = (a.dims, b.dims) else {
            return Ok(cx.tensor_type(dtype, None));
        };
        let Some((a_batch, &a_matrix)) = a_dims.split_last_chunk::<2>() else {
            return Err(cx.wrong_arg(0, "a tensor of at least two dimensions"));
        };
        let Some((b_batch, &b_matrix)) = b_dims.split_last_chunk::<2>() else {
            return Err(cx.wrong_arg(1, "a tensor of at least two dimensions"));
        };
        let flip = |[x, y]: [Dim; 2], is_flipped| if is_flipped { [y, x] } else { [x, y] };
        let [m, a_depth] = flip(a_matrix, self.transpose_a);
        let [b_depth, n] = flip(b_matrix, self.transpose_b);
        if cx.is_different(a_depth, b_depth) {
            return Err(cx.mismatch("the shapes, over which is summed,", a_dims, b_dims));
        }
        let mut dims = broadcast(cx, a_batch, b_batch)?;
        dims.extend([m, n]);
        Ok(cx.tensor_type(dtype, Some(&dims)))
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        let (dtype, shape) = cx.out()?;
        let (a, b) = (convert(cx.arg(0)?, dtype)?, convert(cx.arg(1)?, dtype)?);
        let a = with_last_axes(&a, self.transpose_a)?;
        let b = with_last_axes(&b, !self.transpose_b)?;
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
        let starts: Vec<[isize; 2]> =
            Rows::new(&space.dims, &space.strides, 0).take(count).collect();
        with_number!(dtype, T => {
            let out = multiply(&a.elements::<T>(), &b.elements::<T>(), [m, n, depth], &starts);
            Ok(vec![Tensor::from_vec_as(dtype, shape.to_vec(), out)])
        })
    }
}

/// `matmul(a, transpose(b))` of an unknown number of columns, or of one row of `a`, reads `b` as it lies: where its rows lie along the
/// sum, they can be multiplied in vectors however many they are, and a single row takes no longer than the transpose.
///
/// Where both are given transposed neither lies along the rows or columns of the result, so the left one is transposed.
#[rule(simplify)]
fn simplify(op: &Matmul, at: &mut Site<'_>) -> Option<Expr> {
    let (a, b) = (at.arg(0), at.arg(1));
    if op.transpose_a && op.transpose_b {
        let rank = at.tensor(a)?.1.len() as i64;
        let axes: Vec<i64> = (0..rank - 2).chain([rank - 1, rank - 2]).collect();
        let a = at.transpose(a, &axes);
        let attrs = at.call.attrs;
        let attrs = at.with_cx(|cx| cx.with_attr(attrs, "transpose_a", false.into()));
        let product = at.call_op("matmul", &[a, b], attrs);
        return at.same_type(product);
    }
    let (_, dims) = at.tensor(b)?;
    let &[.., depth, columns] = dims.as_slice() else { return None };
    let [depth, columns] = [depth, columns].map(|dim| at.terms().dim_value(dim));
    if op.transpose_b || depth.is_none() || (columns.is_some() && !has_one_row(op, at, a)) {
        return None;
    }
    let inner = at.call_of(b, "transpose")?;
    let mut order = at.op_of_call::<Transpose>(&inner)?.order(dims.len());
    let last = dims.len() - 1;
    order.swap(last - 1, last);
    if order[last] != last {
        return None;
    }
    let axes: Vec<i64> = order.into_iter().map(|axis| axis as i64).collect();
    let b = at.transpose(inner.args[0], &axes);
    let attrs = at.call.attrs;
    let attrs = at.with_cx(|cx| cx.with_attr(attrs, "transpose_b", true.into()));
    let product = at.call_op("matmul", &[a, b], attrs);
    at.same_type(product)
}

/// Whether the left matrix has one row.
fn has_one_row(op: &Matmul, at: &mut Site<'_>, a: Expr) -> bool {
    let Some((_, dims)) = at.tensor(a) else { return false };
    let rows = dims.iter().rev().nth(!op.transpose_a as usize);
    rows.is_some_and(|&dim| at.terms().dim_value(dim) == Some(1))
}

/// One element after the other.
#[rule(compute)]
fn program(op: &Matmul, program: &mut Program) -> Result<()> {
    programs::matmul(program, [op.transpose_a, op.transpose_b])
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

gains_by_precision!(Matmul);

/// For each element of the result a multiplication and an addition for each element of a row.
#[rule(cost)]
fn cost(op: &Matmul, at: &mut Site<'_>) -> Option<Cost> {
    let (_, a) = at.tensor(at.arg(0))?;
    let inner = match a.as_slice() {
        [] => return None,
        [.., inner, _] if op.transpose_a => *inner,
        [.., inner] => *inner,
    };
    of_product(at, inner)
}

/// `g b'`, `a' g`, where `'` transposes; transposed themselves where the argument is given so.
#[rule(gradient)]
fn gradient(op: &Matmul, at: &mut Adjoint<'_>) -> Result<Grads> {
    let [a, b] = in_one_dtype(at);
    let (flip_a, flip_b) = (op.transpose_a, op.transpose_b);
    let g = narrowed(at);
    let grad_a = match flip_a {
        false => product(at, (g, false), (b, !flip_b)),
        true => product(at, (b, flip_b), (g, true)),
    };
    let grad_b = match flip_b {
        false => product(at, (a, !flip_a), (g, false)),
        true => product(at, (g, true), (a, flip_a)),
    };
    let grad_b = of_weight(at, grad_b);
    Ok(at.summed([grad_a, grad_b])?)
}

/// `MatMul`.
#[rule(import.onnx, key = "MatMul", since = 1)]
fn import(node: &mut Node<'_>) -> Outputs {
    let (a, b) = (node.input(0)?, node.input(1)?);
    Ok(vec![numpy_product(node, a, b)?])
}

/// A product as numpy has it: a vector is a row on the left, a column on the right, and not in the result.
pub(crate) fn numpy_product(node: &mut Node<'_>, a: Value, b: Value) -> Result<Value, Problem> {
    let (mut a, mut b) = (a, b);
    let ranks = [node.dims(a)?.len(), node.dims(b)?.len()];
    if ranks.contains(&0) {
        return invalid("a matrix product of a number");
    }
    let mut gone = Vec::new();
    if ranks[0] == 1 {
        a = node.call("expand_dims", &[a], &[("axis", vec![0].into())])?;
        gone.push(-2);
    }
    if ranks[1] == 1 {
        b = node.call("expand_dims", &[b], &[("axis", vec![1].into())])?;
        gone.push(-1);
    }
    let y = node.apply("matmul", &[a, b])?;
    match gone.is_empty() {
        true => Ok(y),
        false => node.call("squeeze", &[y], &[("axis", gone.into())]),
    }
}
