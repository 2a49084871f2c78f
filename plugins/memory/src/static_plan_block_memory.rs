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
//! view or a tuple keeps what it is made of alive, a choice what its branches give, and a call of a function its arguments.
//! What may be touched after the function or out of its sight keeps memory of its own: results, and what a call of
//! something external or of a value is given. Each branch of a choice has storages of its own, and what it gives keeps memory of its own. Offsets are found by [`offsets`]; one storage
//! with offsets takes less memory than a pool of storages that are reused whole, and code that is compiled
//! ahead of time pays nothing for it. Tensors whose sizes are expressions share storages that are reused whole
//! ([`storages`]): `memory.alloc_storage(dim(4*n))`. A tensor of unknown rank stays as it is.
//!
//! `relax.CallTIRRewrite` comes first; it makes what is planned here.

mod offsets;
mod storages;

use std::collections::{HashMap, HashSet};

use tenon_plugin_api::prelude::*;

use offsets::Tensor;
use storages::SymbolicTensor;

use crate::found_symbols::found_symbols;
use crate::lifetimes::{Made, all_lifetimes, bytes_of, symbolic_bytes};
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
    let found = found_symbols(func.view());
    let mut roles = Roles::new(func.view(), module, cx);
    for (block, made) in all_lifetimes(func.view(), |value| roles.of(value)) {
        plan_block(&mut rw, func.view(), (block, &found), made, &roles, cx);
    }
    rw.finish()
}

/// Puts the tensors that the bindings of a `let` make into storages.
fn plan_block(
    rw: &mut Rewriter,
    body: BodyView<'_>,
    (old_let, found): (Expr, &HashSet<Symbol>),
    made: Vec<Made>,
    roles: &Roles<'_>,
    cx: &PassContext,
) {
    let View::Let(bindings) = body.view(old_let) else { return };
    let (mut tensors, mut symbolic) = (Vec::new(), Vec::new());
    for made in made {
        let (_, value) = bindings.binding(made.birth);
        let Some(death) = made.death.filter(|_| roles.is_unplaced(value)) else { continue };
        let birth = made.birth;
        match bytes_of(body, value).and_then(|bytes| bytes.checked_next_multiple_of(ALIGN)) {
            Some(size) => tensors.push(Tensor { birth, death, size }),
            None => {
                symbolic.extend(
                    body.ty(value)
                        .and_then(|ty| symbolic_bytes(ty, cx))
                        .map(|size| SymbolicTensor { birth, death, size }),
                )
            }
        }
    }
    let mut list = Planned::default();
    list.place(rw, &tensors);
    list.share(rw, &symbolic, found, cx);
    if list.tensors.is_empty() {
        return;
    }
    let (blocks, result) = (bindings.blocks(), bindings.result());
    let old: Vec<(Expr, Expr)> = bindings.bindings().collect();
    let alloc_tensor = rw.op("memory.alloc_tensor");
    let mut attrs: HashMap<(u64, Type), Attrs> = HashMap::new();
    let mut new_blocks = Vec::with_capacity(blocks.len());
    for block in blocks {
        let mut new = Vec::with_capacity(block.len + 1);
        for (index, &(var, mut value)) in old.iter().enumerate().skip(block.first).take(block.len) {
            if let Some(&Place { storage, offset, alloc }) = list.tensors.get(&index)
                && let Some(ty) = body.ty(value)
            {
                new.extend(alloc.map(|alloc| (storage, alloc)));
                let entries = || [("offset", (offset as i64).into()), ("ty", ty.into())];
                let attrs = attrs.entry((offset, ty)).or_insert_with(|| cx.attrs(&entries()));
                value = rw.call(alloc_tensor, &[storage], *attrs, Some(ty));
            }
            new.push((var, value));
        }
        new_blocks.push((block.is_dataflow, new));
    }
    let new_let = rw.let_blocks(&new_blocks, result);
    rw.set_type(new_let, body.ty(old_let));
    rw.replace(old_let, new_let);
}

/// Where a tensor lies.
struct Place {
    /// The variable of the storage.
    storage: Expr,
    offset: u64,
    /// What makes the storage, for the first tensor in it.
    alloc: Option<Expr>,
}

/// The places of tensors, by the bindings that make them.
#[derive(Default)]
struct Planned {
    tensors: HashMap<usize, Place>,
}

impl Planned {
    /// Tensors of known size: offsets in one storage.
    fn place(&mut self, rw: &mut Rewriter, tensors: &[Tensor]) {
        if tensors.is_empty() {
            return;
        }
        let plan = offsets::place(tensors);
        let align = ("align", (ALIGN as i64).into());
        let attrs = rw.cx().attrs(&[align, ("size", (plan.size as i64).into())]);
        let (storage, alloc) = alloc_storage(rw, &[], attrs);
        let mut alloc = Some(alloc);
        for (tensor, &offset) in tensors.iter().zip(&plan.offsets) {
            self.tensors.insert(tensor.birth, Place { storage, offset, alloc: alloc.take() });
        }
    }

    /// Tensors whose sizes are expressions: storages that are reused whole.
    fn share(
        &mut self,
        rw: &mut Rewriter,
        tensors: &[SymbolicTensor],
        found: &HashSet<Symbol>,
        cx: &PassContext,
    ) {
        let plan = storages::share(cx, tensors, found);
        let mut made: Vec<(Expr, Option<Expr>)> = Vec::with_capacity(plan.sizes.len());
        for &size in &plan.sizes {
            let size = rw.prim(size);
            let attrs = cx.attrs(&[("align", (ALIGN as i64).into())]);
            let (storage, alloc) = alloc_storage(rw, &[size], attrs);
            made.push((storage, Some(alloc)));
        }
        for (tensor, &storage) in tensors.iter().zip(&plan.of) {
            let (storage, alloc) = &mut made[storage];
            let place = Place { storage: *storage, offset: 0, alloc: alloc.take() };
            self.tensors.insert(tensor.birth, place);
        }
    }
}

/// A variable for a storage, and what makes it.
fn alloc_storage(rw: &mut Rewriter, args: &[Expr], attrs: Attrs) -> (Expr, Expr) {
    let ty = rw.cx().object_type("storage");
    let op = rw.op("memory.alloc_storage");
    let alloc = rw.call(op, args, attrs, Some(ty));
    (rw.var("storage", Some(ty)), alloc)
}
