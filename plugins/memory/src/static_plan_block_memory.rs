//! Puts tensors into one storage, at offsets that tensors alive at the same time do not share.
//!
//! ```ir
//! fn @main(%x: f32[256]) {
//!   %a: f32[256] = builtin.alloc_tensor() { ty = f32[256] }
//!   %done: () = @exp(%x, %a)
//!   %b: f32[256] = builtin.alloc_tensor() { ty = f32[256] }
//!   %done_1: () = @log(%a, %b)
//!   ret %b
//! }
//! ```
//! becomes
//! ```ir
//! fn @main(%x: f32[256]) {
//!   %storage: object<storage> = memory.alloc_storage() { align = 64, size = 1024 }
//!   %a: f32[256] = memory.alloc_tensor(%storage) { offset = 0, ty = f32[256] }
//!   %done: () = @exp(%x, %a)
//!   %b: f32[256] = builtin.alloc_tensor() { ty = f32[256] }
//!   %done_1: () = @log(%a, %b)
//!   ret %b
//! }
//! ```
//!
//! A tensor is alive from the binding that makes it to the last one that may touch it ([`mod@crate::lifetimes`]): a
//! view or a tuple keeps what it is made of alive. What may be touched after the function or out of its
//! sight keeps memory of its own: results, and what a branch, a closure or a call of anything but a tensor
//! program is given. So do tensors whose size is not known. Offsets are found by [`offsets`]; one storage
//! with offsets takes less memory than a pool of storages that are reused whole, and code that is compiled
//! ahead of time pays nothing for it.
//!
//! `relax.CallTIRRewrite` comes first; it makes what is planned here.

mod offsets;

use std::collections::HashMap;

use tenon_plugin_api::prelude::*;

use offsets::Tensor;

use crate::lifetimes::{bytes_of, lifetimes};
use crate::roles::Roles;

/// Bytes that each tensor starts at a multiple of: a cache line, and the widest vector.
const ALIGN: u64 = 64;

/// Puts tensors into one storage, at offsets that tensors alive at the same time do not share.
#[pass(
    name = "relax.StaticPlanBlockMemory",
    aliases = ["relax.transform.StaticPlanBlockMemory", "relay._transform.MemoryPlan",
               "raf.pass_.MemoryPlan"],
    opt_level = 1,
    phase = "plan",
    after = ["relax.CallTIRRewrite"],
    idempotent = true
)]
fn static_plan_block_memory(func: Function, module: &Module, cx: &PassContext) -> Result<Function> {
    let mut rw = func.edit();
    let Some(old_let) = func.result() else { return Ok(func) };
    let View::Let(bindings) = rw.view(old_let) else { return Ok(func) };
    let body = func.view();
    let mut roles = Roles::new(body, module, cx);
    let made = lifetimes(body, bindings, |value| roles.of(value));
    let tensors: Vec<Tensor> = made
        .into_iter()
        .filter_map(|made| {
            let (_, value) = bindings.binding(made.birth);
            let size = bytes_of(body, value)?.checked_next_multiple_of(ALIGN)?;
            let is_unplaced = roles.is_unplaced(value);
            is_unplaced.then_some(Tensor { birth: made.birth, death: made.death?, size })
        })
        .collect();
    let Some(first) = tensors.first().map(|tensor| tensor.birth) else { return Ok(func) };
    let plan = offsets::place(&tensors);

    let (blocks, result) = (bindings.blocks(), bindings.result());
    let old: Vec<(Expr, Expr)> = bindings.bindings().collect();
    let storage_type = cx.object_type("storage");
    let storage = rw.var("storage", Some(storage_type));
    let alloc_tensor = rw.op("memory.alloc_tensor");
    let mut attrs: HashMap<(u64, Type), Attrs> = HashMap::new();
    let mut planned = tensors.iter().zip(&plan.offsets).peekable();
    let mut new_blocks = Vec::with_capacity(blocks.len());
    for block in blocks {
        let mut new = Vec::with_capacity(block.len + 1);
        for (index, &(var, mut value)) in old.iter().enumerate().skip(block.first).take(block.len) {
            if index == first {
                new.push((storage, alloc_storage(&mut rw, plan.size, storage_type)));
            }
            if let Some((_, &offset)) = planned.next_if(|(tensor, _)| tensor.birth == index)
                && let Some(ty) = rw.body().ty(value)
            {
                let entries = || [("offset", (offset as i64).into()), ("ty", ty.into())];
                let attrs = attrs.entry((offset, ty)).or_insert_with(|| cx.attrs(&entries()));
                value = rw.call(alloc_tensor, &[storage], *attrs, Some(ty));
            }
            new.push((var, value));
        }
        new_blocks.push((block.is_dataflow, new));
    }
    let ty = rw.body().ty(old_let);
    let new_let = rw.let_blocks(&new_blocks, result);
    rw.set_type(new_let, ty);
    rw.replace(old_let, new_let);
    rw.finish()
}

fn alloc_storage(rw: &mut Rewriter, size: u64, ty: Type) -> Expr {
    let alloc = rw.op("memory.alloc_storage");
    let attrs = rw.cx().attrs(&[("align", (ALIGN as i64).into()), ("size", (size as i64).into())]);
    rw.call(alloc, &[], attrs, Some(ty))
}
