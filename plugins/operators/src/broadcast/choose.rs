//! Elements of one tensor or another.
//!
//! ```ir
//! %d = where(%c, %a, %b)    bool[n, 3], f32[n, 3], f32[]  =>  f32[n, 3]
//! ```

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;
use tenon_plugin_api::with_bits;

use super::simplify::equal_arguments;
use super::types::{broadcast_all, check_bool};
use crate::kernel::parallel::fill;
use crate::kernel::space::Space;
use crate::onnx::fold::{self, Folded};
use crate::precision::follows_precision;
use crate::program::elementwise::elementwise;

/// Elements of the second argument where the first is true, of the third elsewhere
#[op(name = "where", args = 3, pattern = "broadcast")]
pub struct Where;

impl Operator for Where {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        check_bool(cx, 0)?;
        let (expected, found) = (cx.tensor(1)?.dtype, cx.tensor(2)?.dtype);
        match expected == found {
            true => broadcast_all(cx, expected),
            false => Err(OpError::WrongDType { index: 2, expected: expected.to_string(), found }),
        }
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        let (dtype, shape) = cx.out()?;
        let (cond, a, b) = (cx.arg(0)?, cx.arg(1)?, cx.arg(2)?);
        let space = Space::broadcast(shape, [cond.shape(), a.shape(), b.shape()]);
        let (row, steps) = space.row();
        let rows_at_once = space.rows_at_once();
        let cond = cond.elements::<u8>();
        with_bits!(dtype, T => {
            let (a, b) = (a.elements::<T>(), b.elements::<T>());
            let mut out = vec![T::default(); shape.iter().product()];
            fill(&mut out, row * rows_at_once, &|chunk, out| {
                let rows = space.rows(chunk * rows_at_once);
                for (out, offsets) in out.chunks_exact_mut(row).zip(rows) {
                    for (i, out) in out.iter_mut().enumerate() {
                        let at = |k: usize| (offsets[k] + i as isize * steps[k]) as usize;
                        *out = if cond[at(0)] != 0 { a[at(1)] } else { b[at(2)] };
                    }
                }
            });
            Ok(vec![Tensor::from_vec_as(dtype, shape.to_vec(), out)])
        })
    }
}

/// One element after the other; both are read.
#[rule(compute)]
fn program(_: &Where, program: &mut Program) -> Result<()> {
    elementwise(program, |args| args[0].select(args[1], args[2]))
}

/// `where(c, x, x) => x`, `where(true, x, y) => x`, `where(false, x, y) => y`.
#[rule(simplify)]
fn simplify(_: &Where, at: &mut Site<'_>) -> Option<Expr> {
    equal_arguments(at).or_else(|| {
        let [condition, then, otherwise] = at.args()?;
        let is_true = at.splat(condition)? != 0.0;
        at.same_type(if is_true { then } else { otherwise })
    })
}

follows_precision!(Where);

/// `g` where the condition holds, and elsewhere.
#[rule(gradient)]
fn gradient(_: &Where, at: &mut Adjoint<'_>) -> Result<Grads> {
    let (condition, g) = (at.arg(0), at.grad());
    let zero = at.number_like(g, 0.0);
    let a = at.apply("where", &[condition, g, zero]);
    let b = at.apply("where", &[condition, zero, g]);
    let a = at.sum_to(a, at.arg(1))?;
    let b = at.sum_to(b, at.arg(2))?;
    Ok([Grad::Zero, Grad::Of(a), Grad::Of(b)].into())
}

crate::onnx::same!(Where is "Where" since 9);

/// `Where` of dimensions.
#[rule(import.onnx, key = "Where", since = 9, benefit = 2)]
fn import_dims(node: &mut Node<'_>) -> Folded {
    fold::fold(node, |node, inputs| Ok(chosen(node, inputs)))
}

fn chosen(node: &Node<'_>, inputs: &[Known]) -> Option<Known> {
    let [condition, then, otherwise] = inputs else { return None };
    let shape = fold::broadcast(&[condition, then, otherwise])?;
    let pick = |place: usize| {
        let is_true = fold::truth(node, fold::at(condition, &shape, place))?;
        Some(fold::at(if is_true { then } else { otherwise }, &shape, place))
    };
    let elements = (0..fold::count(&shape)?).map(pick).collect::<Option<_>>()?;
    (then.dtype == otherwise.dtype).then_some(Known { dtype: then.dtype, shape, elements })
}
