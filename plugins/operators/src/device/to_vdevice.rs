//! The same tensor on another device.
//!
//! ```ir
//! %y = to_vdevice(%x) { dst = "cuda:0" }    f32[n, 3] on "cpu:0"  =>  f32[n, 3] on "cuda:0"
//! ```
//!
//! Of a tensor that says no device it says where it lies, and all that is computed of it lies there.

use tenon_plugin_api::ir::device_problem;
use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;

/// The same tensor on another device
#[op(
    name = "to_vdevice",
    aliases = ["relax.to_vdevice", "hint_on_device", "relax.hint_on_device"]
)]
pub struct ToVdevice {
    /// the device, such as "cuda:0"
    dst: String,
}

impl Operator for ToVdevice {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        cx.tensor(0)?;
        if let Some(problem) = device_problem(&self.dst) {
            return cx.bad_attr("dst", &self.dst, problem);
        }
        Ok(cx.on_device(cx.arg(0)?, Some(cx.symbol(&self.dst))))
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        Ok(vec![cx.arg(0)?.clone()])
    }
}

/// Of what lies there already it is that.
#[rule(simplify)]
fn simplify(_: &ToVdevice, at: &mut Site<'_>) -> Option<Expr> {
    let x = at.arg(0);
    at.same_type(x)
}

/// `g` on the device of `x`.
#[rule(gradient)]
fn gradient(_: &ToVdevice, at: &mut Adjoint<'_>) -> Grads {
    let (x, g) = (at.arg(0), at.grad());
    let device = at.body().ty(x).and_then(|ty| at.terms().device(ty));
    let device = device.map(|device| at.terms().str(device).to_owned());
    let back = match device {
        Some(device) => {
            let attrs = at.with_cx(|cx| cx.attrs(&[("dst", device.as_str().into())]));
            at.call_op("to_vdevice", &[g], attrs)
        }
        None => g,
    };
    Grads::of([back])
}
