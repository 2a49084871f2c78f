//! The sum along axes.
//!
//! ```ir
//! %y = sum(%x) { axis = [1] }    f32[n, 3]  =>  f32[n]
//! ```

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;
use tenon_plugin_api::with_number;

use super::along::{axes, reduced, rows, sum_row};
use super::kept::kept;
use super::programs::{self, Reduction, reduces};
use crate::onnx::fold::{self, Folded};
use crate::onnx::reduce::reduction;
use tenon_plugin_api::program::Reducer;

/// Sum along axes
#[op(name = "sum", pattern = "reduction")]
pub struct Sum {
    /// the axes; all when not given
    axis: Option<Vec<i64>>,
    /// whether the axes stay, with extent 1
    #[attr(default = false)]
    keepdims: bool,
}

impl Operator for Sum {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        reduced(cx, self.axis.as_deref(), self.keepdims)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        let axes = axes(cx, self.axis.as_deref())?;
        with_number!(cx.arg(0)?.dtype(), T => rows(cx, &axes, &|row: &[T]| T::narrow(sum_row(row))))
    }
}

reduces!(Sum, Reducer::Sum, is_mean = false);

/// Over the places of its axes.
#[rule(layout)]
fn layout(op: &Sum, at: &mut Following<'_>) -> Option<Carried> {
    at.reduction("axis", op.axis.as_deref(), op.keepdims)
}

/// `g`, repeated.
#[rule(gradient)]
fn gradient(op: &Sum, at: &mut Adjoint<'_>) -> Result<Grads> {
    let (_, g) = kept(at, op.axis.as_deref(), at.grad())?;
    Ok(Grads::of([at.broadcast_like(g, at.arg(0))?]))
}

/// `ReduceSum`.
#[rule(import.onnx, key = "ReduceSum", since = 1)]
fn import(node: &mut Node<'_>) -> Outputs {
    reduction(node, "sum", 13)
}

/// `ReduceSum` of dimensions.
#[rule(import.onnx, key = "ReduceSum", since = 1, benefit = 2)]
fn import_dims(node: &mut Node<'_>) -> Folded {
    fold::total(node, |node, a, b| node.cx().dim_add(a, b))
}
