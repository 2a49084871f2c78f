//! Products of all elements so far along an axis.
//!
//! ```ir
//! %y = cumprod(%x) { axis = 1 }    f32[n, 3]  =>  f32[n, 3]
//! ```
//!
//! `y[a, b] = x[a, 0] * x[a, 1] * … * x[a, b]`

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::program::Reducer;
use tenon_plugin_api::rule::prelude::*;

use super::running::{Running, along, import_running, running_type};

/// The product of the elements up to each
#[op(name = "cumprod")]
pub struct Cumprod {
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

impl Cumprod {
    fn running(&self) -> Running {
        Running { axis: self.axis, exclusive: self.exclusive, reverse: self.reverse }
    }
}

impl Operator for Cumprod {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        running_type(cx, self.axis)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        along(cx, &self.running(), true)
    }
}

/// One element after the other.
#[rule(compute)]
fn program(op: &Cumprod, program: &mut Program) -> Result<()> {
    op.running().program(program, Reducer::Product)
}

/// `CumProd`, along an axis that is known.
#[rule(import.onnx, key = "CumProd", since = 26)]
fn import(node: &mut Node<'_>) -> Outputs {
    import_running(node, "cumprod")
}
