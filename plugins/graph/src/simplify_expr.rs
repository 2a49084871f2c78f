//! Algebraic simplification: a table of rules, tried at every call.
//!
//! ```ir
//! %a = negative(%x)
//! %b = negative(%a)                     =>   … %x …
//! %c = transpose(%y) { axes = [1, 0] }
//! %d = transpose(%c) { axes = [1, 0] }  =>   … %y …
//! ```
//!
//! A rule looks at one call and what its arguments are bound to, and answers with an expression of the
//! same type, or with nothing. Operands come before their users, so what a rule answers is seen by the rules
//! of the calls behind it.
//!
//! Rules are exact, for infinities, zeros with a sign and what is no number as well, but for the one that the
//! table marks. So `x + 0` of floats stays, since `-0 + 0` is `0`; `x + -0` goes. `x - x` and `x * 0` go for
//! integers alone. What rounds differently and is cheaper is in `relax.FastMath`; sums of constants are left to
//! `relax.FoldConstant`.

use std::collections::HashMap;

use tenon_plugin_api::prelude::*;

mod arithmetic;
mod movement;

/// Applies algebraic rules: neutral elements, inverses, chains of casts, reshapes and transposes.
#[pass(
    name = "relax.SimplifyExpr",
    aliases = ["relay._transform.SimplifyExpr", "raf.pass_.SimplifyExpr"],
    opt_level = 1,
    phase = "optimize",
    until = "builtin"
)]
fn simplify_expr(func: Function, _: &Module, cx: &PassContext) -> Result<Function> {
    let body = func.view();
    let mut rw = func.edit();
    let mut rules: HashMap<Symbol, Vec<Rule>> = HashMap::new();
    for &(ops, rule) in RULES {
        for op in ops.split(' ') {
            rules.entry(cx.symbol(op)).or_default().push(rule);
        }
    }
    for expr in body.post_order() {
        let View::Call { callee, attrs, .. } = body.view(expr) else { continue };
        let View::Op { name } = body.view(callee) else { continue };
        let (Some(rules), Some(ty)) = (rules.get(&name), body.ty(expr)) else { continue };
        // What is read of memory is a value, for which the memory must not stand.
        if rw.effects().version(expr) != 0 {
            continue;
        }
        let op = body.terms().str(name);
        let args = rw.body().operands(expr).skip(1).to_vec();
        let at = At { op, args: &args, attrs, ty };
        let simpler = rules.iter().find_map(|rule| {
            rule(&mut rw, &at).filter(|&simpler| rw.body().ty(simpler) == Some(ty))
        });
        if let Some(simpler) = simpler {
            rw.replace(expr, simpler);
        }
    }
    rw.finish()
}

/// The call that a rule looks at.
struct At<'a> {
    op: &'a str,
    args: &'a [Expr],
    attrs: Attrs,
    ty: Type,
}

type Rule = fn(&mut Rewriter, &At<'_>) -> Option<Expr>;

/// By the operators they look at, the rules in the order they are tried.
const RULES: &[(&str, Rule)] = &[
    // x + -0, x - 0, x * 1, x / 1 => x
    ("add subtract multiply divide", arithmetic::neutral),
    // x - x, x * 0 => 0, for integers
    ("subtract multiply", arithmetic::zero),
    // x / c => x * (1 / c), where c is a power of two
    ("divide", arithmetic::divide_by_power_of_two),
    // (x + c) + d => x + (c + d); floats are rounded differently
    ("add", arithmetic::add_of_constants),
    // max(x, x), min(x, x), x and x, x or x, where(c, x, x) => x
    ("maximum minimum logical_and logical_or where", arithmetic::equal_arguments),
    // where(true, x, y) => x
    ("where", arithmetic::known_condition),
    // --x, not not x => x
    ("negative logical_not", arithmetic::inverse_of_itself),
    // relu(relu(x)) => relu(x), floor(round(x)) => round(x), …
    ("nn.relu abs floor ceil round", arithmetic::idempotent),
    // |-x| => |x|
    ("abs", arithmetic::abs_of_negative),
    // clip(clip(x)) => the inner one, where its bounds are no wider; clip without bounds => x
    ("clip", arithmetic::clip_of_clip),
    // cast to the same type => x; of a cast that loses nothing => one cast
    ("cast", arithmetic::cast_of_cast),
    // reshape, expand_dims, squeeze of each other => one reshape, or nothing
    ("reshape expand_dims squeeze", movement::reshape_of_reshape),
    // transpose(transpose(x)) => transpose(x); where no axis moves => x
    ("transpose", movement::transpose_of_transpose),
    // layout_transform to the same layout, or there and back => x
    ("layout_transform", movement::there_and_back),
    // broadcast to the same shape, concatenation of one part, whole slice, no padding => x
    ("broadcast_to concatenate strided_slice nn.pad", movement::whole),
];
