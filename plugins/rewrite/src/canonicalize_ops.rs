//! Writes special additions as plain ones.
//!
//! ```ir
//! %y = nn.bias_add(%x, %b) { axis = 1 }     =>     %t = expand_dims(%b) { axis = [1, 2] }
//!                                                  %y = add(%x, %t)
//! ```
//!
//! What is known of `add` then applies: it is folded, moved into weights, carried along in blocked layouts.
//! A bias along the last axis needs no further axes. Data of unknown rank stays as it is.

use tenon_plugin_api::prelude::*;

/// Writes special additions as plain ones.
#[pass(
    name = "relax.CanonicalizeOps",
    aliases = ["relay._transform.CanonicalizeOps", "raf.pass_.CanonicalizeOps"],
    opt_level = 3,
    phase = "optimize",
    before = ["relax.CombineParallelMatmul", "relax.FoldConstant"],
    idempotent = true
)]
fn canonicalize_ops(func: Function, _: &Module, _: &PassContext) -> Result<Function> {
    let body = func.view();
    let mut rw = func.edit();
    for expr in body.post_order() {
        let View::Call { callee, attrs, .. } = body.view(expr) else { continue };
        if body.op_name(callee) != Some("nn.bias_add") {
            continue;
        }
        let args = rw.body().operands(expr);
        let (x, bias) = (args.at(1), args.at(2));
        let Some(rank) = rw.rank(x) else { continue };
        let axis = body.terms().attrs(attrs).int("axis").unwrap_or(1).rem_euclid(rank as i64);
        let behind: Vec<i64> = (1..rank as i64 - axis).collect();
        let bias = match behind.is_empty() {
            true => bias,
            false => rw.apply_with("expand_dims", &[bias], &[("axis", behind.into())]),
        };
        let sum = rw.apply("add", &[x, bias]);
        rw.replace(expr, sum);
    }
    rw.finish()
}
