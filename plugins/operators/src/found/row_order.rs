//! The order of rows.
//!
//! ```ir
//! %t = row_order(%x)    f32[n, 3]  =>  (i64[n], bool[n])
//! ```
//!
//! The first result says which row comes first, second, and so on, of equal ones the first; the second one whether each is
//! another than the one before it. Rows are compared as words are, and what is not a number is above all numbers.

use std::cmp::Ordering;

use tenon_plugin_api::ir::BinaryOp;
use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::program::{Block, Buffer, Extent, Scalar};
use tenon_plugin_api::rule::prelude::*;
use tenon_plugin_api::with_number;

/// The rows of a matrix in ascending order, by their places, and which of them differ from the one before
#[op(name = "row_order")]
pub struct RowOrder;

impl Operator for RowOrder {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        let tensor = cx.tensor_of_rank(0, 2)?;
        if tensor.dtype.is_bool() {
            let expected = "a number".into();
            return Err(OpError::WrongDType { index: 0, expected, found: tensor.dtype });
        }
        let rows = tensor.dims.map(|dims| [dims[0]]);
        let rows = rows.as_ref().map(|rows| &rows[..]);
        let [order, starts] = [DType::I64, DType::BOOL].map(|dtype| cx.tensor_type(dtype, rows));
        Ok(cx.tuple_type(&[order, starts]))
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        let x = cx.arg(0)?;
        let &[rows, width] = x.shape() else {
            return Err(OpError::Unsupported("two dimensions are expected".into()));
        };
        with_number!(x.dtype(), T => {
            let elements = x.elements::<T>();
            let compare = |&a: &usize, &b: &usize| {
                let pairs = (0..width).map(|at| (elements[a * width + at], elements[b * width + at]));
                let orders = pairs.map(|(a, b)| {
                    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
                });
                orders.fold(Ordering::Equal, Ordering::then)
            };
            let mut order: Vec<usize> = (0..rows).collect();
            order.sort_by(compare);
            let differs = |at: usize| at == 0 || compare(&order[at - 1], &order[at]).is_ne();
            let starts = (0..rows).map(|at| u8::from(differs(at))).collect();
            let places = order.iter().map(|&place| place as i64).collect();
            Ok(vec![
                Tensor::from_vec(vec![rows], places),
                Tensor::from_vec_as(DType::BOOL, vec![rows], starts),
            ])
        })
    }
}

/// Runs of rows that are in order are merged to longer ones, until there is one.
#[rule(compute)]
fn program(_: &RowOrder, program: &mut Program) -> Result<()> {
    let (x, order, starts) = (program.input(0), program.output(0), program.output(1));
    let rows = x.shape()[0];
    let merged = program.temporary("merged", DType::I64, &[rows]);
    let length = program.temporary("length", DType::I64, &[1]);
    let (count, first) = (rows.index(program), program.index(0));
    program.set(&order, |i| i[0]);
    program.set(&length, |_| first + 1);
    // No memory has more rows than two to the power of that.
    program.run(program.in_turn(program.index(47), |_| {
        let run = length.at(&[first]);
        let mut pass = program.block();
        let next = pass.local("next", DType::I64, &[2]);
        pass.push(program.in_turn(count, |at| {
            let pair = run * 2;
            let begin = at / pair * pair;
            let mut step = program.block();
            let start = [next.set(&[first], begin), next.set(&[first + 1], begin + run)];
            let is_first = (at % pair).binary(BinaryOp::Eq, 0);
            step.push(program.when(is_first, program.seq(&start)));
            let ends = [(begin + run).min(count), (begin + pair).min(count)];
            let taken = merge(&mut step, &x, &order, &next, ends);
            step.push(merged.set(&[at], order.at(&[taken])));
            step.finish()
        }));
        pass.push(program.in_turn(count, |at| order.set(&[at], merged.at(&[at]))));
        pass.push(length.set(&[first], run * 2));
        program.when(run.lt(count), pass.finish())
    }));
    program.run(program.in_turn(count, |at| {
        let mut body = program.block();
        let rows = [(at - 1).max(0), at].map(|at| order.at(&[at]));
        let differs = compare(&mut body, &x, rows).binary(BinaryOp::Ne, 0);
        body.push(starts.set(&[at], at.lt(1).binary(BinaryOp::Or, differs)));
        body.finish()
    }));
    Ok(())
}

/// Takes the lesser of the next rows of two runs, which end before `ends`; where it stands in the order.
fn merge<'p>(
    body: &mut Block<'p>,
    x: &Buffer<'p>,
    order: &Buffer<'p>,
    next: &Buffer<'p>,
    ends: [Scalar<'p>; 2],
) -> Scalar<'p> {
    let program = x.program();
    let (zero, one) = (program.index(0), program.index(1));
    let left = body.bind("left", next.at(&[zero]));
    let right = body.bind("right", next.at(&[one]));
    let is_right = body.local("is_right", DType::I64, &[1]);
    body.push(is_right.set(&[zero], left.ge(ends[0]).select(one, zero)));
    let mut both = program.block();
    let order = compare(&mut both, x, [left, right].map(|at| order.at(&[at])));
    both.push(is_right.set(&[zero], order.gt(0).select(one, zero)));
    body.push(program.when(left.lt(ends[0]).and(right.lt(ends[1])), both.finish()));
    let is_right = body.bind("taken", is_right.at(&[zero]));
    body.push(next.set(&[zero], left + 1 - is_right));
    body.push(next.set(&[one], right + is_right));
    body.bind("at", is_right.gt(0).select(right, left))
}

/// 1 where the first of two rows comes behind the second, -1 where it comes before, 0 where they are equal.
fn compare<'p>(body: &mut Block<'p>, x: &Buffer<'p>, rows: [Scalar<'p>; 2]) -> Scalar<'p> {
    let program = x.program();
    let first = program.index(0);
    let rows = ["row", "other"].iter().zip(rows).map(|(name, row)| body.bind(name, row));
    let rows: Vec<Scalar<'p>> = rows.collect();
    let result = body.local("order", DType::I64, &[1]);
    body.push(result.set(&[first], first));
    let is_above = |a: Scalar<'p>, b: Scalar<'p>| {
        let is_above = a.gt(b);
        if !a.dtype().is_float() {
            return is_above;
        }
        let is_nan = a.binary(BinaryOp::Ne, a);
        is_above.binary(BinaryOp::Or, is_nan.and(b.binary(BinaryOp::Eq, b)))
    };
    let width = x.shape()[1].index(program);
    body.push(program.in_turn(width, |at| {
        let [a, b] = [0, 1].map(|side| x.wide(&[rows[side], at]));
        let below = is_above(b, a).select(first - 1, first);
        let order = is_above(a, b).select(first + 1, below);
        let is_open = result.at(&[first]).binary(BinaryOp::Eq, 0);
        program.when(is_open, result.set(&[first], order))
    }));
    result.at(&[first])
}
