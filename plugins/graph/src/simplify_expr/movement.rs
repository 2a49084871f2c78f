//! Rules on operators that move elements.

use tenon_plugin_api::prelude::*;

use super::At;

/// `reshape`, `expand_dims` and `squeeze` of each other are one reshape; where the shape comes back, none.
pub(super) fn reshape_of_reshape(rw: &mut Rewriter, at: &At<'_>) -> Option<Expr> {
    let x = *at.args.first()?;
    if rw.body().ty(x) == Some(at.ty) {
        return Some(x);
    }
    let inner = ["reshape", "expand_dims", "squeeze"].iter().find_map(|op| rw.call_of(x, op))?;
    let source = inner.args[0];
    if rw.body().ty(source) == Some(at.ty) {
        return Some(source);
    }
    // A reshape keeps its shape argument, which may be known at run time alone.
    match at.op {
        "reshape" => Some(rw.apply("reshape", &[source, at.args[1]])),
        _ => {
            let dims = rw.terms().tensor(at.ty)?.1.to_vec();
            Some(rw.reshape(source, &dims))
        }
    }
}

/// `transpose(transpose(x)) => transpose(x)`, and `transpose(x) => x` when no axis moves.
pub(super) fn transpose_of_transpose(rw: &mut Rewriter, at: &At<'_>) -> Option<Expr> {
    let &[x] = at.args else { return None };
    let outer = axes(rw, x, at.attrs)?;
    if is_identity(&outer) {
        return Some(x);
    }
    let inner = rw.call_of(x, "transpose")?;
    let source = inner.args[0];
    let inner = axes(rw, source, inner.attrs)?;
    let axes: Vec<i64> = outer.iter().map(|&axis| inner[axis as usize]).collect();
    Some(rw.transpose(source, &axes))
}

/// The axes of a transpose, none negative.
fn axes(rw: &Rewriter, x: Expr, attrs: Attrs) -> Option<Vec<i64>> {
    let rank = rw.rank(x)? as i64;
    match rw.terms().attrs(attrs).ints("axes") {
        Some(axes) => Some(axes.iter().map(|axis| axis.rem_euclid(rank)).collect()),
        None => Some((0..rank).rev().collect()),
    }
}

fn is_identity(axes: &[i64]) -> bool {
    axes.iter().copied().eq(0..axes.len() as i64)
}

/// `layout_transform` to the same layout, or there and back, `=> x`.
pub(super) fn there_and_back(rw: &mut Rewriter, at: &At<'_>) -> Option<Expr> {
    let &[x] = at.args else { return None };
    let layouts = |attrs: Attrs| {
        let attrs = rw.terms().attrs(attrs);
        Some((attrs.str("src_layout")?.to_owned(), attrs.str("dst_layout")?.to_owned()))
    };
    let (from, to) = layouts(at.attrs)?;
    if from == to {
        return Some(x);
    }
    let inner = rw.call_of(x, "layout_transform")?;
    let attrs = rw.terms().attrs(inner.attrs);
    let is_back = attrs.str("src_layout") == Some(&to) && attrs.str("dst_layout") == Some(&from);
    is_back.then_some(inner.args[0])
}

/// `broadcast_to` the same shape, `concatenate` of one part, a slice of all, padding by nothing `=> x`.
pub(super) fn whole(rw: &mut Rewriter, at: &At<'_>) -> Option<Expr> {
    let mut x = *at.args.first()?;
    let attrs = rw.terms().attrs(at.attrs);
    // Extents that are equal do not say that the elements are: a slice may be a reversal.
    let is_whole = match at.op {
        "strided_slice" => {
            attrs.ints("strides").is_none_or(|steps| steps.iter().all(|&step| step == 1))
        }
        _ => true,
    };
    if at.op == "concatenate" {
        let tuple = rw.definition(x);
        let View::Tuple(fields) = rw.view(tuple) else { return None };
        x = fields.get(0).filter(|_| fields.len() == 1)?;
    }
    (is_whole && rw.body().ty(x) == Some(at.ty)).then_some(x)
}
