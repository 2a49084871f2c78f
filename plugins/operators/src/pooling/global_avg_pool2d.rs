//! The mean of each plane.
//!
//! ```ir
//! %y = nn.global_avg_pool2d(%x)    f32[n, 8, 32, 32]  =>  f32[n, 8, 1, 1]
//! ```

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;
use tenon_plugin_api::with_float;

use super::layout::follow;
use super::programs;
use super::taps::check_layout;
use super::windows::{Window, evaluate_global, infer_global};
use crate::onnx::pool::global;
use crate::precision::follows_precision;

/// The mean of each channel
#[op(name = "nn.global_avg_pool2d", pattern = "out_fusable")]
pub struct GlobalAvgPool2d {
    /// NCHW, NHWC, NCHW16c, …
    #[attr(default = "NCHW")]
    layout: Layout,
}

impl Operator for GlobalAvgPool2d {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        cx.check_float(0)?;
        infer_global(cx)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        with_float!(cx.arg(0)?.dtype(), T => evaluate_global(cx, &self.layout, &|window: Window<'_, T>| {
            let sum = window.elements().fold(0.0, |sum: f64, x| sum + x.to_f64());
            T::from_f64(sum / (window.rows.count * window.columns.count) as f64)
        }))
    }
}

/// One element after the other.
#[rule(compute)]
fn program(op: &GlobalAvgPool2d, program: &mut Program) {
    programs::whole(program, &op.layout, false);
}

follows_precision!(GlobalAvgPool2d);

/// In the layout that its argument has.
#[rule(layout)]
fn layout(op: &GlobalAvgPool2d, at: &mut Following<'_>) -> Option<Carried> {
    follow(at, &op.layout)
}

/// `g / count` everywhere.
#[rule(gradient)]
fn gradient(op: &GlobalAvgPool2d, at: &mut Adjoint<'_>) -> Result<Grads> {
    check_layout(&op.layout)?;
    let shape = at.extents(at.arg(0))?;
    let share = at.scale(at.grad(), 1.0 / (shape[2] * shape[3]) as f64);
    Ok(Grads::of([at.broadcast_like(share, at.arg(0))?]))
}

/// `GlobalAveragePool`.
#[rule(import.onnx, key = "GlobalAveragePool", since = 1)]
fn import(node: &mut Node<'_>) -> Outputs {
    global(node, "nn.global_avg_pool2d", "mean")
}
