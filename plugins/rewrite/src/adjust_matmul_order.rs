//! Associates products of three matrices the way that takes fewer multiplications.
//!
//! ```ir
//! %w = matmul(%a, %b)                   %t = matmul(%x, %a)
//! %y = matmul(%x, %w)             =>    %y = matmul(%t, %b)
//! ```
//!
//! For `x: [n, 4096]`, `a: [4096, 8]` and `b: [8, 4096]`, the shapes of a low-rank adapter, the first form takes
//! `8 * 4096² + n * 4096²` multiplications, the second `16 * 4096 * n`. Symbols count as 1 and as 4096, and the
//! other order must be cheaper both times. The result is rounded differently.
//!
//! An inner product that something else reads stays, and so does one of two constants, which
//! `relax.FoldConstant` computes. Products of arguments that are given transposed are left alone.

use tenon_plugin_api::ir::Terms;
use tenon_plugin_api::prelude::*;

/// Associates products of three matrices the way that takes fewer multiplications.
#[pass(
    name = "relax.AdjustMatmulOrder",
    aliases = ["relax.transform.AdjustMatmulOrder"],
    opt_level = 1,
    phase = "optimize",
    requires = ["relax.Normalize"]
)]
fn adjust_matmul_order(func: Function, _: &Module, _: &PassContext) -> Result<Function> {
    let body = func.view();
    let mut rw = func.edit();
    let mut uses = None;
    for expr in body.post_order() {
        let is_product = matches!(body.view(expr), View::Call { callee, .. } if body.op_name(callee) == Some("matmul"));
        if is_product {
            let uses = uses.get_or_insert_with(|| Uses::of(body));
            if let Some(other) = other_order(&mut rw, uses, expr) {
                rw.replace(expr, other);
            }
        }
    }
    rw.finish()
}

/// The product in the other order, when that is cheaper.
fn other_order(rw: &mut Rewriter, uses: &Uses, expr: Expr) -> Option<Expr> {
    let [left, right] = factors(rw, expr)?;
    if let Some([a, b]) = inner(rw, uses, left) {
        let [now, other] = costs(rw, [a, b, right])?;
        return is_less(other, now).then(|| {
            let product = rw.apply("matmul", &[b, right]);
            rw.apply("matmul", &[a, product])
        });
    }
    let [b, c] = inner(rw, uses, right)?;
    let [other, now] = costs(rw, [left, b, c])?;
    is_less(other, now).then(|| {
        let product = rw.apply("matmul", &[left, b]);
        rw.apply("matmul", &[product, c])
    })
}

/// The arguments of a product that transposes none of them.
fn factors(rw: &mut Rewriter, expr: Expr) -> Option<[Expr; 2]> {
    let call = rw.call_of(expr, "matmul")?;
    let attrs = rw.terms().attrs(call.attrs);
    let is_plain = |name: &str| !attrs.bool(name).unwrap_or(false);
    (is_plain("transpose_a") && is_plain("transpose_b")).then_some([call.args[0], call.args[1]])
}

/// The arguments of a product that nothing else reads and that is not known at compile time.
fn inner(rw: &mut Rewriter, uses: &Uses, expr: Expr) -> Option<[Expr; 2]> {
    let [a, b] = factors(rw, expr)?;
    let is_known = rw.is_constant(a) && rw.is_constant(b);
    (!is_known && uses.is_single(rw, expr)).then_some([a, b])
}

/// What symbols count as.
const ESTIMATES: [f64; 2] = [1.0, 4096.0];

/// The multiplications of `(a b) c` and of `a (b c)`, for each estimate.
fn costs(rw: &mut Rewriter, [a, b, c]: [Expr; 3]) -> Option<[[f64; 2]; 2]> {
    let dims = [a, b, c].map(|expr| rw.tensor(expr).map(|(_, dims)| dims));
    let [Some(a), Some(b), Some(c)] = &dims else { return None };
    let ([m, k], [n, p]) = (last_two(a)?, last_two(c)?);
    let terms = rw.terms();
    let cost = |batches: &[&[Dim]], matrix: [Dim; 3], symbol: f64| {
        let matrix: f64 = matrix.iter().map(|&dim| estimate(terms, dim, symbol)).product();
        matrix * count(terms, batches, symbol)
    };
    let all: [&[Dim]; 3] = [a, b, c];
    let left = |symbol| cost(&[a, b], [m, k, n], symbol) + cost(&all, [m, n, p], symbol);
    let right = |symbol| cost(&[b, c], [k, n, p], symbol) + cost(&all, [m, k, p], symbol);
    Some([ESTIMATES.map(left), ESTIMATES.map(right)])
}

fn last_two(dims: &[Dim]) -> Option<[Dim; 2]> {
    dims.last_chunk().copied()
}

/// How many matrices a product of arguments of these shapes has.
fn count(terms: Terms<'_>, shapes: &[&[Dim]], symbol: f64) -> f64 {
    let rank = shapes.iter().map(|dims| dims.len()).max().unwrap_or(0);
    let extent = |axis: usize| {
        let own = shapes
            .iter()
            .filter_map(|dims| (axis + dims.len()).checked_sub(rank).map(|at| dims[at]));
        own.map(|dim| estimate(terms, dim, symbol)).fold(1.0, f64::max)
    };
    (0..rank.saturating_sub(2)).map(extent).product()
}

fn estimate(terms: Terms<'_>, dim: Dim, symbol: f64) -> f64 {
    terms.dim_value(dim).map_or(symbol, |extent| extent as f64)
}

fn is_less(a: [f64; 2], b: [f64; 2]) -> bool {
    a.iter().zip(b).all(|(a, b)| *a < b)
}
