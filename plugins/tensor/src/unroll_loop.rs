//! Replaces unrolled loops by one copy of their body for each step.
//!
//! ```ir
//! for i in 0..2 unrolled {               let a = x[0]
//!   let a = x[i]                  =>     y[0] = a*a
//!   y[i] = a*a                           let a_1 = x[1]
//! }                                      y[1] = a_1*a_1
//! ```
//!
//! Each copy reads the loop's variable as a number, and has variables and buffers of its own. Inner loops
//! are unrolled before the loops around them. A loop without a constant number of steps, or with more
//! than `max_extent`, becomes serial, and so does one that would make the program larger than `max_nodes`.
//!
//! `tir.VectorizeLoop` comes first where both kinds of loops nest. `tir.Simplify` afterwards joins the
//! numbers with the indices around them.

use tenon_plugin_api::prelude::*;

use crate::loops::{bound_variable, constant_extent, settled_loops, with_kind};

/// Replaces unrolled loops by one copy of their body for each step.
#[pass(
    name = "tir.UnrollLoop",
    aliases = ["tir.transform.UnrollLoop"],
    phase = "target",
    establishes = ["no_unrolled_loop"],
    idempotent = true
)]
fn unroll_loop(func: PrimFunc, _: &Module, cx: &PassContext, options: Options) -> Result<PrimFunc> {
    let mut rw = func.edit();
    let settled = settled_loops(func.view());
    let mut has_loop = SideTable::new(rw.body(), false);
    // Nodes that a statement has at least, so that loops around one that is too large are not all counted.
    let mut least = SideTable::new(rw.body(), 0i64);
    for expr in rw.post_order() {
        let inside = func.view().inner_stmts(expr);
        least[expr] = inside.iter().map(|stmt| least[*stmt]).max().unwrap_or(0);
        let inner = rw.body().inner_stmts(expr);
        has_loop[expr] = inner
            .iter()
            .any(|stmt| rw.body().kind(*stmt) == Kind::FOR || has_loop.get(*stmt) == Some(&true));
        let View::For { kind, body, .. } = rw.view(expr) else { continue };
        let Some(steps) = constant_extent(rw.body(), expr) else {
            if kind == LoopKind::Unrolled {
                make_serial(&mut rw, expr, cx);
            }
            continue;
        };
        let is_wanted = match kind {
            LoopKind::Unrolled => true,
            LoopKind::Serial => {
                steps <= options.auto_extent && !has_loop[expr] && !settled.contains(&expr)
            }
            LoopKind::Parallel | LoopKind::Vectorized | LoopKind::ThreadBound => false,
        };
        if !is_wanted {
            continue;
        }
        let room = options.max_nodes - rw.body().len() as i64;
        let has_room =
            |nodes: i64| steps <= options.max_extent && steps.saturating_mul(nodes) <= room;
        if !has_room(least[expr]) {
            make_serial(&mut rw, expr, cx);
            continue;
        }
        let template = Template::of(rw.body(), body);
        least[expr] = template.nodes().len() as i64;
        match has_room(least[expr]) {
            true => unroll(&mut rw, expr, &template, steps),
            false => make_serial(&mut rw, expr, cx),
        }
    }
    Ok(rw.finish()?.into())
}

#[derive(Options)]
struct Options {
    /// loops of more steps become serial
    #[option(default = 64, min = 1)]
    max_extent: i64,
    /// the program does not grow beyond
    #[option(default = 1000000, min = 1)]
    max_nodes: i64,
    /// innermost serial loops of at most so many steps are unrolled as well
    #[option(default = 0, min = 0)]
    auto_extent: i64,
}

fn unroll(rw: &mut Rewriter, stmt: Expr, body: &Template, steps: i64) {
    let View::For { min, .. } = rw.view(stmt) else { return };
    let var = bound_variable(rw.body(), stmt);
    let copies: Vec<Expr> = (0..steps)
        .map(|step| {
            let step = rw.index(step);
            let value = rw.add(min, step);
            body.copy(rw, &[(var, value)])
        })
        .collect();
    let copies = rw.seq(&copies);
    rw.replace(stmt, copies);
}

fn make_serial(rw: &mut Rewriter, stmt: Expr, cx: &PassContext) {
    let serial = with_kind(rw, stmt, LoopKind::Serial);
    rw.replace(stmt, serial);
    cx.note("an unrolled loop of too many or unknown steps runs as it is");
}
