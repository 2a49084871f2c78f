//! Turns operators on memory, closures and shapes into what an executor does, with sizes and shapes as values.
//!
//! ```ir
//! %storage: object<storage> = memory.alloc_storage(%size) { align = 64 }
//! %a: f32[n, 4] = memory.alloc_tensor(%storage) { offset = 0, ty = f32[n, 4] }
//! %b: f32[4*n] = memory.view(%a) { ty = f32[4*n] }
//! %f: fn(f32[4]) -> f32[4] = make_closure(@helper, %b)
//! %c: f32[4] = %f(%x)
//! %killed: () = memory.kill(%a)
//! ```
//! becomes
//! ```ir
//! %storage: object<storage> = vm.alloc_storage(%size) { align = 64 }
//! %a: f32[n, 4] = vm.alloc_tensor(%storage, dim(0), shape(n, 4)) { dtype = "f32" }
//! %b: f32[4*n] = vm.view(%a, shape(4*n)) { dtype = "f32" }
//! %f: fn(f32[4]) -> f32[4] = vm.make_closure(@helper, %b)
//! %c: f32[4] = vm.invoke_closure(%f, %x)
//! %killed: () = vm.kill_object(%a)
//! ```
//!
//! `shape_of`, `shape_to_tensor` and `tensor_to_shape` get their names of the executor's as well. Calls of tensor
//! programs, of functions and of something external are what the executor does already. Every tensor has its storage
//! by then, which `relax.LowerAllocTensor` sees to, and blocks are plain; a tensor without a storage and a dataflow
//! block are errors.
//!
//! Code that is compiled ahead of time reads the operators that this pass removes: it is for executors of one's own (`docs/vm.md`).

use tenon_plugin_api::prelude::*;

/// Turns operators on memory, closures and shapes into what an executor does.
#[pass(
    name = "relax.VMBuiltinLower",
    aliases = ["relax.LowerRuntimeBuiltin", "relax.transform.VMBuiltinLower",
               "relax.transform.LowerRuntimeBuiltin"],
    phase = "builtin",
    after = ["relax.LowerAllocTensor", "relax.KillAfterLastUse"],
    idempotent = true
)]
fn vm_builtin_lower(func: Function, _: &Module, cx: &PassContext) -> Result<Function> {
    let mut rw = func.edit();
    for expr in rw.post_order() {
        if let View::Let(bindings) = rw.view(expr)
            && bindings.blocks().iter().any(|block| block.is_dataflow)
        {
            let message = "a dataflow block is left, and what is made here has effects; run relax.ToNonDataflow \
                           before";
            return Err(PassError::new(message).at(expr));
        }
        let View::Call { callee, args, attrs } = rw.view(expr) else { continue };
        let args = args.to_vec();
        let (op, args, attrs) = match rw.view(callee) {
            View::Global { .. } | View::Extern { .. } => continue,
            View::Op { name } => match cx.terms().str(name) {
                "memory.alloc_storage" => alloc_storage(&mut rw, args, attrs),
                "memory.alloc_tensor" => alloc_tensor(&mut rw, expr, args, attrs)?,
                "memory.view" | "reshape" => view(&mut rw, expr, args)?,
                "memory.kill" => ("vm.kill_object", args, attrs),
                "make_closure" => ("vm.make_closure", args, attrs),
                "shape_of" => ("vm.shape_of", args, attrs),
                "shape_to_tensor" => ("vm.shape_to_tensor", args, attrs),
                "tensor_to_shape" => ("vm.tensor_to_shape", args, attrs),
                "bind_dims" => {
                    let message = "a size is found here, which code finds that is compiled ahead of time; the default \
                                   pipeline is for that";
                    return Err(PassError::new(message).at(expr));
                }
                "memory.part" => {
                    let message = "this tensor is a part of another one, as code has it that is compiled ahead of time; the \
                                   default pipeline is for that";
                    return Err(PassError::new(message).at(expr));
                }
                "builtin.alloc_tensor" => {
                    let message = "this tensor has no storage; run relax.LowerAllocTensor before, which gives one \
                                   to every tensor of known rank";
                    return Err(PassError::new(message).at(expr));
                }
                _ => continue,
            },
            _ => ("vm.invoke_closure", [vec![callee], args].concat(), attrs),
        };
        let ty = rw.body().ty(expr);
        let callee = rw.op(op);
        let call = rw.call(callee, &args, attrs, ty);
        rw.replace(expr, call);
    }
    rw.finish()
}

/// What a call becomes: operator, arguments, attributes.
type Lowered = (&'static str, Vec<Expr>, Attrs);

fn alloc_storage(rw: &mut Rewriter, mut args: Vec<Expr>, attrs: Attrs) -> Lowered {
    let cx = rw.cx();
    if let Some(size) = cx.terms().attrs(attrs).int("size") {
        args.push(rw.prim(cx.dim(size)));
    }
    ("vm.alloc_storage", args, cx.without_attr(attrs, "size"))
}

fn alloc_tensor(
    rw: &mut Rewriter,
    call: Expr,
    mut args: Vec<Expr>,
    attrs: Attrs,
) -> Result<Lowered> {
    let cx = rw.cx();
    let offset = cx.terms().attrs(attrs).int("offset").unwrap_or(0);
    args.push(rw.prim(cx.dim(offset)));
    let (dtype, dims) = rw.tensor(call).ok_or_else(|| unknown_rank(call))?;
    args.push(rw.shape(&dims));
    Ok(("vm.alloc_tensor", args, cx.attrs(&[("dtype", dtype.to_string().into())])))
}

/// The shape is an argument where the type does not say it.
fn view(rw: &mut Rewriter, call: Expr, mut args: Vec<Expr>) -> Result<Lowered> {
    let cx = rw.cx();
    let ty = rw.body().ty(call).map(|ty| cx.terms().ty(ty));
    let Some(TypeView::Tensor { dtype, dims }) = ty else { return Err(unknown_rank(call)) };
    match dims {
        Some(dims) => {
            args.truncate(1);
            args.push(rw.shape(dims));
        }
        None if args.len() == 2 => {}
        None => return Err(unknown_rank(call)),
    }
    Ok(("vm.view", args, cx.attrs(&[("dtype", dtype.to_string().into())])))
}

fn unknown_rank(call: Expr) -> PassError {
    PassError::new("the shape of this tensor is not known and no argument says it").at(call)
}
