//! Removes results of private functions that nothing reads.
//!
//! ```ir
//! fn @main(%x: f32[4]) {              fn @main(%x: f32[4]) {
//!   %t = @f(%x)                         %t = @f(%x)
//!   %a = %t.1                    =>     ret %t
//!   ret %a                            }
//! }                                   private fn @f(%p: f32[4]) {
//! private fn @f(%p: f32[4]) {           %u = exp(%p)
//!   %u = exp(%p)                        %v = negative(%p)
//!   %v = negative(%p)                   ret %v
//!   ret (%u, %v)                      }
//! }
//! ```
//!
//! A private function whose result is a tuple that it spells out, and of which every call only reads fields,
//! returns those fields; when it is one, without a tuple around it. What is not returned any more is still
//! evaluated until `relax.DeadCodeElimination`. A function that is a value anywhere keeps its result, and so
//! does one with a call whose result is handed on whole.

use std::collections::HashMap;

use tenon_plugin_api::ir::SymbolMap;
use tenon_plugin_api::prelude::*;

use crate::call_sites::{called, closed_functions};
use crate::results::{result_of, set_result};

/// Removes results of private functions that nothing reads.
#[pass(
    name = "relax.RemoveUnusedOutputs",
    aliases = ["relax.transform.RemoveUnusedOutputs"],
    opt_level = 1,
    phase = "ingest",
    until = "builtin",
    requires = ["relax.Normalize"],
    idempotent = true
)]
fn remove_unused_outputs(mut module: Module, cx: &PassContext) -> Result<Module> {
    let mut read: SymbolMap<Vec<bool>> = closed_functions(&module)
        .into_iter()
        .filter_map(|(name, func)| Some((name, vec![false; fields(&func)?.len()])))
        .collect();
    if read.is_empty() {
        return Ok(module);
    }
    for (_, func) in module.functions().iter().filter(|(_, func)| !func.is_prim()) {
        note_reads(func.view(), &mut read);
    }
    read.retain(|_, read| read.contains(&false));
    if read.is_empty() {
        return Ok(module);
    }
    module.map_functions(cx, |_, name, func| {
        let mut rw = func.edit();
        project_anew(&mut rw, func.view(), &read);
        if let Some(read) = read.get(&name) {
            return_less(&mut rw, &func, read);
        }
        rw.finish()
    })?;
    Ok(module)
}

/// The fields of the tuple that a function spells out as its result.
fn fields(func: &Function) -> Option<Vec<Expr>> {
    let body = func.view();
    let mut rw = func.edit();
    let result = result_of(body, func.result()?);
    match body.view(rw.original_definition(result)) {
        View::Tuple(fields) => Some(fields.to_vec()),
        _ => None,
    }
}

/// Notes which fields of the results of calls are read; a function with another use of its result is dropped.
fn note_reads(body: BodyView<'_>, read: &mut SymbolMap<Vec<bool>>) {
    let results = results_of_calls(body, read);
    for expr in body.post_order() {
        for (position, operand) in body.operands(expr).iter().enumerate() {
            let Some(callee) = results.get(&operand) else { continue };
            match body.view(expr) {
                View::TupleGetItem { index, .. } => {
                    if let Some(field) = read.get_mut(callee).and_then(|read| read.get_mut(index)) {
                        *field = true;
                    }
                }
                // Where the call is bound to its variable.
                View::Let(bindings)
                    if position < 2 * bindings.len() && body.kind(operand) == Kind::CALL => {}
                View::Let(_) if body.is_binder(expr, position) => {}
                _ => drop(read.remove(callee)),
            }
        }
    }
}

/// The calls of these functions, and the variables that they are bound to, with the function.
fn results_of_calls(body: BodyView<'_>, read: &SymbolMap<Vec<bool>>) -> HashMap<Expr, Symbol> {
    let mut results = HashMap::new();
    for expr in body.post_order() {
        if let Some(callee) = called(body, expr).filter(|callee| read.contains_key(callee)) {
            results.insert(expr, callee);
        }
        if let View::Let(bindings) = body.view(expr) {
            for (var, value) in bindings.bindings() {
                if let Some(&callee) =
                    results.get(&value).filter(|_| body.kind(value) == Kind::CALL)
                {
                    results.insert(var, callee);
                }
            }
        }
    }
    results
}

/// Has projections of results read the fields that are left.
fn project_anew(rw: &mut Rewriter, body: BodyView<'_>, read: &SymbolMap<Vec<bool>>) {
    let results = results_of_calls(body, read);
    if results.is_empty() {
        return;
    }
    for expr in body.post_order() {
        if body.kind(expr) == Kind::CALL && results.contains_key(&expr) {
            rw.set_type(expr, None);
        }
        if let View::TupleGetItem { tuple, index } = body.view(expr)
            && let Some(callee) = results.get(&tuple)
        {
            let read = &read[callee];
            let number = read[..index].iter().filter(|&&is_read| is_read).count();
            let is_single = read.iter().filter(|&&is_read| is_read).count() == 1;
            let tuple = rw.body().resolve(tuple);
            let field = if is_single { tuple } else { rw.tuple_get_item(tuple, number as u32) };
            rw.set_type(field, body.ty(expr));
            rw.replace(expr, field);
        }
    }
}

/// Has a function return the fields that are read.
fn return_less(rw: &mut Rewriter, func: &Function, read: &[bool]) {
    let Some(fields) = fields(func) else { return };
    let left: Vec<Expr> = fields
        .iter()
        .zip(read)
        .filter(|(_, is_read)| **is_read)
        .map(|(&field, _)| rw.body().resolve(field))
        .collect();
    let result = match left.as_slice() {
        &[field] => field,
        fields => rw.tuple(fields),
    };
    set_result(rw, func, result);
}
