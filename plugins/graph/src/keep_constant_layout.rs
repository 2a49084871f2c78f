//! Has products read a constant as it lies, where something else does so too.
//!
//! ```ir
//! %e = take(%w, %ids) { axis = 0 }          %e = take(%w, %ids) { axis = 0 }
//! %t = transpose(%w)                   =>   %t = transpose(%w)
//! %y = matmul(%x, %t)                       %y = matmul(%x, %w) { transpose_b = true }
//! ```
//!
//! Folded, the transpose would be a second copy of the weights: in a language model whose embedding is also its last
//! product a third of the file. A product whose right matrix lies column by column runs over it in the
//! direction of the sum, which is no slower, so the copy would not pay. A constant that only products read is
//! left alone: folding its transpose makes no second one.

use tenon_plugin_api::prelude::*;

use crate::constants::ReadAsTheyLie;

/// Has products read a constant as it lies, where something else does so too.
#[pass(
    name = "relax.KeepConstantLayout",
    opt_level = 2,
    phase = "optimize",
    before = ["relax.FoldConstant"]
)]
fn keep_constant_layout(func: Function, _: &Module, _: &PassContext) -> Result<Function> {
    let body = func.view();
    let mut rw = func.edit();
    let shared = ReadAsTheyLie::of(&mut rw, body, |op, _| op == "transpose");
    for expr in body.post_order() {
        let View::Call { callee, args, attrs } = body.view(expr) else { continue };
        let (Some("matmul"), &[data, weight]) = (body.op_name(callee), &args.to_vec()[..]) else {
            continue;
        };
        let Some(transpose) = rw.call_of(weight, "transpose") else { continue };
        let source = transpose.args[0];
        if !swaps_last_axes(&rw, source, transpose.attrs) || !shared.contains(&mut rw, source) {
            continue;
        }
        let is_flipped = rw.terms().attrs(attrs).bool("transpose_b") == Some(true);
        let attrs = rw.cx().with_attr(attrs, "transpose_b", (!is_flipped).into());
        let data = rw.body().resolve(data);
        let product = rw.call_op("matmul", &[data, source], attrs);
        rw.replace(expr, product);
    }
    rw.finish()
}

/// Whether a transpose swaps the rows and columns of matrices.
fn swaps_last_axes(rw: &Rewriter, x: Expr, attrs: Attrs) -> bool {
    let Some(rank) = rw.rank(x).filter(|&rank| rank >= 2) else { return false };
    let swapped: Vec<i64> =
        (0..rank as i64 - 2).chain([rank as i64 - 1, rank as i64 - 2]).collect();
    match rw.terms().attrs(attrs).ints("axes") {
        Some(axes) => axes.iter().map(|axis| axis.rem_euclid(rank as i64)).eq(swapped),
        None => rank == 2,
    }
}
