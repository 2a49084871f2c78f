//! Simplifies arithmetic, conditions and statements by what is known when the program is compiled.
//!
//! ```ir
//! for i in 0..8 {                                     for i in 0..8 {
//!   for j in 0..1 {                                     y[i*4] = x[i*4]
//!     if i*4 + j < 32 {                          =>   }
//!       y[(i*32 + j)//8] = select(true, x[i*4 + j], 0.0)
//!     }
//!   }
//! }
//! ```
//!
//! Indices, the i64 scalars, become sums of multiples in one normal form: outer loops before inner ones,
//! the constant last, so that a back end sees a base, and offsets that it can fold into the access.
//!
//! | from                                              | to                                      |
//! |---------------------------------------------------|-----------------------------------------|
//! | `(x*a + y)//a`, `(x*a + y)%a` with `0 <= y < a`   | `x`, `y`                                |
//! | `(x*a*c + y*c)//(a*c)`                            | `(x*a + y)//a`                          |
//! | `(x//a)//b`                                       | `x//(a*b)`                              |
//! | `(x//a)*a + x%a`                                  | `x`                                     |
//! | `min`, `max`, comparisons that the bounds decide  | one side, `true` or `false`             |
//! | `true && c`, `false \|\| c`, `select(true, x, y)` | `c`, `c`, `x`, and their mirror images  |
//! | floats `x*1`, `x/1`, `x - 0`; casts of literals   | `x`, the literal                        |
//! | `u8(min(max(x, 0.0), 255.0))` and its kind        | `u8(x)`, which saturates                |
//! | a loop of no step, of one step                    | nothing, its body                       |
//! | `if` with a known condition, or nothing to do     | the branch, nothing                     |
//! | a loop around a condition on nothing in it        | the condition around the loop           |
//! | statements all of which have one condition        | it around all of them                   |
//! | `let` of a literal or a variable                  | that, wherever the name was read        |
//! | sequences in sequences, without `alloc`           | one sequence                            |
//!
//! Each rule holds for all integers of the bounds that loops give their variables; floats are only
//! touched where not a bit of the result changes. Names that nothing reads are left to `tir.RemoveNoOp`.

use tenon_plugin_api::prelude::*;

use crate::arith::{Interval, Normalizer};
use crate::conditions;

/// Simplifies arithmetic, conditions and statements.
#[pass(
    name = "tir.Simplify",
    aliases = ["tir.transform.Simplify", "tir.transform.StmtSimplify"],
    opt_level = 1,
    phase = "target",
    until = "builtin"
)]
fn simplify(func: PrimFunc, _: &Module, _: &PassContext) -> Result<PrimFunc> {
    let before = func.view();
    let mut rw = func.edit();
    let mut index = Normalizer::new(&rw);
    for expr in rw.post_order() {
        index.visit(&mut rw, expr);
        index.settle_operands(&mut rw, expr);
        let simpler = match rw.view(expr) {
            View::Binary { op, a, b } => simplify_binary(&mut rw, &index, op, a, b),
            View::Select { cond, then, otherwise } => {
                truth(rw.body(), cond).map(|cond| if cond { then } else { otherwise })
            }
            View::Cast { value } => {
                fold_cast(&mut rw, expr, value).or_else(|| saturate(&mut rw, expr, value))
            }
            View::Seq(stmts) => {
                let stmts = stmts.to_vec();
                let flat = flatten(&mut rw, &stmts);
                let all = flat.unwrap_or(expr);
                conditions::around_all(&mut rw, all).or(flat)
            }
            View::For { extent, body, .. } => {
                let steps = index.forms().bounds(&index.forms().form(extent));
                if steps.single() == Some(1) {
                    let var = before.operands(expr).at(0);
                    let first = index.settle(&mut rw, var);
                    rw.replace(var, first);
                }
                simplify_loop(&mut rw, steps, body)
                    .or_else(|| conditions::around_loop(&mut rw, expr, body))
            }
            View::IfStmt { cond, then, otherwise } => simplify_if(&mut rw, cond, then, otherwise),
            View::LetStmt { var, value } if is_trivial(rw.body(), value) => {
                rw.replace(var, value);
                Some(rw.seq(&[]))
            }
            _ => None,
        };
        if let Some(simpler) = simpler {
            index.visit(&mut rw, simpler);
            rw.replace(expr, simpler);
        }
    }
    Ok(rw.finish()?.into())
}

