//! The largest element of each window.
//!
//! ```ir
//! %y = nn.max_pool2d(%x) { pool_size = [2, 2], strides = [2, 2] }    f32[n, 8, 32, 32]  =>  f32[n, 8, 16, 16]
//! ```
//!
//! What is not a number wins. A window whose taps meet padding alone gives the least value.

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;
use tenon_plugin_api::with_number;

use super::by_axes;
use super::layout::follow;
use super::programs::{self, Method, Windows};
use super::taps::{Taps, empty_window};
use super::windows::{Window, pool};
use crate::onnx::pool::{self, pool};
use crate::precision::follows_precision;

/// The largest element of each window
#[op(name = "nn.max_pool2d", pattern = "out_fusable")]
pub struct MaxPool2d {
    /// extent of the window
    pool_size: [i64; 2],
    /// step of the window
    #[attr(default = [1, 1])]
    strides: [i64; 2],
    /// top, left, bottom, right
    #[attr(default = [0, 0, 0, 0])]
    padding: [i64; 4],
    /// distance of the taps
    #[attr(default = [1, 1])]
    dilation: [i64; 2],
    /// whether the last window may reach over the end
    #[attr(default = false)]
    ceil_mode: bool,
    /// NCHW, NHWC, NCHW16c, …
    #[attr(default = "NCHW")]
    layout: Layout,
}

impl Operator for MaxPool2d {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        pool!(self).infer(cx)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        with_number!(cx.arg(0)?.dtype(), T => pool!(self).evaluate(cx, &|window: Window<'_, T>| {
            window.elements().fold(T::from_f64(f64::NEG_INFINITY), T::larger)
        }))
    }
}

/// One element after the other.
#[rule(compute)]
fn program(op: &MaxPool2d, program: &mut Program) {
    programs::windows(program, &windows(op));
}

fn windows(op: &MaxPool2d) -> Windows<'_> {
    Windows {
        method: Method::Max,
        layout: &op.layout,
        size: op.pool_size,
        strides: op.strides,
        padding: op.padding,
        dilation: op.dilation,
        ceil_mode: op.ceil_mode,
    }
}

follows_precision!(MaxPool2d);

/// Large windows that overlap: one axis after the other.
#[rule(simplify)]
fn simplify(op: &MaxPool2d, at: &mut Site<'_>) -> Option<Expr> {
    by_axes::split(&pool!(op), "nn.max_pool2d", at)
}

/// In the layout that its argument has.
#[rule(layout)]
fn layout(op: &MaxPool2d, at: &mut Following<'_>) -> Option<Carried> {
    follow(at, &op.layout)
}

/// `g` to the taps that met the largest element, shared among equal ones.
#[rule(gradient)]
fn gradient(op: &MaxPool2d, at: &mut Adjoint<'_>) -> Result<Grads> {
    let taps = Taps::of(&pool!(op), at)?;
    let x = at.arg(0);
    let widths = taps.widths().concat();
    let padded = match widths.iter().all(|&width| width == 0) {
        true => x,
        false => {
            let attrs = [("pad_width", widths.into()), ("value", f64::NEG_INFINITY.into())];
            at.apply_with("nn.pad", &[x], &attrs)
        }
    };
    let mut masks = Vec::new();
    let mut count: Option<Expr> = None;
    for tap in taps.all() {
        let taken = taps.taken(at, padded, tap);
        let mask = at.indicator("equal", taken, at.value());
        count = Some(count.map_or(mask, |count| at.add(count, mask)));
        masks.push((tap, mask));
    }
    let share = at.div(at.grad(), count.ok_or_else(empty_window)?);
    let parts = masks.into_iter().map(|(tap, mask)| (tap, at.mul(mask, share))).collect();
    Ok(Grads::of([taps.given_back(at, parts)?]))
}

/// `MaxPool`, and where the largest elements are.
#[rule(import.onnx, key = "MaxPool", since = 1)]
fn import(node: &mut Node<'_>) -> Outputs {
    let is_column_major = node.flag("storage_order", false)?;
    let mut outputs = pool(node, "nn.max_pool2d")?;
    if node.output_count() > 1 {
        let x = node.input(0)?;
        let (_, window, around) = pool::windows(node, x)?;
        if !around.is_empty() {
            return unsupported(
                "the places of elements with automatic padding of a symbolic dimension",
            );
        }
        let attrs = [
            ("pool_size", window.kernel.clone().into()),
            ("padding", window.padding().into()),
            ("strides", window.strides.into()),
            ("dilation", window.dilations.into()),
            ("ceil_mode", node.flag("ceil_mode", false)?.into()),
            ("column_major", is_column_major.into()),
        ];
        outputs.push(node.call("nn.max_pool_indices", &[x], &attrs)?);
    }
    Ok(outputs)
}
