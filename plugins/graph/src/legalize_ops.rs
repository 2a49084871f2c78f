//! Turns operator calls into calls of tensor programs.
//!
//! ```ir
//! fn @main(%x: f32[4]) {           fn @main(%x: f32[4]) {
//!   %a = exp(%x)             =>      %a = call_tir(@exp, %x) { out = f32[4] }
//!   ret %a                           ret %a
//! }                                }
//!                                  private prim @exp(%A: f32[4], out %B: f32[4]) { … }
//! ```
//!
//! Each operator states its own tensor program; the host makes it for the types of the call. Calls with the
//! same operator, attributes and types share one program, found by one look-up. Tuples are passed field by
//! field, since a program takes buffers. Reshapes stay as they are: they move no data, and memory planning
//! makes them views; expanding and squeezing axes become reshapes here.

use std::collections::HashMap;

use tenon_plugin_api::prelude::*;

/// Turns operator calls into calls of tensor programs.
#[pass(
    name = "relax.LegalizeOps",
    aliases = ["relax.transform.LegalizeOps"],
    opt_level = 0,
    phase = "legalize",
    requires = ["relax.Normalize"],
    establishes = ["no_tensor_ops"],
    idempotent = true
)]
fn legalize_ops(mut module: Module, cx: &PassContext) -> Result<Module> {
    let mut programs = Programs::default();
    for (name, func) in module.functions() {
        if func.is_prim() {
            continue;
        }
        let legal = legalize_function(&func, &mut module, &mut programs, cx)?;
        if !legal.is_same(&func) {
            module.insert(name, &legal);
        }
    }
    Ok(module)
}

/// The programs made so far, by what they compute.
#[derive(Default)]
struct Programs {
    by_call: HashMap<(Symbol, Attrs, Vec<Type>, Type), Symbol>,
}

fn legalize_function(
    func: &Function,
    module: &mut Module,
    programs: &mut Programs,
    cx: &PassContext,
) -> Result<Function> {
    let body = func.view();
    let mut rw = func.edit();
    for expr in body.post_order() {
        if cx.is_cancelled() {
            return Err(PassError::cancelled());
        }
        let View::Call { callee, args, attrs } = body.view(expr) else { continue };
        let View::Op { name: op } = body.view(callee) else { continue };
        let op_name = body.terms().str(op);
        if !is_legalized(op_name) || !cx.is_pure(op_name) {
            continue;
        }
        let Some(out) = body.ty(expr) else {
            return Err(PassError::new(format!("`{op_name}` has no type")).at(expr));
        };
        if matches!(op_name, "expand_dims" | "squeeze") {
            let view = as_reshape(&mut rw, body, args.at(0), out)
                .ok_or_else(|| PassError::new(format!("`{op_name}` has no known rank")).at(expr))?;
            rw.replace(expr, view);
            continue;
        }
        let types: Option<Vec<Type>> = args.iter().map(|arg| body.ty(arg)).collect();
        let types = types.ok_or_else(|| PassError::new("an argument has no type").at(expr))?;
        let key = (op, attrs, types, out);
        let program = match programs.by_call.get(&key) {
            Some(&program) => program,
            None => {
                let made = cx
                    .legalize(op, attrs, &key.2, out)
                    .map_err(|error| PassError::new(error.message().to_owned()).at(expr))?;
                let program = module.fresh_name(&op_name.replace('.', "_"));
                module.insert(program, &private(&made)?);
                programs.by_call.insert(key, program);
                program
            }
        };
        let operands = rw.body().operands(expr).skip(1).to_vec();
        let tensors = flatten(&mut rw, &operands);
        let call = call_tir(&mut rw, program, &tensors, out);
        rw.replace(expr, call);
    }
    rw.finish()
}

/// Operators that stay: views, which memory planning handles, and what is below operators already.
fn is_legalized(op: &str) -> bool {
    let is_low = matches!(op, "call_tir" | "reshape" | "shape_of");
    !is_low && !op.starts_with("memory.") && !op.starts_with("builtin.")
}

/// `call_tir(@program, tensors…) { out = type }`.
fn call_tir(rw: &mut Rewriter, program: Symbol, tensors: &[Expr], out: Type) -> Expr {
    let name = rw.name_of(program);
    let callee = rw.op("call_tir");
    let args: Vec<Expr> = [rw.global(&name)].iter().chain(tensors).copied().collect();
    let attrs = rw.cx().attrs(&[("out", out.into())]);
    rw.call(callee, &args, attrs, Some(out))
}

fn as_reshape(rw: &mut Rewriter, body: BodyView<'_>, x: Expr, out: Type) -> Option<Expr> {
    let (_, dims) = body.terms().tensor(out)?;
    let x = rw.body().resolve(x);
    let shape = rw.shape(dims);
    let callee = rw.op("reshape");
    Some(rw.call(callee, &[x, shape], Attrs::NONE, Some(out)))
}

/// The tensors among arguments: tuples field by field, shapes and scalars left out.
fn flatten(rw: &mut Rewriter, args: &[Expr]) -> Vec<Expr> {
    let mut tensors = Vec::with_capacity(args.len());
    let mut pending: Vec<Expr> = args.iter().rev().copied().collect();
    while let Some(arg) = pending.pop() {
        let Some(ty) = rw.body().ty(arg) else { continue };
        let count = match rw.terms().ty(ty) {
            TypeView::Tensor { .. } => {
                tensors.push(arg);
                continue;
            }
            TypeView::Tuple(fields) => fields.len() as u32,
            _ => continue,
        };
        let definition = rw.definition(arg);
        let fields = match rw.view(definition) {
            View::Tuple(fields) => fields.to_vec(),
            _ => (0..count).map(|index| rw.tuple_get_item(arg, index)).collect(),
        };
        pending.extend(fields.into_iter().rev());
    }
    tensors
}

/// The program, marked as private to the module.
fn private(program: &Function) -> Result<Function> {
    let mut rw = program.edit();
    let root = rw.body().root();
    let hidden = rw.private(root);
    rw.set_root(hidden);
    rw.finish()
}
