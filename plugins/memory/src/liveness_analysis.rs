//! Says how much memory the values of each function take.
//!
//! ```ir
//! fn @main(%x: f32[256]) {          fn @main(%x: f32[256]) { peak_bytes = 2048 } {
//!   %a = exp(%x)                      %a = exp(%x)
//!   %b = negative(%a)          =>     %b = negative(%a)
//!   ret %b                            ret %b
//! }                                 }
//! ```
//!
//! `peak_bytes` is the most that is alive at a time, and a note says at which binding. The memory of parameters and
//! constants does not count, nor does that within branches and called functions. The attribute tells of the
//! function as it was then; `raf.MemorySchedule` and `raf.Rematerialization` make it smaller.

use tenon_plugin_api::prelude::*;

use crate::graph_memory::Usage;

/// Says how much memory the values of each function take.
#[pass(
    name = "raf.LivenessAnalysis",
    aliases = ["raf.pass_.LivenessAnalysis", "raf.pass_.EstimateMemory"],
    phase = "optimize",
    until = "builtin",
    requires = ["relax.Normalize"],
    idempotent = true
)]
fn liveness_analysis(mut module: Module, cx: &PassContext) -> Result<Module> {
    module.map_functions(cx, |module, name, func| {
        let body = func.view();
        let usage = match func.result().map(|block| (block, body.view(block))) {
            Some((block, View::Let(bindings))) if !bindings.is_empty() => {
                let usage = Usage::of(body, block, bindings, module);
                let (var, _) = bindings.binding(usage.peak_at);
                let [name, var] =
                    [name, Symbol(body.raw_node(var).data)].map(|name| cx.terms().str(name));
                cx.note(&format!("@{name}: at most {} bytes are alive, at %{var}", usage.peak));
                usage.peak
            }
            _ => 0,
        };
        let attrs = cx.with_attr(func.attrs(), "peak_bytes", (usage as i64).into());
        let mut rw = func.edit();
        if attrs != func.attrs() {
            let root = rw.with_attrs(body.root(), attrs);
            rw.set_root(root);
        }
        rw.finish()
    })?;
    Ok(module)
}
