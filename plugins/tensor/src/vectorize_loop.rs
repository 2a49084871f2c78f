//! Turns vectorized loops into vector code.
//!
//! ```ir
//! for i in 0..19 vectorized {           let s: f32x16 = x[ramp(0, 1)]*broadcast(a)
//!   let s = x[i]*a                      y[ramp(0, 1)] = s
//!   y[i] = s                     =>     for i in 0..3 unrolled {
//! }                                       let s_1 = x[i + 16]*a
//!                                         y[i + 16] = s_1
//!                                       }
//! ```
//!
//! A vectorized loop says that its steps do not depend on each other, so a statement may run for several
//! steps before the next one does. The target's `vector_bits` say how many steps of 32 bits one vector
//! takes: a longer loop becomes a serial loop over vectors, and what is left over goes into shorter
//! vectors, down to four, and then single steps. How the body widens is told in `widen.rs`; a condition of which the
//! variable is a part becomes one of several lanes, so that what it guards is read and written under a mask. A body that
//! cannot be widened runs in a serial loop, with a note.
//!
//! `tir.FlattenBuffer` comes first, and `tir.LowerIntrinsics` where `exp` and its like are to be vector
//! code; `tir.UnrollLoop` afterwards.

use tenon_plugin_api::prelude::*;

use crate::loops::{bound_variable, constant_extent, with_kind};
use crate::widen::widen;

/// Up to so many vectors of one loop stand one after another.
const MAX_UNROLLED_VECTORS: i64 = 4;
/// Shorter vectors are not worth their code.
const MIN_LANES: i64 = 4;

/// Turns vectorized loops into vector code.
#[pass(
    name = "tir.VectorizeLoop",
    aliases = ["tir.transform.VectorizeLoop"],
    phase = "target",
    establishes = ["no_vectorized_loop"],
    requires = ["tir.FlattenBuffer"],
    idempotent = true
)]
fn vectorize_loop(
    func: PrimFunc,
    _: &Module,
    cx: &PassContext,
    options: Options,
) -> Result<PrimFunc> {
    let lanes = lanes(options.lanes, cx);
    let mut rw = func.edit();
    for expr in rw.post_order() {
        let View::For { kind: LoopKind::Vectorized, body, .. } = rw.view(expr) else { continue };
        let vector_code = match constant_extent(rw.body(), expr) {
            Some(steps) => {
                let template = Template::of(rw.body(), body);
                vectorize(&mut rw, expr, &template, steps, lanes)
            }
            None => Err("its number of steps is not constant"),
        };
        let replacement = vector_code.unwrap_or_else(|reason| {
            let name = match rw.view(bound_variable(rw.body(), expr)) {
                View::Var { name } => rw.name_of(name),
                _ => String::new(),
            };
            cx.note(&format!("the vectorized loop over `{name}` runs in steps: {reason}"));
            with_kind(&mut rw, expr, LoopKind::Serial)
        });
        rw.replace(expr, replacement);
    }
    Ok(rw.finish()?.into())
}

#[derive(Options)]
struct Options {
    /// steps of one vector; 0 for what the target's registers hold
    #[option(default = 0, min = 0, max = 1024)]
    lanes: i64,
}

/// How many steps one vector takes, where so many are `wanted`; 0 for what the target's registers hold.
pub(crate) fn lanes(wanted: i64, cx: &PassContext) -> i64 {
    match wanted {
        1.. => wanted,
        _ => (cx.target().int("vector_bits").unwrap_or(128) / 32).max(1),
    }
}

/// The code of a loop, or why there is none.
fn vectorize(
    rw: &mut Rewriter,
    stmt: Expr,
    body: &Template,
    steps: i64,
    lanes: i64,
) -> std::result::Result<Expr, &'static str> {
    let View::For { min, attrs, .. } = rw.view(stmt) else { return Err("it is no loop") };
    let var = bound_variable(rw.body(), stmt);
    let mut pieces = Vec::new();
    let mut first = 0;
    let mut width = lanes;
    while width >= MIN_LANES.min(lanes) && first < steps {
        let vectors = (steps - first) / width;
        if vectors > 0 {
            let start = rw.index(first);
            let start = rw.add(min, start);
            pieces.push(vector_loop(rw, (var, attrs), body, start, vectors, width as u16)?);
        }
        first += vectors * width;
        width /= 2;
    }
    if first < steps {
        let counter = rw.rebuild(var, &[]);
        let start = rw.index(first);
        let start = rw.add(min, start);
        let value = rw.add(counter, start);
        let single = body.copy(rw, &[(var, value)]);
        let kind = if steps - first < MIN_LANES { LoopKind::Unrolled } else { LoopKind::Serial };
        pieces.push(rw.for_range(counter, steps - first, kind, single));
    }
    Ok(rw.seq(&pieces))
}

/// A loop over `vectors` vectors from `start` on; one vector needs no loop.
fn vector_loop(
    rw: &mut Rewriter,
    (var, attrs): (Expr, Attrs),
    body: &Template,
    start: Expr,
    vectors: i64,
    lanes: u16,
) -> std::result::Result<Expr, &'static str> {
    if vectors == 1 {
        return widen(rw, body, var, start, lanes);
    }
    let counter = rw.rebuild(var, &[]);
    let first = rw.scaled(counter, lanes as i64, start);
    let vector = widen(rw, body, var, first, lanes)?;
    let kind = if vectors <= MAX_UNROLLED_VECTORS { LoopKind::Unrolled } else { LoopKind::Serial };
    let (zero, vectors) = (rw.index(0), rw.index(vectors));
    Ok(rw.for_loop(counter, zero, vectors, kind, vector, attrs))
}
