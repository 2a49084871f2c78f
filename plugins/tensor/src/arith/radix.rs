//! Digits whose radix is a symbol: `(x // n)*n + x % n = x`.
//!
//! Loops over axes of unknown extents that become one loop leave such sums behind:
//!
//! ```ir
//! %a[%f // dim(n) * dim(n) + %f % dim(n)]  =>  %a[%f]
//! ```
//!
//! Something may be added to the quotient, as where rows of a tensor begin behind others: that is a number of rows then.
//!
//! ```ir
//! %a[(%f // dim(n) + 5) * dim(n) + %f % dim(n)]  =>  %a[%f + dim(n) * 5]
//! ```
//!
//! Digits may be of any unit: `(x // n)*(n * m) + (x % n)*m = x*m`.
//!
//! Which numbers the digits are of is told by their forms, and radices are compared as dimensions.

use rustc_hash::FxHashMap;
use tenon_plugin_api::prelude::*;

use super::{Forms, Linear};

/// Products of symbols are only followed so deep.
const MAX_FACTORS: usize = 4;

/// Products of a number and a node that is a symbol, the first node of each.
pub(super) type Products = FxHashMap<(Expr, Expr), Expr>;

/// The form with quotients and remainders by the same symbol put together.
pub(super) fn rejoin(
    rw: &mut Rewriter,
    forms: &mut Forms,
    products: &mut Products,
    mut form: Linear,
) -> Linear {
    while let Some(joined) = join(rw, forms, products, &form) {
        form = joined;
    }
    form
}

fn join(
    rw: &mut Rewriter,
    forms: &mut Forms,
    products: &mut Products,
    form: &Linear,
) -> Option<Linear> {
    for &(low, scale) in &form.terms {
        let Some((x, radix, unit)) = remainder(rw, forms, low) else { continue };
        let Some(radix) = symbolic(rw, forms, radix) else { continue };
        let x = forms.form(x);
        let mut whole = rw.with_cx(|cx| cx.dim_mul(radix, cx.dim(scale)));
        if let Some(unit) = unit {
            let Some(unit) = symbolic(rw, forms, unit) else { continue };
            whole = rw.with_cx(|cx| cx.dim_mul(whole, unit));
        }
        for &(high, times) in &form.terms {
            let View::Binary { op: BinaryOp::Mul, a, b } = rw.view(high) else { continue };
            for (number, step) in [(a, b), (b, a)] {
                let Some(size) = symbolic(rw, forms, step) else { continue };
                let Some(left) = without_quotient(rw, forms, number, &x, radix, |rw, factor| {
                    let factor = times.checked_mul(factor);
                    factor.is_some_and(|factor| {
                        rw.with_cx(|cx| cx.dim_mul(size, cx.dim(factor))) == whole
                    })
                }) else {
                    continue;
                };
                let rest = form.plus(&Linear::atom(low), scale.checked_neg()?)?;
                let rest = rest.plus(&Linear::atom(high), times.checked_neg()?)?;
                let moved = times_symbol(rw, forms, products, &left, step)?;
                let x = match unit {
                    Some(unit) => times_symbol(rw, forms, products, &x, unit)?,
                    None => x,
                };
                return rest.plus(&moved, times)?.plus(&x, scale);
            }
        }
    }
    None
}

/// The operands of a remainder, and what it is multiplied by where that is a node.
fn remainder(rw: &Rewriter, forms: &Forms, expr: Expr) -> Option<(Expr, Expr, Option<Expr>)> {
    match rw.view(expr) {
        View::Binary { op: BinaryOp::FloorMod, a, b } => Some((a, b, None)),
        View::Binary { op: BinaryOp::Mul, a, b } => {
            [(a, b), (b, a)].into_iter().find_map(|(number, unit)| {
                let atom = forms.form(number).as_atom()?;
                match rw.view(atom) {
                    View::Binary { op: BinaryOp::FloorMod, a, b } => Some((a, b, Some(unit))),
                    _ => None,
                }
            })
        }
        _ => None,
    }
}

/// What is left of a sum without its quotient `x // radix`, where `is_above` says that it is that of the digit above.
fn without_quotient(
    rw: &mut Rewriter,
    forms: &Forms,
    number: Expr,
    x: &Linear,
    radix: Dim,
    mut is_above: impl FnMut(&mut Rewriter, i64) -> bool,
) -> Option<Linear> {
    let sum = forms.form(number);
    let (atom, factor) =
        sum.terms.iter().copied().find(|&(atom, factor)| {
            is_quotient(rw, forms, atom, x, radix) && is_above(rw, factor)
        })?;
    sum.plus(&Linear::atom(atom), factor.checked_neg()?)
}

/// A sum times a symbol, each of its terms by itself.
fn times_symbol(
    rw: &mut Rewriter,
    forms: &mut Forms,
    products: &mut Products,
    sum: &Linear,
    symbol: Expr,
) -> Option<Linear> {
    let mut all = Linear::default().plus(&forms.form(symbol), sum.constant)?;
    for &(atom, factor) in &sum.terms {
        let product = *products.entry((atom, symbol)).or_insert_with(|| {
            let product = rw.mul(atom, symbol);
            forms.set_expr(rw.body(), product);
            product
        });
        all = all.plus(&forms.form(product), factor)?;
    }
    Some(all)
}

/// Whether a node is `x // radix`.
fn is_quotient(rw: &mut Rewriter, forms: &Forms, expr: Expr, x: &Linear, radix: Dim) -> bool {
    match rw.view(expr) {
        View::Binary { op: BinaryOp::FloorDiv, a, b } => {
            forms.form(a) == *x && symbolic(rw, forms, b) == Some(radix)
        }
        _ => false,
    }
}

/// The dimension that a node is, where it is a product with a symbol in it.
pub(super) fn symbolic(rw: &mut Rewriter, forms: &Forms, expr: Expr) -> Option<Dim> {
    product(rw, forms, expr, MAX_FACTORS)
}

fn product(rw: &mut Rewriter, forms: &Forms, expr: Expr, depth: usize) -> Option<Dim> {
    let form = forms.form(expr);
    let &[(atom, factor)] = form.terms.as_slice() else { return None };
    let dim = match rw.view(atom) {
        _ if form.constant != 0 || depth == 0 => return None,
        View::Prim { dim } => dim,
        View::Binary { op: BinaryOp::Mul, a, b } => {
            let a = product(rw, forms, a, depth - 1)?;
            let b = product(rw, forms, b, depth - 1)?;
            rw.with_cx(|cx| cx.dim_mul(a, b))
        }
        _ => return None,
    };
    Some(rw.with_cx(|cx| cx.dim_mul(dim, cx.dim(factor))))
}
