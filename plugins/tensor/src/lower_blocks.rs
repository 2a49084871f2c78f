//! Turns blocks into plain statements.
//!
//! ```ir
//! block "sum" (vi: spatial = i, vk: reduce = k) {        if k == 0 {
//!   init { y[vi] = 0.0 }                          =>       y[i] = 0.0
//!   y[vi] = y[vi] + x[vi, vk]                            }
//! }                                                      y[i] = y[i] + x[i, k]
//! ```
//!
//! An iterator is a name for the value it is bound to, so each use reads that value instead. A block
//! runs its initial statement when all of its reduction iterators are at the first value of their domain, which is
//! zero where the block says none; without reduction iterators it always does. A block with a predicate runs where
//! that is true. What a block says of the regions it reads and writes is dropped.
//!
//! Passes that want blocks come first. `tir.Simplify` afterwards removes conditions that are always true.

use tenon_plugin_api::ir::{BlockIter, PrimBlockView};
use tenon_plugin_api::prelude::*;

/// Turns blocks into plain statements.
#[pass(
    name = "tir.LowerBlocks",
    aliases = ["tir.transform.LowerOpaqueBlock", "tir.transform.ConvertBlocksToOpaque"],
    phase = "target",
    establishes = ["no_blocks"],
    idempotent = true
)]
fn lower_blocks(func: PrimFunc, _: &Module, _: &PassContext) -> Result<PrimFunc> {
    let body = func.view();
    let mut rw = func.edit();
    // Iterators go first: what is built below keeps the operands it is given.
    for expr in rw.post_order() {
        if let View::Block(block) = body.view(expr) {
            for pair in block.iters.to_vec().chunks_exact(2) {
                rw.replace(pair[0], pair[1]);
            }
        }
    }
    for expr in rw.post_order() {
        let View::Block(block) = rw.view(expr) else { continue };
        let (stmt, init, predicate) = (block.body, block.init, block.predicate);
        let mut lowered = match init {
            None => stmt,
            Some(init) => {
                let firsts = reductions(&rw, block);
                let guarded = guard(&mut rw, &firsts, init);
                rw.seq(&[guarded, stmt])
            }
        };
        if let Some(predicate) = predicate {
            lowered = rw.if_stmt(predicate, lowered, None);
        }
        rw.replace(expr, lowered);
    }
    Ok(rw.finish()?.into())
}

/// The reduction iterators of a block.
fn reductions(rw: &Rewriter, block: PrimBlockView<'_>) -> Vec<BlockIter> {
    let is_reduction = |iter: &BlockIter| rw.terms().view(iter.kind) == TermView::Str("reduce");
    block.iterators().filter(is_reduction).collect()
}

/// `stmt`, run when all of `iters` are at their first value.
fn guard(rw: &mut Rewriter, iters: &[BlockIter], stmt: Expr) -> Expr {
    let mut condition = None;
    for iter in iters {
        let dtype = rw.body().scalar_ty(iter.binding).map_or(DType::I64, |(dtype, _)| dtype);
        let first = match iter.domain {
            Some([first, _]) => first,
            None => rw.int_of(dtype, 0),
        };
        let is_first = rw.binary(BinaryOp::Eq, iter.binding, first);
        condition = Some(match condition {
            None => is_first,
            Some(others) => rw.binary(BinaryOp::And, others, is_first),
        });
    }
    match condition {
        None => stmt,
        Some(condition) => rw.if_stmt(condition, stmt, None),
    }
}
