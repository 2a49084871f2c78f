//! A product of two tensors and the sum with a third, rounded once.
//!
//! ```ir
//! %d = fma(%a, %b, %c)    f32[n, 3], f32[], f32[3]  =>  f32[n, 3]
//! ```
//!
//! The operation of IEEE 754-2008, 5.4.1. A processor that has no instruction for it rounds the product as well.

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;

use super::types::broadcast_all;
use crate::kernel::parallel::fill;
use crate::kernel::space::Space;
use crate::program::elementwise::elementwise;

/// a * b + c, rounded once
#[op(name = "fma", args = 3, pattern = "broadcast")]
pub struct Fma;

impl Operator for Fma {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        cx.check_same_dtype(1)?;
        cx.check_same_dtype(2)?;
        let found = cx.tensor(0)?.dtype;
        match found {
            DType::F32 | DType::F64 => broadcast_all(cx, found),
            _ => Err(OpError::WrongDType { index: 0, expected: "f32 or f64".into(), found }),
        }
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        match cx.arg(0)?.dtype() {
            DType::F64 => each(cx, f64::mul_add),
            _ => each(cx, f32::mul_add),
        }
    }
}

/// Elements of three tensors put through a function.
fn each<T: Element + Default>(cx: &EvalCx<'_>, f: fn(T, T, T) -> T) -> Result<Vec<Tensor>> {
    let (dtype, shape) = cx.out()?;
    let [a, b, c] = [cx.arg(0)?, cx.arg(1)?, cx.arg(2)?];
    let space = Space::broadcast(shape, [a.shape(), b.shape(), c.shape()]);
    let (row, steps) = space.row();
    let rows_at_once = space.rows_at_once();
    let all = [a.elements::<T>(), b.elements::<T>(), c.elements::<T>()];
    let mut out = vec![T::default(); shape.iter().product()];
    fill(&mut out, row * rows_at_once, &|chunk, out| {
        let rows = space.rows(chunk * rows_at_once);
        for (out, offsets) in out.chunks_exact_mut(row).zip(rows) {
            for (i, out) in out.iter_mut().enumerate() {
                let at = |k: usize| all[k][(offsets[k] + i as isize * steps[k]) as usize];
                *out = f(at(0), at(1), at(2));
            }
        }
    });
    Ok(vec![Tensor::from_vec_as(dtype, shape.to_vec(), out)])
}

/// One element after the other.
#[rule(compute)]
fn program(_: &Fma, program: &mut Program) -> Result<()> {
    elementwise(program, |args| args[0].fma(args[1], args[2]))
}

/// `g b`, `g a`, `g`.
#[rule(gradient)]
fn gradient(_: &Fma, at: &mut Adjoint<'_>) -> Result<Grads, PassError> {
    let (a, b, g) = (at.arg(0), at.arg(1), at.grad());
    let [by_a, by_b] = [at.mul(g, b), at.mul(g, a)];
    at.summed([by_a, by_b, g])
}
