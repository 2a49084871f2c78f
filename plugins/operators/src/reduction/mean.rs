//! The mean along axes.
//!
//! ```ir
//! %y = mean(%x) { axis = [1] }    f32[n, 3]  =>  f32[n]
//! ```

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;
use tenon_plugin_api::with_float;

use super::along::{axes, reduced, rows, sum_row};
use super::kept::kept;
use super::programs::{self, Reduction, reduces};
use crate::onnx::reduce::reduction;
use tenon_plugin_api::program::Reducer;

/// Mean along axes
#[op(name = "mean", pattern = "reduction")]
pub struct Mean {
    /// the axes; all when not given
    axis: Option<Vec<i64>>,
    /// whether the axes stay, with extent 1
    #[attr(default = false)]
    keepdims: bool,
}

impl Operator for Mean {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        cx.check_float(0)?;
        reduced(cx, self.axis.as_deref(), self.keepdims)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        let axes = axes(cx, self.axis.as_deref())?;
        with_float!(cx.arg(0)?.dtype(), T => {
            rows(cx, &axes, &|row: &[T]| T::from_f64(sum_row(row) / row.len() as f64))
        })
    }
}

reduces!(Mean, Reducer::Sum, is_mean = true);

/// Over the places of its axes.
#[rule(layout)]
fn layout(op: &Mean, at: &mut Following<'_>) -> Option<Carried> {
    at.reduction("axis", op.axis.as_deref(), op.keepdims)
}

/// `g / count`, repeated.
#[rule(gradient)]
fn gradient(op: &Mean, at: &mut Adjoint<'_>) -> Result<Grads> {
    let (axes, g) = kept(at, op.axis.as_deref(), at.grad())?;
    let one = at.number_like(at.arg(0), 1.0);
    let ones = at.broadcast_like(one, at.arg(0))?;
    let count = at.reduce("sum", ones, &axes, true);
    let g = at.div(g, count);
    Ok(Grads::of([at.broadcast_like(g, at.arg(0))?]))
}

/// `ReduceMean`.
#[rule(import.onnx, key = "ReduceMean", since = 1)]
fn import(node: &mut Node<'_>) -> Outputs {
    reduction(node, "mean", 18)
}
