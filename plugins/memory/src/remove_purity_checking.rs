//! Turns calls that promise to have no effect into plain calls.
//!
//! ```ir
//! %a: f32[4] = call_pure(extern "vendor_scale", %x) { out = f32[4] }
//! %b: f32[4] = call_pure(@helper, %a)
//! ```
//! becomes
//! ```ir
//! %a: f32[4] = extern "vendor_scale"(%x)
//! %b: f32[4] = @helper(%a)
//! ```
//!
//! The promise lets passes on the graph move, merge and drop a call; nothing does so once memory is explicit, and
//! what is called is then called in the order in which it stands. So blocks are plain by then: in a dataflow block
//! nothing may have effects. Nobody else has to be told to stop checking, since whether a call is pure is found, not
//! declared.

use tenon_plugin_api::prelude::*;

/// Turns calls that promise to have no effect into plain calls.
#[pass(
    name = "relax.RemovePurityChecking",
    aliases = ["relax.transform.RemovePurityChecking"],
    phase = "plan",
    establishes = ["no_call_pure"],
    requires = ["relax.ToNonDataflow"],
    before = ["relax.CallTIRRewrite"],
    preserves = ["no_dataflow"],
    idempotent = true
)]
fn remove_purity_checking(func: Function, _: &Module, cx: &PassContext) -> Result<Function> {
    let mut rw = func.edit();
    let call_pure = cx.symbol("call_pure");
    for expr in rw.post_order() {
        let View::Call { callee, args, .. } = rw.view(expr) else { continue };
        if !matches!(rw.view(callee), View::Op { name } if name == call_pure) {
            continue;
        }
        let (args, ty) = (args.to_vec(), rw.body().ty(expr));
        if let Some((&callee, args)) = args.split_first() {
            let call = rw.call(callee, args, Attrs::NONE, ty);
            rw.replace(expr, call);
        }
    }
    rw.finish()
}
