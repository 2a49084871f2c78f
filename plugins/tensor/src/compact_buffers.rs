//! Makes buffers where they are used, and no larger than that.
//!
//! ```ir
//! alloc %B: f32[128, 128]                          for %i in 0..128 {
//! for %i in 0..128 {                                 alloc %B: f32[1, 128]
//!   for %j … { block "B" … %B[%vi, %vj] = … }   =>   for %j … { block "B" … %B[%vi - %i, %vj] = … }
//!   for %j … { block "C" … %B[%vi, %vj] … }          for %j … { block "C" … %B[%vi - %i, %vj] … }
//! }                                                }
//! ```
//!
//! That is what a schedule leaves that brings a block to its consumers. A buffer is made in the innermost loop in whose steps
//! everything that is read was written before, as large as one step accesses; where that is no constant it stays.
//!
//! `tir.ApplySchedules` comes first, and `tir.LowerBlocks` afterwards: what is not in a block is left alone.

use tenon_plugin_api::prelude::*;
use tenon_schedule::compact_buffers as compacted;

/// Makes buffers where they are used, and no larger than that.
#[pass(
    name = "tir.CompactBuffers",
    aliases = [
        "tir.transform.CompactBufferAllocation",
        "tir.transform.PlanAndUpdateBufferAllocationLocation"
    ],
    phase = "target",
    before = ["tir.LowerBlocks"],
    after = ["tir.ApplySchedules"],
    opt_level = 1,
    idempotent = true
)]
fn compact_buffers(func: PrimFunc, _: &Module, _: &PassContext) -> Result<PrimFunc> {
    let body = func.view();
    let has = |kind: Kind| body.post_order().any(|expr| body.kind(expr) == kind);
    match has(Kind::BLOCK) && has(Kind::ALLOC) {
        true => compacted(&func),
        false => Ok(func),
    }
}
