//! The mean of each window.
//!
//! ```ir
//! %y = nn.avg_pool2d(%x) { pool_size = [2, 2], strides = [2, 2] }    f32[n, 8, 32, 32]  =>  f32[n, 8, 16, 16]
//! ```

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;
use tenon_plugin_api::with_float;

use super::by_axes;
use super::layout::follow;
use super::programs::{self, Method, Windows};
use super::taps::Taps;
use super::windows::{Window, pool};
use crate::onnx::pool::pool;
use crate::precision::follows_precision;

/// The mean of each window
#[op(name = "nn.avg_pool2d", pattern = "out_fusable")]
pub struct AvgPool2d {
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
    /// whether padding counts as zeros
    #[attr(default = false)]
    count_include_pad: bool,
}

impl Operator for AvgPool2d {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        cx.check_float(0)?;
        pool!(self).infer(cx)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        with_float!(cx.arg(0)?.dtype(), T => pool!(self).evaluate(cx, &|window: Window<'_, T>| {
            let sum = window.elements().fold(0.0, |sum: f64, x| sum + x.to_f64());
            let count = match self.count_include_pad {
                true => window.rows.padded * window.columns.padded,
                false => window.rows.count * window.columns.count,
            };
            T::from_f64(sum / count as f64)
        }))
    }
}

/// One element after the other.
#[rule(compute)]
fn program(op: &AvgPool2d, program: &mut Program) {
    programs::windows(program, &windows(op));
}

fn windows(op: &AvgPool2d) -> Windows<'_> {
    Windows {
        method: Method::Mean { counts_padding: op.count_include_pad },
        layout: &op.layout,
        size: op.pool_size,
        strides: op.strides,
        padding: op.padding,
        dilation: op.dilation,
        ceil_mode: op.ceil_mode,
    }
}

follows_precision!(AvgPool2d);

/// Large windows that overlap: one axis after the other.
#[rule(simplify)]
fn simplify(op: &AvgPool2d, at: &mut Site<'_>) -> Option<Expr> {
    by_axes::split(&pool!(op), "nn.avg_pool2d", at)
}

/// In the layout that its argument has.
#[rule(layout)]
fn layout(op: &AvgPool2d, at: &mut Following<'_>) -> Option<Carried> {
    follow(at, &op.layout)
}

/// `g / count` to each tap, where the count is that of the elements, or of the places of the padded data.
#[rule(gradient)]
fn gradient(op: &AvgPool2d, at: &mut Adjoint<'_>) -> Result<Grads> {
    let taps = Taps::of(&pool!(op), at)?;
    let [rows, columns] = [0, 1].map(|axis| taps.counts(axis, op.count_include_pad));
    let (dtype, _) = at.tensor(at.arg(0))?;
    let counts = rows.iter().flat_map(|row| columns.iter().map(move |column| row * column));
    let bytes: Option<Vec<Vec<u8>>> = counts.map(|count| dtype.encode(count as f64)).collect();
    let Some(bytes) = bytes else {
        return Err(OpError::Unsupported("its element type has no numbers".into()));
    };
    let ty = at.with_cx(|cx| cx.static_tensor_type(dtype, &taps.out[2..]));
    let counts = at.constant(ty, &bytes.concat());
    let share = at.div(at.grad(), counts);
    let parts = taps.all().into_iter().map(|tap| (tap, share)).collect();
    Ok(Grads::of([taps.given_back(at, parts)?]))
}

/// `AveragePool`.
#[rule(import.onnx, key = "AveragePool", since = 7)]
fn import(node: &mut Node<'_>) -> Outputs {
    pool(node, "nn.avg_pool2d")
}
