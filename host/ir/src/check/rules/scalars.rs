//! Scalars of a tensor program have types that fit: operands of one dtype and of one lane or equally many, what
//! is stored of the buffer's dtype, indices integers and as many as axes, or one. Functions of scalars are those
//! that there are.

use thiserror::Error;

use crate::check::{Report, Rule, Subject};
use crate::suggest::nearest;
use crate::{
    BARRIER, BinaryOp, DType, Expr, INTRINSICS, IntrinsicDef, IntrinsicResult, TypeView, View,
};

pub(super) const RULE: Rule = Rule {
    name: "scalars",
    demands: "scalars of a tensor program have types that fit",
    since: None,
    until: None,
    check,
};

fn check(subject: &Subject<'_>, report: &mut Report) {
    let body = subject.body;
    if !subject.function.is_prim() {
        return;
    }
    for expr in body.post_order() {
        let problem = match body.view(expr) {
            View::Buffer { .. } => buffer(subject, expr),
            View::Int(_) => literal(subject, expr, "an integer literal", |dtype| !dtype.is_float()),
            View::Float(_) => literal(subject, expr, "a float literal", DType::is_float),
            View::Binary { op, a, b } => binary(subject, expr, op, a, b),
            View::Select { cond, then, otherwise } => {
                select(subject, expr, [cond, then, otherwise])
            }
            View::Cast { value } => result(subject, expr, &[value], None),
            View::Intrinsic { name, args } => {
                intrinsic(subject, expr, subject.str(name), &args.to_vec())
            }
            View::Ramp { base, stride } => ramp(subject, expr, &[base, stride]),
            View::Broadcast { value } => ramp(subject, expr, &[value]),
            View::Load { buffer, indices } => load(subject, expr, buffer, &indices.to_vec()),
            View::Store { buffer, value, indices } => {
                store(subject, buffer, value, &indices.to_vec())
            }
            View::For { var, min, extent, .. } => bounds(subject, var, &[min, extent]),
            View::LetStmt { var, value } => same(subject, "a scalar is named", var, value),
            View::IfStmt { cond, otherwise, .. } => condition(subject, cond, otherwise),
            _ => None,
        };
        if let Some(problem) = problem {
            report.at(expr, || problem);
        }
    }
}

type Problem = Option<String>;
type Scalar = (DType, u16);

