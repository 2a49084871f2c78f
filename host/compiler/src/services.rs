//! What the host does for passes: operators, inference, evaluation.

use std::sync::Arc;

use thiserror::Error;

use crate::border::{GeneratorError, ResultError, program};
use crate::check::broken_part;
use crate::eval::FoldError;
use crate::external::ExternalError;
use crate::infer::{KnownCalls, infer_expr};
use crate::ir::{
    Attrs, Build, Context, Cx, Dim, Expr, FITS, Fit, Function, Kind, NodeSpec, Symbol, Transaction,
    TransactionError, Type, flatten, normalize,
};
use crate::ops::OpError;
use crate::tune::MeasuringError;

pub(crate) use crate::external::generate;

/// Why a service gives no answer. A plugin reads it as a text.
#[derive(Debug, Error)]
pub(crate) enum ServiceError {
    #[error("there is no term {0}")]
    NoTerm(u32),
    #[error("{0} is no name")]
    NoName(u32),
    #[error("the module or the room for its programs is not there")]
    NoModule,
    #[error(
        "it asks for rules of the facet `{0}`, and its manifest does not say so: `asks = [\"{0}\"]`"
    )]
    NotDeclared(String),
    #[error("no rules have the number {0}")]
    NoRules(u32),
    #[error("there is nothing to call")]
    NoItem,
    /// The transaction holds what its pass should not have put there.
    #[error("{0}")]
    Refused(String),
    #[error(transparent)]
    Transaction(#[from] TransactionError),
    #[error(transparent)]
    Fold(#[from] FoldError),
    #[error(transparent)]
    Op(#[from] OpError),
    #[error("`{op}`: {error}")]
    NoProgram { op: String, error: OpError },
    #[error("the rule `{name}` of the plugin `{provider}` is broken: {what}")]
    Rule { name: String, provider: String, what: String },
    #[error(transparent)]
    Measuring(#[from] MeasuringError),
    #[error(transparent)]
    Generator(#[from] GeneratorError),
    #[error(transparent)]
    External(#[from] ExternalError),
    #[error(transparent)]
    Result(#[from] ResultError),
}

/// Whether `len` bytes are the contents of a tensor of static type `ty`.
pub(crate) fn fits(cx: &Cx, ty: Type, len: u64) -> bool {
    if ty.0 >= cx.term_count() {
        return false;
    }
    let Some((dtype, shape)) = cx.terms().static_tensor(ty) else { return false };
    let count = shape
        .iter()
        .try_fold(1u64, |count, &extent| count.checked_mul(u64::try_from(extent).ok()?));
    count.and_then(|count| dtype.bytes(count)) == Some(len)
}

/// The type of a node that a pass just built from typed operands; `None` when it is not known yet. `calls` is what
/// was found out in the same transaction.
pub(crate) fn type_of(
    transaction: &Transaction,
    expr: Expr,
    calls: &mut KnownCalls,
) -> Option<Type> {
    let body = transaction.body();
    match body.kind(expr) {
        Kind::CALL | Kind::TUPLE | Kind::TUPLE_GET_ITEM | Kind::IF => {
            transaction.with_cx(|cx| infer_expr(cx, body, expr, calls)).ok().flatten()
        }
        _ => None,
    }
}

/// Publishes a transaction whose nodes have the parts of their kinds. What has no type yet is inferred when
/// the pass has ended.
pub(crate) fn finish(transaction: Transaction) -> Result<Arc<Function>, ServiceError> {
    let is_changed = transaction.is_changed();
    let function = transaction.publish()?;
    if !is_changed {
        return Ok(function);
    }
    let function = flatten(&function);
    match broken_part(&function) {
        Some(problem) => Err(ServiceError::Refused(problem)),
        None => Ok(normalize(&function)),
    }
}

/// See `HostServices::op_info`.
pub(crate) fn op_info(cx: &Cx, name: &str) -> u32 {
    match cx.operators().find(name) {
        Some(op) => 1 | op.effect.code() | (op.pattern as u32) << 8,
        None => 0,
    }
}

/// The tensor program of an operator call, for a target. What the call must find of dimensions is said by attributes of it.
pub(crate) fn legalize(
    cx: &Cx,
    op: Symbol,
    attrs: Attrs,
    args: &[Type],
    result: Type,
    target: Attrs,
) -> Result<Arc<Function>, ServiceError> {
    let name = cx.terms().str(op).to_owned();
    let def = cx.operators().get(&name)?;
    let program = program(cx, &def, args, attrs, result, target)?;
    let fits = def.fits(cx, args, attrs).unwrap_or_default();
    match fits.is_empty() {
        true => Ok(program),
        false => Ok(with_fits(cx, &program, &fits)?),
    }
}

/// A program that says what its calls must find of dimensions.
fn with_fits(
    cx: &Cx,
    program: &Arc<Function>,
    fits: &[Fit],
) -> Result<Arc<Function>, TransactionError> {
    let mut attrs = program.view().attrs(program.view().root());
    for (name, may_be_one) in FITS {
        let of = fits.iter().filter(|fit| fit.may_be_one == may_be_one);
        let pairs: Vec<Dim> = of.flat_map(|fit| [fit.extent, fit.wanted]).collect();
        if !pairs.is_empty() {
            attrs = cx.with_attr(attrs, name, cx.shape_type(Some(&pairs)).into());
        }
    }
    let mut tx = Transaction::edit(program);
    let root = program.view().root();
    let spec = NodeSpec { attrs, ..program.view().spec(root) };
    let operands: Vec<Expr> = program.view().operands_keeping_binders(root).collect();
    let root = tx.push(spec, &operands);
    tx.set_root(root);
    tx.finish()
}
