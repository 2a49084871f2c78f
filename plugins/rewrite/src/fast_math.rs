//! Replaces arithmetic by cheaper arithmetic that rounds differently.
//!
//! ```ir
//! divide(%x, const(f32[], 3))       =>  multiply(%x, const(f32[], 0.33333334))
//! divide(%x, sqrt(%y))              =>  multiply(%x, rsqrt(%y))
//! power(%x, const(f32[], 0.5))      =>  sqrt(%x)
//! nn.gelu(%x)                       =>  by the hyperbolic tangent
//! ```
//!
//! It knows no operator: each call whose result is of floats is shown to the rules of the facet `approximate`. They may do
//! what those that `relax.SimplifyExpr` asks may not: results differ in the last places, by up to 5e-4 for `nn.gelu`, and
//! at infinities and zeros with a sign. The exponential function, the error function and their kin need no rule:
//! `tir.LowerIntrinsics` computes them by polynomials in any case.

use tenon_plugin_api::prelude::*;
use tenon_plugin_api::rule::Approximate;

/// Replaces arithmetic by cheaper arithmetic that rounds differently.
#[pass(
    name = "relax.FastMath",
    aliases = ["relax.transform.FastMathTransform", "relay._transform.FastMath"],
    opt_level = 4,
    phase = "optimize",
    idempotent = true,
    asks = ["approximate"]
)]
fn fast_math(func: Function, _: &Module, cx: &PassContext) -> Result<Function> {
    if cx.keeps_floats() {
        return Ok(func);
    }
    let body = func.view();
    let mut rw = func.edit();
    let mut rules = cx.rules::<Approximate>();
    for expr in body.post_order() {
        let View::Call { callee, .. } = body.view(expr) else { continue };
        let View::Op { name } = body.view(callee) else { continue };
        let is_float = rw.tensor(expr).is_some_and(|(dtype, _)| dtype.is_float());
        let faster = if is_float { rules.rewritten(&mut rw, name, expr)? } else { None };
        if let Some(faster) = faster.filter(|&faster| rw.body().ty(faster) == body.ty(expr)) {
            rw.replace(expr, faster);
        }
    }
    rw.finish()
}
