//! The product along axes.
//!
//! ```ir
//! %y = prod(%x) { axis = [1] }    f32[n, 3]  =>  f32[n]
//! ```

use tenon_plugin_api::op::number::Sum;
use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;
use tenon_plugin_api::with_number;

use super::along::{axes, reduced, rows};
use super::kept::kept;
use super::programs::{self, Reduction, reduces};
use crate::onnx::fold::{self, Folded};
use crate::onnx::reduce::reduction;
use tenon_plugin_api::program::Reducer;

/// Product along axes
#[op(name = "prod", pattern = "reduction")]
pub struct Prod {
    /// the axes; all when not given
    axis: Option<Vec<i64>>,
    /// whether the axes stay, with extent 1
    #[attr(default = false)]
    keepdims: bool,
}

impl Operator for Prod {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        reduced(cx, self.axis.as_deref(), self.keepdims)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        let axes = axes(cx, self.axis.as_deref())?;
        with_number!(cx.arg(0)?.dtype(), T => rows(cx, &axes, &|row: &[T]| {
            T::narrow(row.iter().fold(<T as Number>::Sum::ONE, |product, &x| Sum::mul(product, x.widen())))
        }))
    }
}

reduces!(Prod, Reducer::Product, is_mean = false);

/// Over the places of its axes.
#[rule(layout)]
fn layout(op: &Prod, at: &mut Following<'_>) -> Option<Carried> {
    at.reduction("axis", op.axis.as_deref(), op.keepdims)
}

/// `g` times the product of the other elements: `y / x`, and where one element alone is 0, to that one the
/// product of the others.
#[rule(gradient)]
fn gradient(op: &Prod, at: &mut Adjoint<'_>) -> Result<Grads> {
    let x = at.arg(0);
    let (axes, g) = kept(at, op.axis.as_deref(), at.grad())?;
    let (_, y) = kept(at, op.axis.as_deref(), at.value())?;
    let zero = at.number_like(x, 0.0);
    let is_zero = at.apply("equal", &[x, zero]);
    let one = at.number_like(x, 1.0);
    let filled = at.apply("where", &[is_zero, one, x]);
    let rest = at.reduce("prod", filled, &axes, true);
    let zeros = at.indicator("equal", x, zero);
    let count = at.reduce("sum", zeros, &axes, true);
    let alone = at.masked("equal", count, one, rest);
    let quotient = at.div(y, filled);
    let others = at.apply("where", &[is_zero, alone, quotient]);
    Ok(Grads::of([at.mul(g, others)]))
}

/// `ReduceProd`.
#[rule(import.onnx, key = "ReduceProd", since = 1)]
fn import(node: &mut Node<'_>) -> Outputs {
    reduction(node, "prod", 18)
}

/// `ReduceProd` of dimensions.
#[rule(import.onnx, key = "ReduceProd", since = 1, benefit = 2)]
fn import_dims(node: &mut Node<'_>) -> Folded {
    fold::total(node, |node, a, b| node.cx().dim_mul(a, b))
}
