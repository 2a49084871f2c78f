//! Puts dimensions in the place of symbols.

use std::collections::HashMap;

use rustc_hash::FxBuildHasher;
use tenon_plugin_api::ir::{self, Dim, Symbol, Term};

use super::Cx;

/// What symbolic dimensions stand for, by their names.
pub type DimBindings = HashMap<Symbol, Dim, FxBuildHasher>;

/// `term`, a dimension, a type or any other term, with dimensions in the place of symbols. Symbols that
/// are not bound stay. Each part of the term is looked at once, without recursion.
pub fn substitute(cx: &Cx, term: Term, bindings: &DimBindings) -> Term {
    match bindings.is_empty() {
        true => term,
        false => {
            let mut done: HashMap<Term, Term, FxBuildHasher> = HashMap::default();
            ir::substitute(cx, term, |name| bindings.get(&name).copied(), &mut done)
        }
    }
}

#[cfg(test)]
mod tests {
    use tenon_plugin_api::ir::{Context, DType};

    use super::*;

    #[test]
    fn symbols_become_what_they_stand_for() {
        let cx = Cx::new();
        let n = cx.dim_symbol("n");
        let half = cx.dim_floor_div(cx.dim_add(n, cx.dim(1)), cx.dim(2));
        let ty = cx.tensor_type(DType::F32, &[n, cx.dim_mul(half, cx.dim(3)), cx.dim(7)]);
        let bindings = DimBindings::from_iter([(cx.symbol("n"), cx.dim(9))]);
        let expected = cx.static_tensor_type(DType::F32, &[9, 15, 7]);
        assert_eq!(substitute(&cx, ty.into(), &bindings), expected.into());
        assert_eq!(substitute(&cx, ty.into(), &DimBindings::default()), ty.into());
    }

    #[test]
    fn strings_that_look_like_names_stay() {
        let cx = Cx::new();
        let bindings = DimBindings::from_iter([(cx.symbol("n"), cx.dim(9))]);
        let list = cx.list(&[cx.symbol("n").into()]);
        assert_eq!(substitute(&cx, list, &bindings), list);
    }
}
