//! Makes one loop of loops over neighbouring elements.
//!
//! ```ir
//! for i in 0..64 {                          for i in 0..64 {
//!   for j in 0..7 {                           for k in 0..49 {
//!     for k in 0..7 {                  =>       y[i*49 + k] = x[i*49 + k] + b[i]
//!       y[i*49 + j*7 + k] =                   }
//!         x[i*49 + j*7 + k] + b[i]          }
//!     }
//!   }
//! }
//! ```
//!
//! When each access moves as far in one step of the outer loop as in all steps of the inner one, the
//! elements are those of one longer loop, in the same order. So the program does the same, and rows too
//! short for a vector become one that is not. The variables of the loops must not be read for
//! anything but where elements lie. A loop whose steps may run in any order stays apart from one around it whose
//! steps read what steps before have written.
//!
//! `tir.FlattenBuffer` and `tir.Simplify` come first; `tir.Simplify` afterwards removes what is left of
//! the outer variables.

use tenon_plugin_api::prelude::*;

use crate::nest::Nest;

/// Makes one loop of loops over neighbouring elements.
#[pass(
    name = "tir.FuseLoops",
    opt_level = 2,
    phase = "target",
    requires = ["tir.FlattenBuffer"],
    before = ["tir.VectorizeInnermost"],
    idempotent = true
)]
fn fuse_loops(func: PrimFunc, _: &Module, _: &PassContext) -> Result<PrimFunc> {
    let nest = Nest::of(func.view());
    let mut rw = func.edit();
    // The last of a chain of loops each of which holds the next and nothing else.
    for last in (0..nest.loops.len()).rev().filter(|&index| nest.perfect_inner(index).is_none()) {
        let mut inner = last;
        loop {
            let group = group_around(&nest, inner);
            if group.len() > 1 {
                fuse(&mut rw, &nest, &group);
            }
            let outermost = *group.last().expect("a group has its first loop");
            match nest.loops[outermost].parent {
                Some(parent) if nest.perfect_inner(parent) == Some(outermost) => inner = parent,
                _ => break,
            }
        }
    }
    Ok(rw.finish()?.into())
}

/// The loops, from `inner` outwards, that are one loop over neighbouring elements.
fn group_around(nest: &Nest<'_>, inner: usize) -> Vec<usize> {
    let mut group = vec![inner];
    let Some(mut steps) = fusable_steps(nest, inner) else { return group };
    let accesses = &nest.accesses[nest.loops[inner].accesses.clone()];
    let is_free = nest.is_independent(inner);
    let mut outermost = inner;
    while let Some(parent) = nest.loops[outermost].parent
        && nest.perfect_inner(parent) == Some(outermost)
        && let Some(more) = fusable_steps(nest, parent)
        && let Some(product) = steps.checked_mul(more)
        && accesses.iter().all(|access| {
            let (far, near) = (nest.stride(parent, access), nest.stride(inner, access));
            far.is_some() && far == near.and_then(|near| near.checked_mul(steps))
        })
        && (!is_free || nest.is_independent(parent))
    {
        group.push(parent);
        (outermost, steps) = (parent, product);
    }
    group
}

/// The number of steps of a loop that may be part of a longer one.
fn fusable_steps(nest: &Nest<'_>, index: usize) -> Option<i64> {
    let this = &nest.loops[index];
    let View::For { min, attrs, .. } = nest.body.view(this.stmt) else { return None };
    let is_plain = this.kind == LoopKind::Serial
        && attrs == Attrs::NONE
        && matches!(nest.body.view(min), View::Int(0));
    if !is_plain || nest.is_settled(index) || nest.has_value_of_variable(index) {
        return None;
    }
    this.steps.filter(|&steps| steps > 0)
}

/// One loop in the place of a group: the variable of the innermost counts all steps, the others stay zero.
fn fuse(rw: &mut Rewriter, nest: &Nest<'_>, group: &[usize]) {
    let inner = &nest.loops[group[0]];
    let steps = group.iter().filter_map(|&index| nest.loops[index].steps).product();
    let View::For { body, .. } = rw.view(inner.stmt) else { return };
    let zero = rw.index(0);
    for &index in &group[1..] {
        rw.replace(nest.loops[index].var, zero);
    }
    let var = rw.rebuild(inner.var, &[]);
    rw.replace(inner.var, var);
    let fused = rw.for_range(var, steps, LoopKind::Serial, body);
    let outermost = nest.loops[group[group.len() - 1]].stmt;
    rw.replace(outermost, fused);
}
