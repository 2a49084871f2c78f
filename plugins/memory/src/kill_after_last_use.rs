//! Says of tensors and storages when they are not used any more.
//!
//! ```ir
//! %a: f32[4] = memory.alloc_tensor(%storage) { offset = 0, ty = f32[4] }
//! %done: () = @exp(%x, %a)
//! %done_1: () = @log(%a, %b)
//! %killed: () = memory.kill(%a)
//! ```
//!
//! The kill stands right behind the last binding that may touch the memory: a view or a tuple keeps it alive, and
//! a storage lives as long as the tensors in it. What is returned, or is given to a branch, a closure or a call of
//! anything but a tensor program, is not killed; nor is what a branch makes.
//!
//! Code that is compiled ahead of time has all of its memory while it runs, so nothing is gained there, and the
//! pass is in no pipeline. The reference evaluator takes the contents of what is killed away, so `--validate` finds
//! a use that comes too late, and a wrong plan of memory with it.

use tenon_plugin_api::prelude::*;

use crate::lifetimes::lifetimes;
use crate::roles::Roles;

/// Says of tensors and storages when they are not used any more.
#[pass(
    name = "relax.KillAfterLastUse",
    aliases = ["relax.transform.KillAfterLastUse"],
    phase = "plan",
    requires = ["relax.ToNonDataflow"],
    after = ["relax.StaticPlanBlockMemory", "relax.LowerAllocTensor"],
    idempotent = true
)]
fn kill_after_last_use(func: Function, module: &Module, cx: &PassContext) -> Result<Function> {
    let body = func.view();
    let Some(block) = func.result() else { return Ok(func) };
    let View::Let(bindings) = body.view(block) else { return Ok(func) };
    let mut roles = Roles::new(body, module, cx);
    // What each binding is the last use of; those made last come first, a tensor before its storage.
    let mut ends: Vec<(usize, Expr)> = Vec::new();
    for made in lifetimes(body, block, |value| roles.of(value)).into_iter().rev() {
        let Some(death) = made.death else { continue };
        let (var, _) = bindings.binding(made.birth);
        let is_killed = roles.killed(bindings.binding(death).1) == Some(var);
        if !is_killed {
            ends.push((death, var));
        }
    }
    if ends.is_empty() {
        return Ok(func);
    }
    ends.sort_by_key(|&(death, _)| death);
    let mut rw = func.edit();
    let kill = rw.op("memory.kill");
    let nothing = cx.tuple_type(&[]);
    let mut ends = ends.into_iter().peekable();
    let mut now = 0;
    rw.rewrite_bindings(block, |rw, list, is_dataflow, var, value| {
        list.bind(is_dataflow, var, value);
        while let Some((_, dead)) = ends.next_if(|&(death, _)| death == now) {
            let killed = rw.call(kill, &[dead], Attrs::NONE, Some(nothing));
            list.bind_new(rw, false, "killed", killed);
        }
        now += 1;
        Ok(())
    })?;
    rw.finish()
}
