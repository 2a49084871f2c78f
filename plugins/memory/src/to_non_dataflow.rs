//! Turns dataflow blocks into plain ones.
//!
//! ```ir
//! dataflow {                    %a = exp(%x)
//!   %a = exp(%x)          =>    %b = negative(%a)
//!   %b = negative(%a)           ret %b
//! }
//! ret %b
//! ```
//!
//! The blocks of a function become one, in their order, so nothing is evaluated earlier or later. What a
//! dataflow block promises, that its bindings have no effects, is given up: passes that explicitly make
//! memory and write to it come afterwards, and those that move bindings within blocks come before.

use tenon_plugin_api::prelude::*;

/// Turns dataflow blocks into plain ones.
#[pass(
    name = "relax.ToNonDataflow",
    aliases = ["relax.transform.ToNonDataflow"],
    phase = "plan",
    establishes = ["no_dataflow"],
    idempotent = true
)]
fn to_non_dataflow(func: Function, _: &Module, _: &PassContext) -> Result<Function> {
    let mut rw = func.edit();
    for expr in rw.post_order() {
        let View::Let(bindings) = rw.view(expr) else { continue };
        if bindings.blocks().iter().all(|block| !block.is_dataflow) {
            continue;
        }
        let (all, result) = (bindings.bindings().collect(), bindings.result());
        let ty = rw.body().ty(expr);
        let plain = rw.let_blocks(&[(false, all)], result);
        rw.set_type(plain, ty);
        rw.replace(expr, plain);
    }
    rw.finish()
}
