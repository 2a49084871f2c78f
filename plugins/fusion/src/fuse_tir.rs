//! Makes one tensor program of each group of calls.
//!
//! ```ir
//! fn @main(%x: f32[4], %y: f32[4]) {
//!   %b: f32[4] = @fused_add_exp(%x, %y)
//!   ret %b
//! }
//!
//! private fn @fused_add_exp(%x: f32[4], %y: f32[4]) -> f32[4] { Primitive = 1 } {
//!   %a: f32[4] = call_tir(@add, %x, %y) { out = f32[4] }
//!   %b: f32[4] = call_tir(@exp, %a) { out = f32[4] }
//!   ret %b
//! }
//! ```
//! becomes
//! ```ir
//! fn @main(%x: f32[4], %y: f32[4]) {
//!   %b: f32[4] = call_tir(@fused_add_exp, %x, %y) { out = f32[4] }
//!   ret %b
//! }
//!
//! private prim @fused_add_exp(%x: f32[4], %y: f32[4], out %b: f32[4]) {
//!   for %i in 0..4 {
//!     %b[%i] = exp(%x[%i] + %y[%i])
//!   }
//! }
//! ```
//!
//! A group is read as programs that write and read buffers ([`group`], [`program`]). What is written between
//! them vanishes where it can ([`plan`]): an element-wise program is computed where its result is read, and
//! a heavy one does what follows to each element as it stores it, so a convolution adds its bias and clips
//! while the sum is still in a register. What cannot vanish stays in a buffer inside the program. Buffers
//! are written once, before they are read, so an element is the same wherever it is computed; the dtypes of
//! the buffers that vanish are kept, and with them every rounding. Then the program is written ([`emit`]).
//!
//! Calls of groups become calls of programs, with tuples passed field by field and without what the program
//! does not read. Equal programs are shared. The symbols of a member's program are what its call says; a dimension that is computed of
//! symbols is a symbol of the fused program, as it is one of each. A group that does anything but call programs over tensors of
//! known rank for one target, or has a size inside that its tensors do not say, is left as it is. `relax.FuseOps` makes the groups.

mod emit;
mod group;
mod plan;
mod program;

use std::collections::HashMap;

use tenon_plugin_api::prelude::*;
use tenon_plugin_api::program::TARGET;

use emit::{Merged, emit};
use group::{Group, Programs};
use plan::Plan;

use crate::names;

/// Makes one tensor program of each group of calls.
#[pass(
    name = "relax.FuseTIR",
    aliases = ["relax.transform.FuseTIR"],
    phase = "fuse",
    after = ["relax.FuseOps"],
    idempotent = true
)]
fn fuse_tir(mut module: Module, cx: &PassContext) -> Result<Module> {
    let mut programs = Programs::new(cx);
    let mut merged: HashMap<Symbol, Callee> = HashMap::new();
    let mut by_structure = HashMap::new();
    for (name, func) in module.functions() {
        if func.is_prim() || cx.terms().attrs(func.attrs()).int("Primitive") != Some(1) {
            continue;
        }
        if cx.is_cancelled() {
            return Err(PassError::cancelled());
        }
        let Some(group) = Group::of(&func, &module, &mut programs, cx) else { continue };
        let attrs = attrs(cx, &group);
        let Merged { func, inputs, result } = emit(&group, &Plan::of(&group), attrs, cx)?;
        let program = *by_structure.entry(func.view().structure()).or_insert(name);
        match program == name {
            true => module.insert(name, &func),
            false => module.remove(name),
        }
        merged.insert(name, Callee { program, inputs, result });
    }
    if merged.is_empty() {
        return Ok(module);
    }
    module.map_functions(cx, |_, _, func| call_programs(&func, &merged, cx))?;
    Ok(module)
}

/// How a group is called that became a program.
struct Callee {
    program: Symbol,
    /// What the program reads: number of the group's parameter, field of a tuple.
    inputs: Vec<(usize, Option<u32>)>,
    result: Type,
}

/// The attributes of a group's program: as hard to fuse as its hardest member, and what it computes.
fn attrs(cx: &PassContext, group: &Group) -> Attrs {
    let terms = cx.terms();
    let pattern = |attrs| terms.attrs(attrs).int("op_pattern").unwrap_or(OpPattern::Opaque as i64);
    let worst = group.members.iter().map(|member| pattern(member.program.attrs)).max();
    let labels = group
        .members
        .iter()
        .map(|member| names::label(terms, member.program.attrs, terms.str(member.name)));
    let op_name = names::join(labels);
    let attrs = cx.attrs(&[("op_name", op_name.into()), ("op_pattern", worst.unwrap_or(0).into())]);
    match group.target(terms) {
        Some(target) => cx.with_attr(attrs, TARGET, AttrValue::Term(target)),
        None => attrs,
    }
}

/// A function with calls of programs for calls of groups.
fn call_programs(
    func: &Function,
    merged: &HashMap<Symbol, Callee>,
    cx: &PassContext,
) -> Result<Function> {
    let body = func.view();
    let call_tir = cx.symbol("call_tir");
    let mut rw = func.edit();
    for expr in rw.post_order() {
        let View::Call { callee, .. } = body.view(expr) else { continue };
        let View::Global { name } = body.view(callee) else { continue };
        let Some(callee) = merged.get(&name) else { continue };
        let args = rw.body().operands(expr).skip(1).to_vec();
        let mut operands = vec![rw.global(cx.terms().str(callee.program))];
        for &(param, field) in &callee.inputs {
            let arg = args[param];
            operands.push(match field {
                None => arg,
                Some(field) => field_of(&mut rw, arg, field),
            });
        }
        let op = rw.op(cx.terms().str(call_tir));
        let attrs = cx.attrs(&[("out", Term::from(callee.result).into())]);
        let call = rw.call(op, &operands, attrs, Some(callee.result));
        rw.replace(expr, call);
    }
    rw.finish()
}

/// A field of a tuple: what it was made of, where that is known.
fn field_of(rw: &mut Rewriter, tuple: Expr, field: u32) -> Expr {
    let definition = rw.definition(tuple);
    match rw.view(definition) {
        View::Tuple(fields) => fields.at(field as usize),
        _ => rw.tuple_get_item(tuple, field),
    }
}
