//! Gives each tensor that has no place yet a storage of its own.
//!
//! ```ir
//! %a: f32[2, 3] = builtin.alloc_tensor() { ty = f32[2, 3] }
//! ```
//! becomes
//! ```ir
//! %storage: object<storage> = memory.alloc_storage() { align = 64, size = 24 }
//! %a: f32[2, 3] = memory.alloc_tensor(%storage) { offset = 0, ty = f32[2, 3] }
//! ```
//! and where dimensions are symbols the size is a value: `memory.alloc_storage(dim(12*n))`.
//!
//! Tensors that share a storage are placed by `relax.StaticPlanBlockMemory` before; what it leaves is results, and
//! what is out of its sight. A storage is as large as its tensor, so that code generation can write a result to
//! the caller's memory. A tensor of unknown rank stays as it is.

use tenon_plugin_api::prelude::*;

use crate::lifetimes::{bytes_of, symbolic_bytes};

/// Gives each tensor that has no place yet a storage of its own.
#[pass(
    name = "relax.LowerAllocTensor",
    aliases = ["relax.transform.LowerAllocTensor", "relay._transform.ManifestAlloc",
               "raf.pass_.ManifestAlloc"],
    phase = "plan",
    after = ["relax.StaticPlanBlockMemory"],
    idempotent = true
)]
fn lower_alloc_tensor(func: Function, _: &Module, cx: &PassContext) -> Result<Function> {
    let body = func.view();
    let mut rw = func.edit();
    let alloc = cx.symbol("builtin.alloc_tensor");
    let is_alloc = |value: Expr| match body.view(value) {
        View::Call { callee, .. } => {
            matches!(body.view(callee), View::Op { name } if name == alloc)
        }
        _ => false,
    };
    if !body.post_order().any(is_alloc) {
        return Ok(func);
    }
    let storage_type = cx.object_type("storage");
    let alloc_storage = rw.op("memory.alloc_storage");
    let alloc_tensor = rw.op("memory.alloc_tensor");
    for expr in body.post_order().filter(|&expr| body.kind(expr) == Kind::LET) {
        rw.rewrite_bindings(expr, |rw, list, is_dataflow, var, value| {
            let ty = body.ty(value).filter(|_| is_alloc(value));
            let bytes = ty.and_then(|ty| match bytes_of(body, value) {
                Some(bytes) => Some((ty, cx.dim(bytes as i64))),
                None => Some((ty, symbolic_bytes(ty, cx)?)),
            });
            let Some((ty, bytes)) = bytes else {
                list.bind(is_dataflow, var, value);
                return Ok(());
            };
            let align = ("align", 64i64.into());
            let storage = match cx.terms().dim_value(bytes) {
                Some(size) => {
                    let attrs = cx.attrs(&[align, ("size", size.into())]);
                    rw.call(alloc_storage, &[], attrs, Some(storage_type))
                }
                None => {
                    let size = rw.prim(bytes);
                    rw.call(alloc_storage, &[size], cx.attrs(&[align]), Some(storage_type))
                }
            };
            let storage = list.bind_new(rw, is_dataflow, "storage", storage);
            let attrs = cx.attrs(&[("offset", 0i64.into()), ("ty", ty.into())]);
            let tensor = rw.call(alloc_tensor, &[storage], attrs, Some(ty));
            list.bind(is_dataflow, var, tensor);
            Ok(())
        })?;
    }
    rw.finish()
}
