//! Takes columns of a product rather than of its right argument.
//!
//! ```ir
//! %v = take(%w, %indices) { axis = 1 }          %t = matmul(%x, %w)
//! %y = matmul(%x, %v)                     =>    %y = take(%t, %indices) { axis = 1 }
//! ```
//!
//! Each column of a product depends on one column of the right argument, so the numbers are the same. The
//! product is then one with a weight that does not change, which can be packed, combined with others, or moved
//! out of the function. Where fewer columns are taken than there are, the product would grow: it stays.
//! A matrix that is given transposed is indexed along its rows.

use tenon_plugin_api::prelude::*;

/// Takes columns of a product rather than of its right argument.
#[pass(
    name = "relax.ReorderTakeAfterMatmul",
    aliases = ["relax.transform.ReorderTakeAfterMatmul"],
    opt_level = 1,
    phase = "optimize",
    requires = ["relax.Normalize"]
)]
fn reorder_take_after_matmul(func: Function, _: &Module, _: &PassContext) -> Result<Function> {
    let body = func.view();
    let mut rw = func.edit();
    let mut uses = None;
    for expr in body.post_order() {
        let View::Call { callee, .. } = body.view(expr) else { continue };
        if body.op_name(callee) == Some("matmul") {
            let uses = uses.get_or_insert_with(|| Uses::of(body));
            if let Some(taken) = reordered(&mut rw, uses, expr) {
                rw.replace(expr, taken);
            }
        }
    }
    rw.finish()
}

fn reordered(rw: &mut Rewriter, uses: &Uses, expr: Expr) -> Option<Expr> {
    let product = rw.call_of(expr, "matmul")?;
    let taken = rw.call_of(product.args[1], "take")?;
    let (_, weight) = rw.tensor(taken.args[0])?;
    let (_, indices) = rw.tensor(taken.args[1])?;
    let attrs = rw.terms().attrs(product.attrs);
    let column_axis = if attrs.bool("transpose_b").unwrap_or(false) { 0 } else { 1 };
    let axis = rw.terms().attrs(taken.attrs).int("axis").unwrap_or(0);
    let (&[_, _], &[count]) = (weight.as_slice(), indices.as_slice()) else { return None };
    let is_column = axis.rem_euclid(2) as usize == column_axis;
    let value = |dim: Dim| rw.terms().dim_value(dim);
    let is_fewer = match (value(count), value(weight[column_axis])) {
        (Some(count), Some(columns)) => count < columns,
        _ => false,
    };
    if !is_column || is_fewer || !uses.is_single(rw, product.args[1]) {
        return None;
    }
    let whole = rw.call_op("matmul", &[product.args[0], taken.args[0]], product.attrs);
    let axis = rw.rank(whole)? as i64 - 1;
    Some(rw.apply_with("take", &[whole, taken.args[1]], &[("axis", axis.into())]))
}
