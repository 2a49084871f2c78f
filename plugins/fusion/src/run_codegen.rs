//! Has code generators compile the functions that are theirs.
//!
//! ```ir
//! %a = @fused_add_acme(%x)                          %a = call_tir(@fused_add_acme, %x) { out = f32[8] }
//! …                                           =>    …
//! private fn @fused_add_acme(%x: f32[8])            private prim @fused_add_acme(%x: f32[8], out %0: f32[8]) {
//!     -> f32[8] { Codegen = "acme" } { … }            eval extern "fused_add_acme"(const(u8[…], …), %x, %0)
//!                                                   }
//! ```
//!
//! Each code generator is asked once, for all of its functions, in the order in which the module has the first of
//! each. What it makes is an object in the module, a constant, so the module can be written, read and compiled
//! later, without the code generator. From then on its functions are tensor programs like others: memory is
//! planned for them, and calls of them cost what calls of others do.

use std::collections::{HashMap, HashSet};

use tenon_plugin_api::prelude::*;

/// Has code generators compile the functions that are theirs.
#[pass(
    name = "relax.RunCodegen",
    aliases = ["relax.transform.RunCodegen"],
    phase = "optimize",
    after = ["relax.FuseOpsByPattern", "relax.MergeCompositeFunctions"],
    idempotent = true
)]
fn run_codegen(mut module: Module, cx: &PassContext) -> Result<Module> {
    let mut vendors: Vec<(String, Vec<Symbol>)> = Vec::new();
    let mut results: HashMap<Symbol, Type> = HashMap::new();
    for (name, func) in module.functions() {
        let Some(vendor) = cx.terms().attrs(func.attrs()).str("Codegen") else { continue };
        let body = func.view();
        let View::Function { result: Some(result), .. } = body.view(body.root()) else { continue };
        results.insert(name, result);
        match vendors.iter_mut().find(|(other, _)| other == vendor) {
            Some((_, names)) => names.push(name),
            None => vendors.push((vendor.to_owned(), vec![name])),
        }
    }
    let mut programs: Vec<(Symbol, Function)> = Vec::new();
    for (vendor, names) in &vendors {
        if cx.is_cancelled() {
            return Err(PassError::cancelled());
        }
        programs.extend(names.iter().copied().zip(cx.generate_code(vendor, &module, names)?));
    }
    if programs.is_empty() {
        return Ok(module);
    }
    module.map_functions(cx, |_, name, func| match results.contains_key(&name) {
        true => Ok(func),
        false => call_programs(&func, &results, cx),
    })?;
    for (name, program) in &programs {
        module.insert(*name, program);
    }
    remove_composites(&mut module, cx);
    Ok(module)
}

/// Calls of the functions become calls of tensor programs.
fn call_programs(
    func: &Function,
    results: &HashMap<Symbol, Type>,
    cx: &PassContext,
) -> Result<Function> {
    let mut rw = func.edit();
    let body = func.view();
    for expr in rw.post_order() {
        let View::Call { callee, args, .. } = body.view(expr) else { continue };
        let View::Global { name } = body.view(callee) else { continue };
        let Some(&result) = results.get(&name) else { continue };
        let callee = rw.named(Kind::GLOBAL, name);
        let operands: Vec<Expr> = [callee].into_iter().chain(args.iter()).collect();
        let attrs = cx.attrs(&[("out", AttrValue::Term(result.into()))]);
        let call = rw.call_op("call_tir", &operands, attrs);
        rw.replace(expr, call);
    }
    rw.finish()
}

/// Removes the composites that nothing calls any more: what they compute is in the objects.
fn remove_composites(module: &mut Module, cx: &PassContext) {
    let functions = module.functions();
    let mut called = HashSet::new();
    for (_, func) in &functions {
        let body = func.view();
        called.extend(body.post_order().filter_map(|expr| match body.view(expr) {
            View::Global { name } => Some(name),
            _ => None,
        }));
    }
    for (name, func) in &functions {
        let is_composite = cx.terms().attrs(func.attrs()).str("Composite").is_some();
        if is_composite && func.is_private() && !called.contains(name) {
            module.remove(*name);
        }
    }
}
