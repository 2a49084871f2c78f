//! Puts dimensions in the place of symbols.

use std::collections::HashMap;

use rustc_hash::FxBuildHasher;
use tenon_plugin_api::ir::{Context, Dim, Symbol, Term, TermKind};

use super::Cx;

/// What symbolic dimensions stand for, by their names.
pub type DimBindings = HashMap<Symbol, Dim, FxBuildHasher>;

/// `term`, a dimension, a type or any other term, with dimensions in the place of symbols. Symbols that
/// are not bound stay. Each part of the term is looked at once, without recursion.
pub fn substitute(cx: &Cx, term: Term, bindings: &DimBindings) -> Term {
    if bindings.is_empty() {
        return term;
    }
    let terms = cx.terms();
    let mut done: HashMap<Term, Term, FxBuildHasher> = HashMap::default();
    let mut stack = vec![term];
    while let Some(&next) = stack.last() {
        if done.contains_key(&next) {
            stack.pop();
            continue;
        }
        let children = terms.children(next);
        let waiting = stack.len();
        stack.extend(children.iter().filter(|child| !done.contains_key(child)));
        if stack.len() > waiting {
            continue;
        }
        stack.pop();
        let rebuilt: Vec<Term> = children.iter().map(|child| done[child]).collect();
        let raw = terms.raw(next);
        let dim = |index: usize| Dim(rebuilt[index].0);
        let result = match (TermKind(raw.kind), rebuilt.len()) {
            (TermKind::DIM_SYMBOL, 1) => {
                bindings.get(&Symbol(children[0].0)).map_or(next, |&dim| dim.into())
            }
            _ if rebuilt == children => next,
            (TermKind::DIM_ADD, 1..) => {
                let sum = (1..rebuilt.len()).fold(dim(0), |sum, index| cx.dim_add(sum, dim(index)));
                sum.into()
            }
            (TermKind::DIM_MUL, 1..) => {
                let product = (1..rebuilt.len())
                    .fold(dim(0), |product, index| cx.dim_mul(product, dim(index)));
                product.into()
            }
            (TermKind::DIM_FLOOR_DIV, 2) => cx.dim_floor_div(dim(0), dim(1)).into(),
            (TermKind::DIM_FLOOR_MOD, 2) => cx.dim_floor_mod(dim(0), dim(1)).into(),
            (TermKind::DIM_MIN, 2) => cx.dim_min(dim(0), dim(1)).into(),
            (TermKind::DIM_MAX, 2) => cx.dim_max(dim(0), dim(1)).into(),
            (kind, _) => cx.intern(kind, raw.flags, raw.bits, &rebuilt),
        };
        done.insert(next, result);
    }
    done[&term]
}

#[cfg(test)]
mod tests {
    use tenon_plugin_api::ir::DType;

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
