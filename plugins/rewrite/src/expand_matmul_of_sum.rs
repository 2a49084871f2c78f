//! Multiplies with the parts of a sum rather than with the sum.
//!
//! ```ir
//! %w = add(%base, %adapter)             %s = matmul(%x, %base)
//! %y = matmul(%x, %w)             =>    %t = matmul(%x, %adapter)
//!                                       %y = add(%s, %t)
//! ```
//!
//! Where the adapter is a product of low rank, `relax.AdjustMatmulOrder` then never computes it as a whole, and
//! the base, which does not change, can be joined with others or moved out of the function. The result is
//! rounded differently.
//!
//! Left alone: a sum of two constants, a sum that something else reads, and one that is broadcast.

use tenon_plugin_api::prelude::*;

/// Multiplies with the parts of a sum rather than with the sum.
#[pass(
    name = "relax.ExpandMatmulOfSum",
    aliases = ["relax.transform.ExpandMatmulOfSum"],
    opt_level = 1,
    phase = "optimize",
    requires = ["relax.Normalize"],
    before = ["relax.AdjustMatmulOrder"]
)]
fn expand_matmul_of_sum(func: Function, _: &Module, _: &PassContext) -> Result<Function> {
    let body = func.view();
    let mut rw = func.edit();
    let mut uses = None;
    for expr in body.post_order() {
        let View::Call { callee, .. } = body.view(expr) else { continue };
        if body.op_name(callee) == Some("matmul") {
            let uses = uses.get_or_insert_with(|| Uses::of(body));
            if let Some(sum) = expanded(&mut rw, uses, expr) {
                rw.replace(expr, sum);
            }
        }
    }
    rw.finish()
}

fn expanded(rw: &mut Rewriter, uses: &Uses, expr: Expr) -> Option<Expr> {
    let product = rw.call_of(expr, "matmul")?;
    let (x, weight) = (product.args[0], product.args[1]);
    let sum = rw.call_of(weight, "add")?;
    let ty = rw.body().ty(weight);
    let is_whole = sum.args.iter().all(|&part| rw.body().ty(part) == ty);
    let is_known = sum.args.iter().all(|&part| rw.is_constant(part));
    if !is_whole || is_known || !uses.is_single(rw, weight) {
        return None;
    }
    let parts: Vec<Expr> =
        sum.args.iter().map(|&part| rw.call_op("matmul", &[x, part], product.attrs)).collect();
    Some(rw.apply("add", &parts))
}
