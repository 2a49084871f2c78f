//! Vectorizes loops over neighbouring elements.
//!
//! ```ir
//! for i in 0..64 {                     for i in 0..64 {
//!   for j in 0..49 {            =>       for j in 0..49 vectorized {
//!     y[i*49 + j] = x[i*49 + j]            y[i*49 + j] = x[i*49 + j]
//! ```
//!
//! Of each nest of serial loops the innermost is taken whose steps are independent and store side by
//! side. Inside of it there may be loops, names and buffers, but all steps must do the same. Reading side
//! by side, or the same for all steps, is free; each read of elements that lie apart costs as much as
//! some arithmetic, and the loop stays serial when there is not enough of that.
//!
//! Nests with a vectorized loop are left as they are, and so are programs that the threads of a device run.
//! `tir.VectorizeLoop` makes the vector code; `tir.FlattenBuffer`, `tir.Simplify` and `tir.FuseLoops` come first.

use tenon_plugin_api::prelude::*;

use crate::loops::with_kind;
use crate::nest::Nest;

/// A loop of fewer steps has no vector.
const MIN_STEPS: i64 = 4;
/// Nodes of arithmetic for each read of elements that lie apart.
const WORK_PER_GATHER: usize = 12;

/// Vectorizes loops over neighbouring elements.
#[pass(
    name = "tir.VectorizeInnermost",
    opt_level = 2,
    phase = "target",
    requires = ["tir.FlattenBuffer"],
    before = ["tir.VectorizeLoop"],
    idempotent = true
)]
fn vectorize_innermost(func: PrimFunc, _: &Module, _: &PassContext) -> Result<PrimFunc> {
    let nest = Nest::of(func.view());
    // Threads of a device are lanes already.
    if nest.loops.iter().any(|this| this.kind == LoopKind::ThreadBound) {
        return Ok(func);
    }
    let mut rw = func.edit();
    // Loops in which, or around which, there is a vectorized one.
    let mut is_taken = vec![false; nest.loops.len()];
    for (index, this) in nest.loops.iter().enumerate() {
        let around = this.parent.is_some_and(|parent| nest.loops[parent].kind == VECTORIZED);
        is_taken[index] = around || this.parent.is_some_and(|parent| is_taken[parent]);
    }
    for (index, this) in nest.loops.iter().enumerate().rev() {
        if !is_taken[index] && this.kind == LoopKind::Serial && is_worth_it(&nest, index) {
            let vectorized = with_kind(&mut rw, this.stmt, VECTORIZED);
            rw.replace(this.stmt, vectorized);
            is_taken[index] = true;
        }
        if let Some(parent) = this.parent {
            is_taken[parent] |= is_taken[index] || this.kind == VECTORIZED;
        }
    }
    Ok(rw.finish()?.into())
}

const VECTORIZED: LoopKind = LoopKind::Vectorized;

fn is_worth_it(nest: &Nest<'_>, index: usize) -> bool {
    let this = &nest.loops[index];
    if nest.is_settled(index) || this.steps.is_none_or(|steps| steps < MIN_STEPS) {
        return false;
    }
    let accesses = &nest.accesses[this.accesses.clone()];
    let mut gathers = 0;
    for access in accesses {
        let stride = nest.stride(index, access);
        match (access.is_store, nest.is_local(this, access.buffer)) {
            (_, true) if stride == Some(0) => {}
            (_, true) => return false,
            (true, false) if stride == Some(1) => {}
            (true, false) => return false,
            (false, false) => gathers += !matches!(stride, Some(0 | 1)) as usize,
        }
    }
    if !accesses.iter().any(|access| access.is_store) || !nest.is_independent(index) {
        return false;
    }
    work_if_uniform(nest, index).is_some_and(|work| work >= gathers * WORK_PER_GATHER)
}

/// The number of nodes of arithmetic inside of a loop; `None` when its steps differ in what they do, or
/// there is something that has no vector code.
fn work_if_uniform(nest: &Nest<'_>, index: usize) -> Option<usize> {
    let body = nest.body;
    let mut work = 0;
    for step in body.walk(nest.loops[index].stmt) {
        let Walk::Enter(stmt) = step else { continue };
        let values = match body.view(stmt) {
            View::For { .. } if stmt == nest.loops[index].stmt => continue,
            View::For { min, extent, kind: LoopKind::Serial | LoopKind::Unrolled, .. } => {
                (!nest.varies(index, min) && !nest.varies(index, extent)).then_some(())?;
                continue;
            }
            View::IfStmt { cond, .. } if !nest.varies(index, cond) => continue,
            View::Seq(_) => continue,
            View::Alloc { buffer } => {
                let ty = body.ty(buffer)?;
                let (_, shape) = body.terms().static_tensor(ty)?;
                (shape.len() == 1).then_some(())?;
                continue;
            }
            View::Store { value, .. } | View::LetStmt { value, .. } => value,
            _ => return None,
        };
        work += arithmetic(body, values)?;
    }
    Some(work)
}

/// The number of nodes of arithmetic in an expression, those that say where elements lie left out;
/// `None` when it is vector code.
fn arithmetic(body: BodyView<'_>, value: Expr) -> Option<usize> {
    let mut seen = std::collections::HashSet::new();
    let mut stack = vec![value];
    while let Some(expr) = stack.pop() {
        if body.scalar_ty(expr).is_some_and(|(_, lanes)| lanes > 1) {
            return None;
        }
        let is_leaf = matches!(body.view(expr), View::Load { .. } | View::Var { .. });
        if seen.insert(expr) && !is_leaf {
            stack.extend(body.operands(expr).iter());
        }
    }
    Some(seen.len())
}
