//! Digits whose radix is a symbol: `(x // n)*n + x % n = x`.
//!
//! Loops over axes of unknown extents that become one loop leave such sums behind:
//!
//! ```ir
//! %a[%f // dim(n) * dim(n) + %f % dim(n)]  =>  %a[%f]
//! ```
//!
//! Which numbers the digits are of is told by their forms, and radices are compared as dimensions.

use tenon_plugin_api::prelude::*;

use super::{Forms, Linear};

/// Products of symbols are only followed so deep.
const MAX_FACTORS: usize = 4;

/// The form with quotients and remainders by the same symbol put together.
pub(super) fn rejoin(rw: &mut Rewriter, forms: &Forms, mut form: Linear) -> Linear {
    while let Some(joined) = join(rw, forms, &form) {
        form = joined;
    }
    form
}

fn join(rw: &mut Rewriter, forms: &Forms, form: &Linear) -> Option<Linear> {
    for &(low, scale) in &form.terms {
        let View::Binary { op: BinaryOp::FloorMod, a: x, b: radix } = rw.view(low) else {
            continue;
        };
        let Some(radix) = symbolic(rw, forms, radix) else { continue };
        let x = forms.form(x);
        for &(high, times) in &form.terms {
            let View::Binary { op: BinaryOp::Mul, a, b } = rw.view(high) else { continue };
            let is_above = [(a, b), (b, a)].into_iter().any(|(quotient, step)| {
                is_quotient(rw, forms, quotient, &x, radix)
                    && symbolic(rw, forms, step).is_some_and(|step| {
                        rw.with_cx(|cx| {
                            cx.dim_mul(step, cx.dim(times)) == cx.dim_mul(radix, cx.dim(scale))
                        })
                    })
            });
            if is_above {
                let rest = form.plus(&Linear::atom(low), scale.checked_neg()?)?;
                let rest = rest.plus(&Linear::atom(high), times.checked_neg()?)?;
                return rest.plus(&x, scale);
            }
        }
    }
    None
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