/// Why something has no scalar type, or not the one that is expected.
#[derive(Debug, Error)]
enum ScalarError {
    #[error("a {kind} has {ty}, which is no type of a scalar")]
    NoScalar { kind: &'static str, ty: String },
    #[error("vectors of {some} and {most} lanes meet")]
    Lanes { some: u16, most: u16 },
    #[error("it has type {}, but {} is expected", text(*.found), text(*.wanted))]
    Unexpected { found: Scalar, wanted: Scalar },
    #[error("buffer {buffer} is no tensor of known rank")]
    NoTensor { buffer: String },
    #[error("{buffer} has {rank} axes, but {given} indices are given")]
    Indices { buffer: String, rank: usize, given: usize },
    #[error("an index is {0}, not an integer")]
    NoIndex(DType),
}

/// Dtype and lanes of a node, or that it has none.
fn scalar(subject: &Subject<'_>, expr: Expr) -> Result<Scalar, ScalarError> {
    let body = subject.body;
    match (body.scalar_ty(expr), body.view(expr)) {
        (Some((_, 0)), _) | (None, _) => {
            let (kind, ty) = (body.kind(expr).name(), subject.type_text(body.ty(expr)));
            Err(ScalarError::NoScalar { kind, ty })
        }
        (Some(scalar), _) => Ok(scalar),
    }
}

fn text((dtype, lanes): Scalar) -> String {
    if lanes == 1 { dtype.to_string() } else { format!("{dtype}x{lanes}") }
}

/// The lanes that operands have in common: those with one are repeated.
fn lanes(operands: &[Scalar]) -> Result<u16, ScalarError> {
    let all = operands.iter().map(|&(_, lanes)| lanes);
    let most = all.clone().max().unwrap_or(1);
    match all.into_iter().find(|&lanes| lanes != 1 && lanes != most) {
        Some(some) => Err(ScalarError::Lanes { some, most }),
        None => Ok(most),
    }
}

/// Compares a node's lanes with those of its operands, and its dtype with `dtype` when one is expected.
fn result(subject: &Subject<'_>, expr: Expr, operands: &[Expr], dtype: Option<DType>) -> Problem {
    let check = || {
        let found = scalar(subject, expr)?;
        let operands: Vec<Scalar> =
            operands.iter().map(|&operand| scalar(subject, operand)).collect::<Result<_, _>>()?;
        let wanted = (dtype.unwrap_or(found.0), lanes(&operands)?);
        match found == wanted {
            true => Ok(()),
            false => Err(ScalarError::Unexpected { found, wanted }),
        }
    };
    check().err().map(|error| error.to_string())
}

fn same(subject: &Subject<'_>, what: &str, a: Expr, b: Expr) -> Problem {
    match (scalar(subject, a), scalar(subject, b)) {
        (Ok((a, _)), Ok((b, _))) if a != b => Some(format!("{what} of {a} and {b}")),
        (Err(error), _) | (_, Err(error)) => Some(error.to_string()),
        _ => None,
    }
}

fn buffer(subject: &Subject<'_>, expr: Expr) -> Problem {
    let ty = subject.body.ty(expr);
    let is_tensor = ty.is_some_and(|ty| subject.body.terms().tensor(ty).is_some());
    (!is_tensor).then(|| {
        let (name, ty) = (subject.name_of(expr), subject.type_text(ty));
        format!("buffer {name} has {ty}, not the type of a tensor of known rank")
    })
}

fn literal(subject: &Subject<'_>, expr: Expr, what: &str, fits: fn(DType) -> bool) -> Problem {
    match scalar(subject, expr) {
        Ok((dtype, 1)) if fits(dtype) => None,
        Ok(found) => Some(format!("{what} has type {}", text(found))),
        Err(error) => Some(error.to_string()),
    }
}

fn binary(subject: &Subject<'_>, expr: Expr, op: BinaryOp, a: Expr, b: Expr) -> Problem {
    let dtype = subject.body.scalar_ty(a).map(|(dtype, _)| dtype);
    let wanted = if op.is_comparison() { Some(DType::BOOL) } else { dtype };
    same(subject, &format!("`{}`", op.text()), a, b)
        .or_else(|| result(subject, expr, &[a, b], wanted))
}

fn select(subject: &Subject<'_>, expr: Expr, operands: [Expr; 3]) -> Problem {
    let [cond, then, otherwise] = operands;
    let dtype = subject.body.scalar_ty(then).map(|(dtype, _)| dtype);
    truth(subject, cond)
        .or_else(|| same(subject, "a select", then, otherwise))
        .or_else(|| result(subject, expr, &operands, dtype))
}

fn truth(subject: &Subject<'_>, cond: Expr) -> Problem {
    match scalar(subject, cond) {
        Ok((dtype, _)) if dtype.is_bool() => None,
        Ok(found) => Some(format!("a condition is {}, not bool", text(found))),
        Err(error) => Some(error.to_string()),
    }
}

/// A condition of several lanes leaves out those for which it is false.
fn condition(subject: &Subject<'_>, cond: Expr, otherwise: Option<Expr>) -> Problem {
    truth(subject, cond).or_else(|| match subject.body.scalar_ty(cond) {
        Some((_, lanes)) if lanes > 1 && otherwise.is_some() => {
            Some(format!("a condition of {lanes} lanes has two branches"))
        }
        _ => None,
    })
}

/// A call of a function of scalars.
fn intrinsic(subject: &Subject<'_>, expr: Expr, name: &str, args: &[Expr]) -> Problem {
    // Rule `threads` is about it.
    if name == BARRIER {
        return None;
    }
    let Some(function) = IntrinsicDef::find(name) else { return Some(unknown_function(name)) };
    if args.len() != function.args {
        let (expected, found) = (function.args, args.len());
        let s = if expected == 1 { "" } else { "s" };
        return Some(format!("`{name}` takes {expected} argument{s}, not {found}"));
    }
    let (given, found) = match (scalar(subject, args[0]), scalar(subject, expr)) {
        (Ok((given, _)), Ok((found, _))) => (given, found),
        (Err(error), _) | (_, Err(error)) => return Some(error.to_string()),
    };
    if !function.takes.accepts(given) {
        return Some(format!("`{name}` takes {}, not {given}", function.takes.text()));
    }
    let wanted = match function.gives {
        IntrinsicResult::Same => given,
        IntrinsicResult::Bool => DType::BOOL,
        IntrinsicResult::SameBits if found.bits() == given.bits() => found,
        IntrinsicResult::SameBits => {
            let (from, to) = (given.bits(), found.bits());
            return Some(format!("`{name}` makes {to} bits of {from}"));
        }
    };
    args[1..]
        .iter()
        .find_map(|&arg| same(subject, &format!("`{name}`"), args[0], arg))
        .or_else(|| result(subject, expr, args, Some(wanted)))
}

fn unknown_function(name: &str) -> String {
    if name == BinaryOp::FloorDiv.text() {
        return format!("`{name}` stands between its operands, `a {name} b`, and is no function");
    }
    let known = INTRINSICS.iter().map(|function| function.name);
    let help = match nearest(name, known.clone()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("there are {}", known.collect::<Vec<_>>().join(", ")),
    };
    format!("there is no function `{name}` of scalars; {help}")
}

/// A vector made of scalars.
fn ramp(subject: &Subject<'_>, expr: Expr, parts: &[Expr]) -> Problem {
    let dtype = match scalar(subject, expr) {
        Ok((dtype, _)) => dtype,
        Err(error) => return Some(error.to_string()),
    };
    parts.iter().find_map(|&part| match scalar(subject, part) {
        Ok(found) if found == (dtype, 1) => None,
        Ok(found) => Some(format!("a vector of {dtype} is made of {}", text(found))),
        Err(error) => Some(error.to_string()),
    })
}

/// The dtype of a buffer's elements, and the lanes of an access with these indices.
fn access(subject: &Subject<'_>, buffer: Expr, indices: &[Expr]) -> Result<Scalar, ScalarError> {
    let ty = subject.body.ty(buffer).map(|ty| subject.body.terms().ty(ty));
    let Some(TypeView::Tensor { dtype, dims: Some(dims) }) = ty else {
        return Err(ScalarError::NoTensor { buffer: subject.name_of(buffer) });
    };
    if indices.len() != dims.len() && indices.len() != 1 {
        return Err(ScalarError::Indices {
            buffer: subject.name_of(buffer),
            rank: dims.len(),
            given: indices.len(),
        });
    }
    let mut found = Vec::with_capacity(indices.len());
    for &index in indices {
        let (index, lanes) = scalar(subject, index)?;
        if index.is_float() || index.is_bool() {
            return Err(ScalarError::NoIndex(index));
        }
        found.push((index, lanes));
    }
    Ok((dtype, lanes(&found)?))
}

fn load(subject: &Subject<'_>, expr: Expr, buffer: Expr, indices: &[Expr]) -> Problem {
    match (access(subject, buffer, indices), scalar(subject, expr)) {
        (Ok(wanted), Ok(found)) if wanted == found => None,
        (Ok(wanted), Ok(found)) => {
            Some(format!("it has type {}, but {} is read", text(found), text(wanted)))
        }
        (Err(error), _) | (_, Err(error)) => Some(error.to_string()),
    }
}

fn store(subject: &Subject<'_>, buffer: Expr, value: Expr, indices: &[Expr]) -> Problem {
    match (access(subject, buffer, indices), scalar(subject, value)) {
        (Ok((dtype, lanes)), Ok(found)) if dtype == found.0 && [1, lanes].contains(&found.1) => {
            None
        }
        (Ok(wanted), Ok(found)) => {
            Some(format!("{} is stored where {} is written", text(found), text(wanted)))
        }
        (Err(error), _) | (_, Err(error)) => Some(error.to_string()),
    }
}

fn bounds(subject: &Subject<'_>, var: Expr, bounds: &[Expr]) -> Problem {
    let (dtype, lanes) = match scalar(subject, var) {
        Ok(found) => found,
        Err(error) => return Some(error.to_string()),
    };
    if dtype.is_float() || dtype.is_bool() || lanes != 1 {
        return Some(format!("a loop counts in {}", text((dtype, lanes))));
    }
    bounds.iter().find_map(|&bound| match scalar(subject, bound) {
        Ok(found) if found == (dtype, 1) => None,
        Ok(found) => Some(format!("a loop over {dtype} has a bound of {}", text(found))),
        Err(error) => Some(error.to_string()),
    })
}
