//! Spreads the outermost independent loops over the threads.
//!
//! ```ir
//! for i in 0..8 {                          for i in 0..512 parallel {
//!   for j in 0..64 {                =>       for k in 0..100 {
//!     for k in 0..100 {                        y[i//64*6400 + i%64*100 + k] = …
//!       y[i*6400 + j*100 + k] = …            }
//! ```
//!
//! From the outside in, the first loop is taken whose steps neither read nor write what another step
//! writes, and that does enough work to be worth the threads. Loops that directly hold an independent loop
//! and nothing else are joined with it until there are steps enough for all threads to get their share.
//!
//! Nests in which a parallel loop stands are left as they are, and so are programs that the threads of a device run. Work is counted in nodes; a vector operation
//! counts as one, so this comes after `tir.VectorizeLoop`. `tir.Simplify` afterwards joins the parts of
//! the joined variable.

use tenon_plugin_api::prelude::*;

use crate::nest::Nest;

/// What a function that becomes a polynomial costs, in nodes.
const INTRINSIC_WORK: f64 = 16.0;
/// Steps of a loop of which that is not known.
const UNKNOWN_STEPS: f64 = 16.0;

/// Spreads the outermost independent loops over the threads.
#[pass(
    name = "tir.Parallelize",
    opt_level = 2,
    phase = "target",
    requires = ["tir.FlattenBuffer"],
    after = ["tir.VectorizeLoop"],
    before = ["tir.UnrollLoop"],
    idempotent = true
)]
fn parallelize(func: PrimFunc, _: &Module, _: &PassContext, options: Options) -> Result<PrimFunc> {
    let nest = Nest::of(func.view());
    if nest.loops.iter().any(|this| this.kind == LoopKind::ThreadBound) {
        return Ok(func);
    }
    let work = work(nest.body);
    let is_enough = |index: usize| work[nest.loops[index].stmt] >= options.min_work as f64;
    let mut is_taken: Vec<bool> =
        nest.loops.iter().map(|this| this.kind == LoopKind::Parallel).collect();
    for index in (0..is_taken.len()).rev() {
        if let Some(parent) = nest.loops[index].parent {
            is_taken[parent] |= is_taken[index];
        }
    }
    let mut rw = func.edit();
    let mut index = 0;
    while index < nest.loops.len() {
        let inner = nest.loops[index].inner.clone();
        let is_parallel = nest.loops[index].kind == LoopKind::Parallel;
        if is_parallel || !is_enough(index) {
            index = inner.end;
            continue;
        }
        index += 1;
        if is_taken[index - 1] || !is_candidate(&nest, index - 1) {
            continue;
        }
        let group = group_inside(&nest, index - 1, options.min_tasks);
        make_parallel(&mut rw, &nest, &group);
        index = inner.end;
    }
    Ok(rw.finish()?.into())
}

#[derive(Options)]
struct Options {
    /// loops of less work stay serial
    #[option(default = 32768)]
    min_work: u64,
    /// loops are joined up to so many steps
    #[option(default = 64, min = 1)]
    min_tasks: i64,
}

/// What each node costs, in nodes, with all steps of the loops inside.
fn work(body: BodyView<'_>) -> SideTable<f64> {
    let mut work = SideTable::new(body, 0.0);
    for expr in body.post_order() {
        let inner: f64 = body.operands(expr).iter().map(|operand| work[operand]).sum();
        work[expr] = match body.view(expr) {
            View::For { body: stmt, extent, .. } => {
                let steps = match body.view(extent) {
                    View::Int(steps) => steps as f64,
                    _ => UNKNOWN_STEPS,
                };
                steps * (1.0 + work[stmt])
            }
            View::Seq(_) | View::Int(_) | View::Float(_) | View::Buffer { .. } => inner,
            View::Intrinsic { .. } => inner + INTRINSIC_WORK,
            _ => inner + 1.0,
        };
    }
    work
}

fn is_candidate(nest: &Nest<'_>, index: usize) -> bool {
    let this = &nest.loops[index];
    this.kind == LoopKind::Serial
        && this.steps.is_some_and(|steps| steps > 1)
        && nest.is_independent(index)
}

/// The loops from `outer` inwards that become one.
fn group_inside(nest: &Nest<'_>, outer: usize, min_tasks: i64) -> Vec<usize> {
    let mut group = vec![outer];
    let mut steps = nest.loops[outer].steps.unwrap_or(1);
    let mut last = outer;
    while steps < min_tasks
        && starts_at_zero(nest, last)
        && let Some(inner) = nest.perfect_inner(last)
        && is_candidate(nest, inner)
        && starts_at_zero(nest, inner)
    {
        group.push(inner);
        steps = steps.saturating_mul(nest.loops[inner].steps.unwrap_or(1));
        last = inner;
    }
    group
}

fn starts_at_zero(nest: &Nest<'_>, index: usize) -> bool {
    let View::For { min, .. } = nest.body.view(nest.loops[index].stmt) else { return false };
    matches!(nest.body.view(min), View::Int(0))
}

/// One parallel loop in the place of a group, outermost first.
fn make_parallel(rw: &mut Rewriter, nest: &Nest<'_>, group: &[usize]) {
    let (first, last) = (&nest.loops[group[0]], &nest.loops[group[group.len() - 1]]);
    if group.len() == 1 {
        let parallel = crate::loops::with_kind(rw, first.stmt, LoopKind::Parallel);
        return rw.replace(first.stmt, parallel);
    }
    let View::For { body, .. } = rw.view(last.stmt) else { return };
    let var = rw.rebuild(first.var, &[]);
    let mut inner_steps = 1;
    for (place, &index) in group.iter().enumerate().rev() {
        let steps = nest.loops[index].steps.unwrap_or(1);
        let divisor = rw.index(inner_steps);
        let mut value = rw.binary(BinaryOp::FloorDiv, var, divisor);
        if place > 0 {
            let steps = rw.index(steps);
            value = rw.binary(BinaryOp::FloorMod, value, steps);
        }
        rw.replace(nest.loops[index].var, value);
        inner_steps *= steps;
    }
    let parallel = rw.for_range(var, inner_steps, LoopKind::Parallel, body);
    rw.replace(first.stmt, parallel);
}
