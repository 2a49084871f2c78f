//! Sums of all elements so far along an axis.
//!
//! ```ir
//! %y = cumsum(%x) { axis = 1 }    f32[n, 3]  =>  f32[n, 3]
//! ```
//!
//! `y[a, b] = x[a, 0] + x[a, 1] + … + x[a, b]`

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::program::Reducer;
use tenon_plugin_api::rule::prelude::*;

use super::running::{Running, along, import_running, running_type};

/// The sum of the elements up to each
#[op(name = "cumsum")]
pub struct Cumsum {
    /// the axis
    #[attr(default = 0)]
    axis: i64,
    /// whether an element is left out at its own place
    #[attr(default = false)]
    exclusive: bool,
    /// whether it goes from the end to the start
    #[attr(default = false)]
    reverse: bool,
}

impl Cumsum {
    fn running(&self) -> Running {
        Running { axis: self.axis, exclusive: self.exclusive, reverse: self.reverse }
    }
}

impl Operator for Cumsum {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        running_type(cx, self.axis)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        along(cx, &self.running(), false)
    }
}

/// One element after the other.
#[rule(compute)]
fn program(op: &Cumsum, program: &mut Program) -> Result<()> {
    op.running().program(program, Reducer::Sum)
}

/// The sums of `g` from the other end.
#[rule(gradient)]
fn gradient(op: &Cumsum, at: &mut Adjoint<'_>) -> Grads {
    let attrs = [
        ("axis", op.axis.into()),
        ("exclusive", op.exclusive.into()),
        ("reverse", (!op.reverse).into()),
    ];
    Grads::of([at.apply_with("cumsum", &[at.grad()], &attrs)])
}

/// `CumSum`, along an axis that is known.
#[rule(import.onnx, key = "CumSum", since = 11)]
fn import(node: &mut Node<'_>) -> Outputs {
    import_running(node, "cumsum")
}
