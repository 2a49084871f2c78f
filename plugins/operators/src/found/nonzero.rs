//! Where a tensor is not zero.
//!
//! ```ir
//! %t = nonzero(%x)    f32[n, 3]  =>  (i64[2, 3*n], i64[1])
//! ```
//!
//! The first columns of the first result are the indices of those elements, in the order in which they lie; the second one says how
//! many there are. The other columns are zero.

use tenon_plugin_api::ir::BinaryOp;
use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;
use tenon_plugin_api::with_number;

use super::first::{bound, first};
use crate::kernel::space::row_major;

/// The indices of the elements that are not zero, a column each, and how many there are
#[op(name = "nonzero")]
pub struct Nonzero;

impl Operator for Nonzero {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        let Some(dims) = cx.tensor(0)?.dims else {
            return cx.unsupported("a tensor of unknown rank");
        };
        let columns = cx.dim_product(dims);
        let places = cx.tensor_type(DType::I64, Some(&[cx.dim(dims.len() as i64), columns]));
        Ok(cx.tuple_type(&[places, cx.static_tensor_type(DType::I64, &[1])]))
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        let x = cx.arg(0)?;
        let (rank, total) = (x.shape().len(), x.shape().iter().product::<usize>());
        let is_there: Vec<bool> = match x.dtype().is_bool() {
            true => x.bytes().iter().map(|&byte| byte != 0).collect(),
            false => with_number!(x.dtype(), T => {
                Ok(x.elements::<T>().iter().map(|&element| element != T::default()).collect())
            })?,
        };
        let found: Vec<usize> = (0..total).filter(|&at| is_there[at]).collect();
        let strides = row_major(x.shape());
        let mut places = vec![0i64; rank * total];
        for (column, &at) in found.iter().enumerate() {
            for axis in 0..rank {
                let index = at / strides[axis] as usize % x.shape()[axis];
                places[axis * total + column] = index as i64;
            }
        }
        let count = Tensor::from_vec(vec![1], vec![found.len() as i64]);
        Ok(vec![Tensor::from_vec(vec![rank, total], places), count])
    }
}

/// One element after the other.
#[rule(compute)]
fn program(_: &Nonzero, program: &mut Program) -> Result<()> {
    let [x, places, count] = [program.input(0), program.output(0), program.output(1)];
    let first = program.index(0);
    program.set(&places, |_| first);
    program.set(&count, |_| first);
    program.in_order(x.shape(), |i| {
        let value = x.at(i);
        let is_there = match x.dtype().is_bool() {
            true => value,
            false => value.binary(BinaryOp::Ne, 0),
        };
        let mut body = program.block();
        let column = body.bind("column", count.at(&[first]));
        for (axis, &index) in i.iter().enumerate() {
            body.push(places.set(&[program.index(axis as i64), column], index));
        }
        body.push(count.set(&[first], column + 1));
        program.when(is_there, body.finish())
    });
    Ok(())
}

/// `NonZero`: as many columns as there are elements that are not.
#[rule(import.onnx, key = "NonZero", since = 9)]
fn import(node: &mut Node<'_>) -> Outputs {
    let x = node.input(0)?;
    let dims = node.dims(x)?;
    let columns = node.cx().dim_product(&dims);
    let found = node.apply("nonzero", &[x])?;
    let found = node.items(found)?;
    let count = bound(node, found[1], &[columns])?[0];
    let rank = node.cx().dim(dims.len() as i64);
    Ok(vec![first(node, found[0], &[rank, count])?])
}
