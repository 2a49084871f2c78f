//! Questions about symbolic dimensions.

use crate::ir::{Context, Cx, Dim};

#[test]
fn quotients_cancel() {
    let cx = Cx::new();
    let (n, m) = (cx.dim_symbol("n"), cx.dim_symbol("m"));
    let text = |above: &[Dim], below: &[Dim]| {
        cx.dim_quotient(above, below).map(|dim| cx.terms().dim_text(dim))
    };
    assert_eq!(text(&[n, cx.dim(8), cx.dim(3)], &[n]).unwrap(), "24");
    assert_eq!(text(&[cx.dim_mul(n, cx.dim(4)), m], &[m, cx.dim(2)]).unwrap(), "2*n");
    assert_eq!(text(&[n, cx.dim(4)], &[m, cx.dim(2)]).unwrap(), "floordiv(2*n, m)");
    assert_eq!(text(&[cx.dim(5)], &[cx.dim(2)]), None);
    assert_eq!(text(&[n], &[cx.dim(2)]).unwrap(), "floordiv(n, 2)");
    assert_eq!(text(&[n], &[cx.dim(0)]), None);
}

#[test]
fn bounds_know_that_symbols_are_not_negative() {
    let cx = Cx::new();
    let n = cx.dim_symbol("n");
    let bound = |dim| cx.terms().dim_lower_bound(dim);
    assert_eq!(bound(cx.dim_add(n, cx.dim(3))), Some(3));
    assert_eq!(bound(cx.dim_mul(n, cx.dim(3))), Some(0));
    assert_eq!(bound(cx.dim_mul(n, cx.dim(-1))), None);
    assert_eq!(bound(cx.dim_max(cx.dim_mul(n, cx.dim(-1)), cx.dim(0))), Some(0));
}

#[test]
fn harmful_dimensions_are_seen() {
    let cx = Cx::new();
    let mut dim = cx.dim_symbol("n");
    for _ in 0..40 {
        if !cx.terms().is_small_dim(dim) {
            return;
        }
        dim = cx.dim_mul(dim, dim);
    }
    panic!("a dimension grew without end");
}
