//! Puts the threads of a device around all that they run, and barriers between.
//!
//! ```ir
//! for %b in 0..4 thread "blockIdx.x" {                      for %b in 0..4 thread "blockIdx.x" {
//!   alloc %S: f32[64] "shared"                                alloc %S: f32[64] "shared"
//!   for %t in 0..64 thread "threadIdx.x" { %S[%t] = … }       for %t in 0..64 thread "threadIdx.x" {
//!   for %u in 0..64 thread "threadIdx.x" { … %S[%u - 1] … } =>  %S[%t] = …
//! }                                                             eval barrier()
//!                                                               … %S[%t - 1] … } }
//! ```
//!
//! A device starts its threads once. Where a schedule leaves loops over threads one after the other, each of which is done before the
//! next begins, all threads run what is in them, and wait for each other where one of them may touch what another one has
//! written, or write what another one touches. A buffer that is not shared becomes one of each thread, which has to be all that
//! the thread needs. A program that is one nest of such loops is said to be `bound`, and nothing else:
//! its steps run at once from there on ([ir.md](../ir.md)).
//!
//! `tir.CompactBuffers` comes first, and `tir.LowerBlocks` afterwards: blocks say what is read and written.

use tenon_plugin_api::ir::BOUND;
use tenon_plugin_api::prelude::*;
use tenon_schedule::bind_threads as bound;

/// Puts the threads of a device around all that they run, and barriers between.
#[pass(
    name = "tir.BindThreads",
    aliases = ["tir.transform.UnifyThreadBinding", "tir.transform.ThreadSync"],
    phase = "target",
    before = ["tir.LowerBlocks"],
    after = ["tir.ApplySchedules", "tir.CompactBuffers"],
    idempotent = true
)]
fn bind_threads(func: PrimFunc, _: &Module, cx: &PassContext) -> Result<PrimFunc> {
    let body = func.view();
    let is_bound = |expr| matches!(body.view(expr), View::For { kind: LoopKind::ThreadBound, .. });
    let has_blocks = body.post_order().any(|expr| body.kind(expr) == Kind::BLOCK);
    let is_done = cx.terms().attrs(func.attrs()).bool(BOUND) == Some(true);
    match has_blocks && !is_done && body.post_order().any(is_bound) {
        true => bound(&func),
        false => Ok(func),
    }
}
