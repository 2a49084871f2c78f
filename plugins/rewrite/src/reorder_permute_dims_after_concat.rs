//! Transposes a concatenation once rather than each of its parts.
//!
//! ```ir
//! %p = transpose(%a) { axes = [1, 0] }             %t = concatenate((%a, %b)) { axis = 0 }
//! %q = transpose(%b) { axes = [1, 0] }       =>    %c = transpose(%t) { axes = [1, 0] }
//! %c = concatenate((%p, %q)) { axis = 1 }
//! ```
//!
//! All parts are transposed alike, and nothing else reads them transposed. What `relax.CombineParallelMatmul`
//! makes of layers with transposed weights then has one transpose, which can be folded into the product.

use tenon_plugin_api::prelude::*;

/// Transposes a concatenation once rather than each of its parts.
#[pass(
    name = "relax.ReorderPermuteDimsAfterConcat",
    aliases = ["relax.transform.ReorderPermuteDimsAfterConcat"],
    opt_level = 1,
    phase = "optimize",
    requires = ["relax.Normalize"],
    after = ["relax.CombineParallelMatmul"]
)]
fn reorder_permute_dims_after_concat(
    func: Function,
    _: &Module,
    _: &PassContext,
) -> Result<Function> {
    let body = func.view();
    let mut rw = func.edit();
    let mut uses = None;
    for expr in body.post_order() {
        let View::Call { callee, .. } = body.view(expr) else { continue };
        if body.op_name(callee) == Some("concatenate") {
            let uses = uses.get_or_insert_with(|| Uses::of(body));
            if let Some(transposed) = reordered(&mut rw, uses, expr) {
                rw.replace(expr, transposed);
            }
        }
    }
    rw.finish()
}

fn reordered(rw: &mut Rewriter, uses: &Uses, expr: Expr) -> Option<Expr> {
    let joined = rw.call_of(expr, "concatenate")?;
    let tuple = rw.definition(joined.args[0]);
    let View::Tuple(fields) = rw.view(tuple) else { return None };
    let fields = fields.to_vec();
    if fields.len() < 2 || !uses.is_single(rw, joined.args[0]) {
        return None;
    }
    let mut axes: Option<Vec<i64>> = None;
    let mut parts = Vec::with_capacity(fields.len());
    for field in fields {
        let part = rw.call_of(field, "transpose")?;
        let rank = rw.rank(part.args[0])? as i64;
        let given = rw.terms().attrs(part.attrs).ints("axes");
        let own: Vec<i64> = match given {
            Some(axes) => axes.iter().map(|axis| axis.rem_euclid(rank)).collect(),
            None => (0..rank).rev().collect(),
        };
        if axes.get_or_insert_with(|| own.clone()) != &own || !uses.is_single(rw, field) {
            return None;
        }
        parts.push(part.args[0]);
    }
    let axes = axes?;
    let axis = rw.terms().attrs(joined.attrs).int("axis").unwrap_or(0);
    let axis = axes[axis.rem_euclid(axes.len() as i64) as usize];
    let tuple = rw.tuple(&parts);
    let whole = rw.apply_with("concatenate", &[tuple], &[("axis", axis.into())]);
    Some(rw.transpose(whole, &axes))
}
