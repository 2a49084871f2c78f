//! Algebraic simplification: a table of rules, tried at every call.
//!
//! ```ir
//! %a = add(add(%x, const(f32[], 1)), const(f32[], 2))   =>   %a = add(%x, add(const(f32[], 1), const(f32[], 2)))
//! ```
//!
//! A rule looks at one call and what its arguments are bound to, and answers with an expression of the
//! same type, or with nothing. Operands come before their users, so what a rule builds is seen by the
//! rules of the calls behind it. Sums of constants are left to `relax.FoldConstant`. Floating point
//! addition is reassociated only over constants.

use tenon_plugin_api::prelude::*;

/// Applies algebraic rules: sums of constants, chains of reshapes and transposes, idempotent operators.
#[pass(
    name = "relax.SimplifyExpr",
    aliases = ["relay._transform.SimplifyExpr", "raf.pass_.SimplifyExpr"],
    opt_level = 0,
    phase = "optimize"
)]
fn simplify_expr(func: Function, _: &Module, _: &PassContext) -> Result<Function> {
    let body = func.view();
    let mut rw = func.edit();
    for expr in body.post_order() {
        let View::Call { callee, attrs, .. } = body.view(expr) else { continue };
        let Some(op) = body.op_name(callee) else { continue };
        let Some(ty) = body.ty(expr) else { continue };
        let args = rw.body().operands(expr).skip(1).to_vec();
        let call = Call { op, args: &args, attrs, ty };
        let simpler = RULES.iter().find_map(|rule| rule(&mut rw, &call));
        if let Some(simpler) = simpler.filter(|&simpler| rw.body().ty(simpler) == Some(ty)) {
            rw.replace(expr, simpler);
        }
    }
    rw.finish()
}

/// A call that a rule looks at.
struct Call<'a> {
    op: &'a str,
    args: &'a [Expr],
    attrs: Attrs,
    ty: Type,
}

type Rule = fn(&mut Rewriter, &Call<'_>) -> Option<Expr>;

/// The rules, in the order they are tried.
const RULES: &[Rule] =
    &[add_of_constants, reshape_of_reshape, reshape_to_same, transpose_to_same, relu_of_relu];

/// `add(add(x, c), d) => add(x, add(c, d))` for constants `c` and `d`.
fn add_of_constants(rw: &mut Rewriter, call: &Call<'_>) -> Option<Expr> {
    let (inner, outer) = split_constant(rw, "add", call.op, call.args)?;
    let inner = operands_of(rw, inner, "add")?;
    let (x, constant) = split_constant(rw, "add", "add", &inner)?;
    let sum = rw.call_op("add", &[constant, outer], Attrs::NONE);
    Some(rw.call_op("add", &[x, sum], Attrs::NONE))
}

/// `reshape(reshape(x)) => reshape(x)`.
fn reshape_of_reshape(rw: &mut Rewriter, call: &Call<'_>) -> Option<Expr> {
    let (&[x, shape], "reshape") = (call.args, call.op) else { return None };
    let inner = operands_of(rw, x, "reshape")?;
    Some(rw.call_op("reshape", &[inner[0], shape], Attrs::NONE))
}

/// `reshape(x) => x` when the shape is the same.
fn reshape_to_same(rw: &mut Rewriter, call: &Call<'_>) -> Option<Expr> {
    let (&[x, _], "reshape") = (call.args, call.op) else { return None };
    (rw.body().ty(x) == Some(call.ty)).then_some(x)
}

/// `transpose(x) => x` when no axis moves.
fn transpose_to_same(rw: &mut Rewriter, call: &Call<'_>) -> Option<Expr> {
    let (&[x], "transpose") = (call.args, call.op) else { return None };
    let axes = rw.terms().attrs(call.attrs).ints("axes")?;
    axes.iter().copied().eq(0..axes.len() as i64).then_some(x)
}

/// `relu(relu(x)) => relu(x)`.
fn relu_of_relu(rw: &mut Rewriter, call: &Call<'_>) -> Option<Expr> {
    let (&[x], "nn.relu") = (call.args, call.op) else { return None };
    operands_of(rw, x, "nn.relu").map(|_| x)
}

/// The other argument and the constant one of a call of `wanted` with exactly one constant.
fn split_constant(
    rw: &mut Rewriter,
    wanted: &str,
    op: &str,
    args: &[Expr],
) -> Option<(Expr, Expr)> {
    let &[a, b] = args else { return None };
    if op != wanted {
        return None;
    }
    match (rw.is_constant(a), rw.is_constant(b)) {
        (false, true) => Some((a, b)),
        (true, false) => Some((b, a)),
        _ => None,
    }
}

/// The arguments of the call of `op` that an expression is or stands for.
fn operands_of(rw: &mut Rewriter, expr: Expr, op: &str) -> Option<Vec<Expr>> {
    let definition = rw.definition(expr);
    match rw.view(definition) {
        View::Call { callee, args, .. } if rw.body().op_name(callee) == Some(op) => {
            Some(args.to_vec())
        }
        _ => None,
    }
}
