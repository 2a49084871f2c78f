//! The smallest element along axes.
//!
//! ```ir
//! %y = min(%x) { axis = [1] }    f32[n, 3]  =>  f32[n]
//! ```
//!
//! What is not a number wins, as ONNX and NumPy have it. Of no elements there is no such one.

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;
use tenon_plugin_api::with_number;

use super::along::{axes, extreme, reduced};
use super::kept::shared;
use super::programs::{self, Reduction, reduces};
use crate::onnx::fold::{self, Folded};
use crate::onnx::reduce::reduction;
use crate::precision::follows_precision;
use tenon_plugin_api::program::Reducer;

/// The smallest element along axes
#[op(name = "min", pattern = "reduction")]
pub struct Min {
    /// the axes; all when not given
    axis: Option<Vec<i64>>,
    /// whether the axes stay, with extent 1
    #[attr(default = false)]
    keepdims: bool,
}

impl Operator for Min {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        reduced(cx, self.axis.as_deref(), self.keepdims)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        let axes = axes(cx, self.axis.as_deref())?;
        with_number!(cx.arg(0)?.dtype(), T => extreme(cx, &axes, T::smaller))
    }
}

reduces!(Min, Reducer::Min, is_mean = false);

follows_precision!(Min);

/// Over the places of its axes.
#[rule(layout)]
fn layout(op: &Min, at: &mut Following<'_>) -> Option<Carried> {
    at.reduction("axis", op.axis.as_deref(), op.keepdims)
}

/// `g` to the smallest elements, shared among equal ones.
#[rule(gradient)]
fn gradient(op: &Min, at: &mut Adjoint<'_>) -> Result<Grads> {
    shared(at, op.axis.as_deref())
}

/// `ReduceMin`.
#[rule(import.onnx, key = "ReduceMin", since = 1)]
fn import(node: &mut Node<'_>) -> Outputs {
    reduction(node, "min", 18)
}

/// `ReduceMin` of dimensions.
#[rule(import.onnx, key = "ReduceMin", since = 1, benefit = 2)]
fn import_dims(node: &mut Node<'_>) -> Folded {
    fold::total(node, |node, a, b| node.cx().dim_min(a, b))
}
