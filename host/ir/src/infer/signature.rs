//! Types of functions, and of calls of them.

use crate::{BodyView, Context, Cx, DimBindings, Function, Type, TypeView, View, substitute};

use super::InferProblem;
use super::join::fits;

/// The function type that a function declares; `None` while a parameter or the result has none. A tensor
/// program takes its outputs as parameters, and its result is the empty tuple.
pub fn signature(func: &Function) -> Option<Type> {
    let body = func.view();
    let cx = func.cx();
    match body.view(body.root()) {
        View::Function { params, body: value, result, .. } => {
            let result = result.or(body.ty(value))?;
            Some(cx.func_type(&param_types(body, params)?, result))
        }
        View::PrimFunc { params, .. } => {
            Some(cx.func_type(&param_types(body, params)?, cx.tuple_type(&[])))
        }
        _ => None,
    }
}

fn param_types(body: BodyView<'_>, params: crate::Args<'_>) -> Option<Vec<Type>> {
    params.iter().map(|param| body.ty(param)).collect()
}

/// The type of a call of a function of type `callee`: symbols of the parameters stand for what the
/// arguments have in their place.
pub fn instantiate(cx: &Cx, callee: Type, args: &[Type]) -> Result<Type, InferProblem> {
    let terms = cx.terms();
    let TypeView::Func { params, result } = terms.ty(callee) else {
        return Err(InferProblem::NotCallable(terms.type_text(callee)));
    };
    if params.len() != args.len() {
        return Err(InferProblem::WrongArgCount { expected: params.len(), found: args.len() });
    }
    if params == args {
        return Ok(result);
    }
    let mut bindings = DimBindings::default();
    for (index, (&param, &arg)) in params.iter().zip(args).enumerate() {
        if !fits(cx, param, arg, Some(&mut bindings)) {
            let param = Type(substitute(cx, param.into(), &bindings).0);
            return Err(InferProblem::WrongArg {
                index,
                expected: terms.type_text(param),
                found: terms.type_text(arg),
            });
        }
    }
    Ok(Type(substitute(cx, result.into(), &bindings).0))
}
