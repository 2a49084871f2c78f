//! Types that the text leaves out, because the rest of the text implies them.
//!
//! The printer leaves a type out only when this is the node's type; the parser puts it in.

use crate::ir::{BodyView, Context, DType, Expr, Kind, Term, Type, TypeView, View};

/// The type a node has when none is written, as far as its operands say.
pub(super) enum Implied {
    /// None is known.
    Nothing,
    /// This one.
    Type(Type),
    /// A scalar, or a vector of so many lanes.
    Scalar(DType, u16),
    /// The tuple of the operands' types.
    Tuple,
    /// The function from the parameters' types to the declared result.
    Func,
}

/// What the operands of `expr` imply for its type.
pub(super) fn implied(body: BodyView<'_>, expr: Expr) -> Implied {
    let known = |ty: Option<Type>| ty.map_or(Implied::Nothing, Implied::Type);
    match body.view(expr) {
        View::Constant(constant) => Implied::Type(constant.ty),
        View::Shape { ty } => Implied::Type(ty),
        View::Prim { .. } => Implied::Scalar(DType::I64, 1),
        View::Tuple(fields) => match fields.iter().all(|field| body.ty(field).is_some()) {
            true => Implied::Tuple,
            false => Implied::Nothing,
        },
        View::TupleGetItem { tuple, index } => {
            let fields = body.ty(tuple).map(|ty| body.terms().ty(ty));
            known(match fields {
                Some(TypeView::Tuple(fields)) => fields.get(index).copied(),
                _ => None,
            })
        }
        View::Let(view) => known(body.ty(view.result())),
        View::Function { params, result: Some(_), .. } => {
            match params.iter().all(|param| body.ty(param).is_some()) {
                true => Implied::Func,
                false => Implied::Nothing,
            }
        }
        _ => Implied::Nothing,
    }
}

/// The type that `expr` has when none is written.
pub(super) fn implied_type(cx: &impl Context, body: BodyView<'_>, expr: Expr) -> Option<Type> {
    let types = |args: crate::ir::Args<'_>| args.iter().filter_map(|arg| body.ty(arg)).collect();
    match (implied(body, expr), body.view(expr)) {
        (Implied::Type(ty), _) => Some(ty),
        (Implied::Scalar(dtype, lanes), _) => Some(cx.vector_type(dtype, lanes)),
        (Implied::Tuple, View::Tuple(fields)) => {
            let fields: Vec<Type> = types(fields);
            Some(cx.tuple_type(&fields))
        }
        (Implied::Func, View::Function { params, result: Some(result), .. }) => {
            let params: Vec<Type> = types(params);
            Some(cx.func_type(&params, result))
        }
        _ => None,
    }
}

/// Whether the type of `expr` is what is implied.
pub(super) fn has_implied_type(body: BodyView<'_>, expr: Expr) -> bool {
    match (implied(body, expr), body.ty(expr)) {
        (Implied::Nothing, ty) => ty.is_none(),
        (Implied::Type(implied), ty) => ty == Some(implied),
        (Implied::Scalar(dtype, lanes), ty) => {
            ty.and_then(|ty| body.terms().scalar(ty)) == Some((dtype, lanes))
        }
        (Implied::Tuple | Implied::Func, None) => false,
        (Implied::Tuple | Implied::Func, Some(ty)) => {
            let written: &[Term] = body.terms().children(ty);
            let View::Tuple(fields) = body.view(expr) else { return true };
            matches!(body.terms().ty(ty), TypeView::Tuple(_))
                && written.len() == fields.len()
                && fields
                    .iter()
                    .zip(written)
                    .all(|(field, &ty)| body.ty(field).is_some_and(|field| Term::from(field) == ty))
        }
    }
}

/// Whether a node's type is not its own to choose, so that it is never written.
///
/// A function's type follows from its parameters and its result, a `let` has its result's type, and a
/// name means what it names.
pub(super) fn is_type_redundant(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::FUNCTION | Kind::LET | Kind::PRIM_FUNC | Kind::GLOBAL | Kind::OP | Kind::VAR
    )
}