fn simplify_binary(
    rw: &mut Rewriter,
    index: &Normalizer,
    op: BinaryOp,
    a: Expr,
    b: Expr,
) -> Option<Expr> {
    let (dtype, lanes) = rw.body().scalar_ty(a)?;
    if lanes != 1 {
        return None;
    }
    if dtype == DType::I64 && op.is_comparison() {
        let forms = index.forms();
        let truth = forms.decide(op, &forms.form(a), &forms.form(b))?;
        return Some(rw.int_of(DType::BOOL, truth as i64));
    }
    match (op, truth(rw.body(), a), truth(rw.body(), b)) {
        (BinaryOp::And, Some(true), _) | (BinaryOp::Or, Some(false), _) => return Some(b),
        (BinaryOp::And, _, Some(true)) | (BinaryOp::Or, _, Some(false)) => return Some(a),
        (BinaryOp::And, Some(false), _) | (BinaryOp::Or, Some(true), _) => return Some(a),
        (BinaryOp::And, _, Some(false)) | (BinaryOp::Or, _, Some(true)) => return Some(b),
        _ => {}
    }
    let is = |expr: Expr, number: f64| matches!(rw.view(expr), View::Float(x) if x == number);
    match op {
        BinaryOp::Mul | BinaryOp::Div if is(b, 1.0) => Some(a),
        BinaryOp::Mul if is(a, 1.0) => Some(b),
        // Adding zero is kept: it makes a positive zero of a negative one, and so does taking away -0.
        BinaryOp::Sub if matches!(rw.view(b), View::Float(x) if x.to_bits() == 0) => Some(a),
        _ => None,
    }
}

/// The value of a truth literal.
fn truth(body: BodyView<'_>, expr: Expr) -> Option<bool> {
    match body.view(expr) {
        View::Int(value) if body.scalar_ty(expr) == Some((DType::BOOL, 1)) => Some(value != 0),
        _ => None,
    }
}

/// A conversion of a literal that is the same number in both types.
fn fold_cast(rw: &mut Rewriter, expr: Expr, value: Expr) -> Option<Expr> {
    let (to, lanes) = rw.body().scalar_ty(expr)?;
    let (from, _) = rw.body().scalar_ty(value)?;
    let View::Int(number) = rw.view(value) else { return None };
    // Up to here every integer is a float, and every literal fits every integer type but the narrow ones.
    let is_exact = match to {
        DType::F32 | DType::F64 | DType::I32 => number.unsigned_abs() < 1 << 24,
        DType::I64 => from != DType::U64,
        _ => false,
    };
    (is_exact && lanes == 1).then(|| rw.literal(to, number as f64))
}

/// A float that is kept within the bounds of an integer type and becomes of it: what is beyond becomes the nearest one anyway, and what is
/// no number becomes zero either way.
fn saturate(rw: &mut Rewriter, expr: Expr, value: Expr) -> Option<Expr> {
    let (to, lanes) = rw.body().scalar_ty(expr)?;
    if lanes != 1 || !matches!(to, DType::U8 | DType::I8 | DType::U16 | DType::I16) {
        return None;
    }
    let (least, most) = to.int_bounds();
    let mut x = value;
    while let View::Binary { op: op @ (BinaryOp::Min | BinaryOp::Max), a, b } = rw.view(x) {
        let View::Float(bound) = rw.view(b) else { break };
        let bounds_nothing = match op {
            BinaryOp::Min => bound >= most as f64,
            _ => bound <= least as f64,
        };
        if !bounds_nothing {
            break;
        }
        x = a;
    }
    (x != value).then(|| rw.cast(x, to))
}

fn simplify_loop(rw: &mut Rewriter, steps: Interval, body: Expr) -> Option<Expr> {
    if is_empty(rw.body(), body) || steps.max <= 0 {
        return Some(rw.seq(&[]));
    }
    (steps.single() == Some(1)).then_some(body)
}

fn simplify_if(rw: &mut Rewriter, cond: Expr, then: Expr, otherwise: Option<Expr>) -> Option<Expr> {
    let body = rw.body();
    match (truth(body, cond), otherwise) {
        (Some(true), _) => Some(then),
        (Some(false), Some(otherwise)) => Some(otherwise),
        (Some(false), None) => Some(rw.seq(&[])),
        (None, None) if is_empty(body, then) => Some(then),
        (None, Some(otherwise)) if is_empty(body, otherwise) => Some(rw.if_stmt(cond, then, None)),
        _ => None,
    }
}

/// Whether a statement does nothing.
fn is_empty(body: BodyView<'_>, stmt: Expr) -> bool {
    matches!(body.view(stmt), View::Seq(stmts) if stmts.is_empty())
}

/// Whether a value may stand wherever its name did.
fn is_trivial(body: BodyView<'_>, value: Expr) -> bool {
    matches!(body.view(value), View::Int(_) | View::Float(_) | View::Var { .. })
}

/// A sequence without sequences inside; those that make buffers stay, and so does a buffer's life.
fn flatten(rw: &mut Rewriter, stmts: &[Expr]) -> Option<Expr> {
    let inner = |stmt: Expr| match rw.view(stmt) {
        View::Seq(inner) => {
            let is_alloc = |stmt| rw.body().kind(stmt) == Kind::ALLOC;
            (!inner.iter().any(is_alloc)).then(|| inner.to_vec())
        }
        _ => None,
    };
    if stmts.len() != 1 && stmts.iter().all(|&stmt| inner(stmt).is_none()) {
        return None;
    }
    let flat: Vec<Expr> =
        stmts.iter().flat_map(|&stmt| inner(stmt).unwrap_or_else(|| vec![stmt])).collect();
    Some(rw.seq(&flat))
}
