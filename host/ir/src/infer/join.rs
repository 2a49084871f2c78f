//! How types relate: which fits where, and what two have in common.

use crate::{Context, Cx, Dim, DimBindings, DimView, Type, TypeView, substitute};

/// Whether a value of type `found` may stand where `expected` is declared, as far as can be known. Symbols
/// that `expected` holds by themselves are bound to the dimensions that they meet, when `bindings` asks.
pub fn fits(cx: &Cx, expected: Type, found: Type, mut bindings: Option<&mut DimBindings>) -> bool {
    let terms = cx.terms();
    let mut pending = vec![(expected, found)];
    let mut dims: Vec<(Dim, Dim)> = Vec::new();
    while let Some((expected, found)) = pending.pop() {
        if expected == found && bindings.is_none() {
            continue;
        }
        let is_right = match (terms.ty(expected), terms.ty(found)) {
            (TypeView::Tensor { dtype: a, dims: x }, TypeView::Tensor { dtype: b, dims: y }) => {
                let agrees = |device| terms.device(found).is_none_or(|other| other == device);
                let agrees = terms.device(expected).is_none_or(agrees);
                a == b && agrees && collect(&mut dims, x, y)
            }
            (TypeView::Shape(x), TypeView::Shape(y)) => collect(&mut dims, x, y),
            (TypeView::Tuple(x), TypeView::Tuple(y)) if x.len() == y.len() => {
                pending.extend(x.iter().copied().zip(y.iter().copied()));
                true
            }
            (TypeView::Func { params: x, result: a }, TypeView::Func { params: y, result: b })
                if x.len() == y.len() =>
            {
                pending.extend(x.iter().copied().zip(y.iter().copied()));
                pending.push((a, b));
                true
            }
            _ => expected == found,
        };
        if !is_right {
            return false;
        }
    }
    if let Some(bindings) = bindings.as_deref_mut() {
        for &(expected, found) in &dims {
            if let DimView::Symbol(name) = terms.dim(expected) {
                bindings.entry(name).or_insert(found);
            }
        }
    }
    let none = DimBindings::default();
    let bindings = bindings.map_or(&none, |bindings| &*bindings);
    dims.iter().all(|&(expected, found)| {
        let expected = Dim(substitute(cx, expected.into(), bindings).0);
        expected == found
            || terms.dim_value(cx.dim_sub(expected, found)).is_none_or(|value| value == 0)
    })
}

/// Adds the pairs of two lists of dimensions; false when their numbers differ.
fn collect(pairs: &mut Vec<(Dim, Dim)>, x: Option<&[Dim]>, y: Option<&[Dim]>) -> bool {
    let (Some(x), Some(y)) = (x, y) else { return true };
    pairs.extend(x.iter().copied().zip(y.iter().copied()));
    x.len() == y.len()
}

/// The type that values of both types have: where dimensions differ, the rank is left open.
pub(super) fn join(cx: &Cx, a: Type, b: Type) -> Option<Type> {
    enum Step {
        Join(Type, Type),
        Tuple(usize),
    }
    let terms = cx.terms();
    let mut steps = vec![Step::Join(a, b)];
    let mut done: Vec<Type> = Vec::new();
    while let Some(step) = steps.pop() {
        let (a, b) = match step {
            Step::Tuple(count) => {
                let fields = done.split_off(done.len() - count);
                done.push(cx.tuple_type(&fields));
                continue;
            }
            Step::Join(a, b) => (a, b),
        };
        match (terms.ty(a), terms.ty(b)) {
            _ if a == b => done.push(a),
            (TypeView::Tensor { dtype: x, .. }, TypeView::Tensor { dtype: y, .. }) if x == y => {
                let devices = (terms.device(a), terms.device(b));
                let device = match devices {
                    (Some(a), Some(b)) if a != b => return None,
                    (a, b) => a.or(b),
                };
                let [a, b] = [a, b].map(|ty| cx.on_device(ty, None));
                let both = if a == b { a } else { cx.unranked_tensor_type(x) };
                done.push(cx.on_device(both, device));
            }
            (TypeView::Shape(_), TypeView::Shape(_)) => done.push(cx.shape_type(None)),
            (TypeView::Tuple(x), TypeView::Tuple(y)) if x.len() == y.len() => {
                steps.push(Step::Tuple(x.len()));
                let pairs = x.iter().zip(y).rev();
                steps.extend(pairs.map(|(&x, &y)| Step::Join(x, y)));
            }
            _ => return None,
        }
    }
    done.pop()
}

/// Whether `declared` says more than `inferred` and agrees with it: a tensor or shape of known rank
/// where nothing is known.
pub(super) fn refines(cx: &Cx, declared: Type, inferred: Type) -> bool {
    match (cx.terms().ty(declared), cx.terms().ty(inferred)) {
        (TypeView::Tensor { dtype: a, .. }, TypeView::Tensor { dtype: b, dims: None }) => {
            a == b && cx.terms().device(declared) == cx.terms().device(inferred)
        }
        (TypeView::Shape(_), TypeView::Shape(None)) => true,
        _ => false,
    }
}
