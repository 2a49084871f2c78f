//! Where the smallest element along an axis is.
//!
//! ```ir
//! %y = argmin(%x) { axis = 1 }    f32[n, 3]  =>  i64[n]
//! ```
//!
//! Of what is not a number it is the first, as NumPy has it.

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;
use tenon_plugin_api::with_number;

use super::along::{place, placed};
use super::programs;
use crate::onnx::reduce::arg;

/// The index of the smallest element along an axis, the first of equal ones
#[op(name = "argmin", pattern = "reduction")]
pub struct Argmin {
    /// the axis
    #[attr(default = 0)]
    axis: i64,
    /// whether the axes stay, with extent 1
    #[attr(default = false)]
    keepdims: bool,
}

impl Operator for Argmin {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        placed(cx, self.axis, self.keepdims)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        with_number!(cx.arg(0)?.dtype(), T => place(cx, self.axis, |x: T, y: T| x < y))
    }
}

/// One result after the other.
#[rule(compute)]
fn program(op: &Argmin, program: &mut Program) -> Result<()> {
    programs::extreme(program, op.axis, false)
}

/// Nothing: places have no derivative.
#[rule(gradient)]
fn gradient(_: &Argmin, at: &mut Adjoint<'_>) -> Grads {
    at.nothing()
}

/// `ArgMin`.
#[rule(import.onnx, key = "ArgMin", since = 1)]
fn import(node: &mut Node<'_>) -> Outputs {
    arg(node, "argmin")
}
