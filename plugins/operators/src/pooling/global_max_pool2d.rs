//! The largest element of each plane.
//!
//! ```ir
//! %y = nn.global_max_pool2d(%x)    f32[n, 8, 32, 32]  =>  f32[n, 8, 1, 1]
//! ```
//!
//! What is not a number wins.

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;
use tenon_plugin_api::with_number;

use super::layout::follow;
use super::programs;
use super::taps::check_layout;
use super::windows::{Window, evaluate_global, infer_global};
use crate::onnx::pool::global;
use crate::precision::follows_precision;

/// The largest element of each channel
#[op(name = "nn.global_max_pool2d", pattern = "out_fusable")]
pub struct GlobalMaxPool2d {
    /// NCHW, NHWC, NCHW16c, …
    #[attr(default = "NCHW")]
    layout: Layout,
}

impl Operator for GlobalMaxPool2d {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        infer_global(cx)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        with_number!(cx.arg(0)?.dtype(), T => evaluate_global(cx, &self.layout, &|window: Window<'_, T>| {
            window.elements().reduce(T::larger).unwrap_or_default()
        }))
    }
}

/// One element after the other.
#[rule(compute)]
fn program(op: &GlobalMaxPool2d, program: &mut Program) {
    programs::whole(program, &op.layout, true);
}

follows_precision!(GlobalMaxPool2d);

/// In the layout that its argument has.
#[rule(layout)]
fn layout(op: &GlobalMaxPool2d, at: &mut Following<'_>) -> Option<Carried> {
    follow(at, &op.layout)
}

/// `g` to the largest element, shared among equal ones.
#[rule(gradient)]
fn gradient(op: &GlobalMaxPool2d, at: &mut Adjoint<'_>) -> Result<Grads> {
    check_layout(&op.layout)?;
    let mask = at.indicator("equal", at.arg(0), at.value());
    let count = at.reduce("sum", mask, &[2, 3], true);
    let share = at.div(at.grad(), count);
    Ok(Grads::of([at.mul(mask, share)]))
}

/// `GlobalMaxPool`.
#[rule(import.onnx, key = "GlobalMaxPool", since = 1)]
fn import(node: &mut Node<'_>) -> Outputs {
    global(node, "nn.global_max_pool2d", "max")
}
