//! Types that the text leaves out, because the rest of the text implies them.
//!
//! The printer leaves a type out only when this is the node's type; the parser puts it in.

use crate::{Args, BodyView, Context, DType, Expr, Kind, Term, Type, TypeView, View};

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
        View::Binary { op, a, .. } if op.is_comparison() => match body.scalar_ty(a) {
            Some((_, lanes)) => Implied::Scalar(DType::BOOL, lanes),
            None => Implied::Nothing,
        },
        View::Binary { a, .. } => known(body.ty(a)),
        View::Select { then, .. } => known(body.ty(then)),
        View::Load { buffer, indices } => loaded(body, buffer, indices),
        View::Ramp { base: scalar, .. } | View::Broadcast { value: scalar } => {
            // The lanes stand in the text.
            let dtype = body.scalar_ty(scalar).map_or(DType::I64, |(dtype, _)| dtype);
            let lanes = body.scalar_ty(expr).map_or(1, |(_, lanes)| lanes);
            Implied::Scalar(dtype, lanes)
        }
        // The type stands in the text.
        View::Int(_) | View::Float(_) | View::Cast { .. } | View::Intrinsic { .. } => {
            known(body.ty(expr))
        }
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

/// An element, or as many as the widest index has lanes.
fn loaded(body: BodyView<'_>, buffer: Expr, indices: Args<'_>) -> Implied {
    let dtype = match body.ty(buffer).map(|ty| body.terms().ty(ty)) {
        Some(TypeView::Tensor { dtype, .. }) => dtype,
        _ => return Implied::Nothing,
    };
    let lanes = indices.iter().filter_map(|index| body.scalar_ty(index)).map(|(_, lanes)| lanes);
    Implied::Scalar(dtype, lanes.max().unwrap_or(1))
}

/// The type that `expr` has when none is written.
pub(super) fn implied_type(cx: &impl Context, body: BodyView<'_>, expr: Expr) -> Option<Type> {
    let types = |args: Args<'_>| args.iter().filter_map(|arg| body.ty(arg)).collect();
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
/// name means what it names. A statement has none.
pub(super) fn is_type_redundant(kind: Kind) -> bool {
    kind.is_stmt()
        || matches!(
            kind,
            Kind::FUNCTION
                | Kind::LET
                | Kind::PRIM_FUNC
                | Kind::GLOBAL
                | Kind::OP
                | Kind::VAR
                | Kind::BUFFER
                | Kind::REGION
        )
}

/// Whether the type that is written where a node is bound or labelled is its own.
pub(super) fn takes_annotation(body: BodyView<'_>, expr: Expr) -> bool {
    let kind = body.kind(expr);
    let is_leaf = kind.is_leaf_value() && body.operands(expr).is_empty();
    !is_leaf && !is_type_redundant(kind)
}
