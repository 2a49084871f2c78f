//! Types that somebody wrote, against those that are inferred.
//!
//! Inside a run of passes the types of variables are what passes left behind, and do not matter. In a text they say
//! what its author believes: a belief that is refuted is an error, and so is one that only a run could confirm, since
//! nothing would keep it in mind. What is known of a value may be more than what is written.

use crate::parallel;
use crate::{Context, Cx, Dim, Function, Module, Symbol, Type, TypeView, View};

use super::join::fits;
use super::{InferError, InferProblem, infer_module};

/// As [`infer_module`], for a module as it was written: the types that stand in it are those of the values.
pub fn infer_written(module: &Module) -> Result<Module, Vec<(Symbol, InferError)>> {
    let typed = infer_module(module)?;
    let pairs: Vec<_> = module
        .iter()
        .filter(|(_, function)| !function.is_prim())
        .filter_map(|(name, written)| Some((name, &**written, &**typed.get(name)?)))
        .collect();
    let found = parallel::map(&pairs, |&(name, written, inferred)| {
        contradictions(written, inferred).into_iter().map(|error| (name, error)).collect::<Vec<_>>()
    });
    let errors: Vec<_> = found.into_iter().flatten().collect();
    match errors.is_empty() {
        true => Ok(typed),
        false => Err(errors),
    }
}

/// The nodes of which something else is written than inferred.
fn contradictions(written: &Function, inferred: &Function) -> Vec<InferError> {
    let cx = written.cx();
    let (body, typed) = (written.view(), inferred.view());
    // What is written of a variable stands at its value too.
    let mut is_bound = vec![false; body.len()];
    for expr in body.post_order() {
        if let View::Let(view) = body.view(expr) {
            view.bindings().for_each(|(_, value)| is_bound[value.index()] = true);
        }
    }
    let mut errors = Vec::new();
    for node in body.post_order().filter(|node| !is_bound[node.index()]) {
        let (Some(declared), Some(found)) = (body.ty(node), typed.ty(node)) else { continue };
        if declared == found {
            continue;
        }
        let text = |ty| cx.terms().type_text(ty);
        let problem = match agreement(cx, declared, found) {
            Agreement::Sure => continue,
            Agreement::Open => {
                InferProblem::OpenDeclaration { declared: text(declared), found: text(found) }
            }
            Agreement::Never => {
                InferProblem::WrongDeclaration { declared: text(declared), found: text(found) }
            }
        };
        errors.push(InferError::at(cx, body, node, problem));
    }
    errors
}

/// Whether values of a type are of another one.
#[derive(PartialEq)]
enum Agreement {
    Sure,
    /// It depends on what symbols stand for.
    Open,
    Never,
}

fn agreement(cx: &Cx, declared: Type, found: Type) -> Agreement {
    let terms = cx.terms();
    let mut is_open = false;
    let mut pending = vec![(declared, found)];
    while let Some((declared, found)) = pending.pop() {
        let of_dims = match (terms.ty(declared), terms.ty(found)) {
            _ if declared == found => continue,
            (TypeView::Tensor { dtype: a, dims: x }, TypeView::Tensor { dtype: b, dims: y })
                if a == b =>
            {
                let device = terms.device(declared);
                match device.is_none() || device == terms.device(found) {
                    true => of_dims(cx, x, y),
                    false => Agreement::Never,
                }
            }
            (TypeView::Shape(x), TypeView::Shape(y)) => of_dims(cx, x, y),
            (TypeView::Tuple(x), TypeView::Tuple(y)) if x.len() == y.len() => {
                pending.extend(x.iter().copied().zip(y.iter().copied()));
                continue;
            }
            // The symbols of a function's type are its own.
            (TypeView::Func { .. }, TypeView::Func { .. }) if fits(cx, declared, found, None) => {
                continue;
            }
            _ => Agreement::Never,
        };
        match of_dims {
            Agreement::Sure => {}
            Agreement::Open => is_open = true,
            Agreement::Never => return Agreement::Never,
        }
    }
    if is_open { Agreement::Open } else { Agreement::Sure }
}

fn of_dims(cx: &Cx, declared: Option<&[Dim]>, found: Option<&[Dim]>) -> Agreement {
    let (declared, found) = match (declared, found) {
        (None, _) => return Agreement::Sure,
        (Some(_), None) => return Agreement::Open,
        (Some(declared), Some(found)) if declared.len() != found.len() => return Agreement::Never,
        (Some(declared), Some(found)) => (declared, found),
    };
    let mut different = declared.iter().zip(found).filter(|(a, b)| a != b).peekable();
    if different.peek().is_none() {
        return Agreement::Sure;
    }
    // A difference that is no number may be none.
    match different.all(|(&a, &b)| cx.terms().dim_value(cx.dim_sub(a, b)).is_none()) {
        true => Agreement::Open,
        false => Agreement::Never,
    }
}
