//! Has results that are parameters with something behind them lie where the parameters do.
//!
//! ```ir
//! %keys: f32[2, n + p, 16] = builtin.alloc_tensor() { … }
//! %done: () = @concatenate(%past, %new, %keys)
//! %done_1: () = @read(%keys, %out)
//! ret (%out, %keys)
//! ```
//! becomes
//! ```ir
//! %keys: f32[2, n + p, 16] = builtin.alloc_tensor() { … }
//! %lying: f32[2, room, 16] = memory.room(%keys, %past) { … }
//! %copied: () = memory.copy(%past, %keys)
//! %extents: u8[0, p, n + p] = builtin.alloc_tensor() { … }
//! %done: () = @concatenate_append(%extents, %new, %lying)
//! %extents_1: u8[0, n + p] = builtin.alloc_tensor() { … }
//! %done_1: () = @read_append(%extents_1, %lying, %out)
//! ret (%out, %keys)
//! ```
//!
//! A caller who gives rows with room, and one buffer as the parameter and as the result, has what is new put behind what there is: then
//! nothing is copied. To whoever gives rows without, all is as it was: `room` is what the result needs.
//!
//! The parameter is read by that program alone, which copies all of it to the front of the result before it writes anything else
//! there. Whatever touches the result besides is a program, which sees the same elements at the same indices: of its buffer the
//! extent is another one, and what it was it is told by a tensor without elements. A view of the result goes the same way where
//! the axis is one of its own, and so do programs in the branches of choices. Where anything else touches it, such as a closure, all
//! stays as it is; so it does in functions that others call, and on devices where the axis does not depend on symbols.

mod lying;
mod places;

use std::collections::HashMap;

use tenon_plugin_api::prelude::*;

use crate::inplace_update::program::{Append, appends};
use crate::unused::remove_unused;
use lying::{Change, Programs};
use places::{Places, branches_of, room_type};

/// Has results that are parameters with something behind them lie where the parameters do.
#[pass(
    name = "tenon.AppendInPlace",
    opt_level = 1,
    phase = "plan",
    after = ["relax.CallTIRRewrite", "raf.InplaceUpdate", "relax.StaticPlanBlockMemory"],
    idempotent = true
)]
fn append_in_place(mut module: Module, cx: &PassContext) -> Result<Module> {
    let calls = CallGraph::of(&module);
    let mut known: HashMap<Symbol, Vec<Append>> = HashMap::new();
    let mut programs = Programs::default();
    module.map_functions(cx, |module, name, func| {
        if func.is_private() || calls.uses(name) > 0 {
            return Ok(func);
        }
        let Some(block) = func.result() else { return Ok(func) };
        let View::Let(bindings) = func.view().view(block) else { return Ok(func) };
        // A device has no rows with room.
        let is_known = cx.target().str("kind") != Some("cuda");
        let places = Places::of(func.view(), (bindings, is_known), |name| {
            let program = || module.get(name).filter(Function::is_prim);
            known
                .entry(name)
                .or_insert_with(|| program().map_or(Vec::new(), |it| appends(it.view())))
                .clone()
        });
        if places.is_empty() {
            return Ok(func);
        }
        let mut taken = lying::symbols_of(func.view());
        let mut lying: HashMap<Expr, Lying> = HashMap::new();
        let mut rw = func.edit();
        let mut each = |rw: &mut Rewriter, list: &mut LetList, is_dataflow, var, value| {
            if let Some(made) = places.made.get(&var) {
                list.bind(is_dataflow, var, value);
                let room = lying::fresh_symbol(rw, &mut taken);
                let ty = body_type(rw, var)?;
                let ty = room_type(rw, ty, made.axis, room)?;
                let args = [var, made.past];
                let view = typed_call(rw, "memory.room", &args, ty);
                let view = list.bind_new(rw, is_dataflow, "lying", view);
                lying.insert(var, Lying { tensor: view, axis: made.axis, room });
                return Ok(());
            }
            if let Some(&(of, axis)) = places.views.get(&var) {
                list.bind(is_dataflow, var, value);
                let from = lying[&of];
                let ty = body_type(rw, var)?;
                let ty = room_type(rw, ty, axis, from.room)?;
                let view = typed_call(rw, "memory.view", &[from.tensor], ty);
                let view = list.bind_new(rw, is_dataflow, "lying", view);
                lying.insert(var, Lying { tensor: view, axis, room: from.room });
                return Ok(());
            }
            let operands = rw.body().operands(value).to_vec();
            if !operands.iter().any(|operand| lying.contains_key(operand)) {
                list.bind(is_dataflow, var, value);
                return Ok(());
            }
            let View::Global { name } = rw.view(operands[0]) else {
                list.bind(is_dataflow, var, value);
                return Ok(());
            };
            let appended = places.appended.get(&value).cloned().unwrap_or_default();
            for append in &appended {
                let (from, to) = (operands[1 + append.input], operands[1 + append.output]);
                let copy = rw.call_op("memory.copy", &[from, to], Attrs::NONE);
                list.bind_new(rw, is_dataflow, "copied", copy);
            }
            let results: HashMap<usize, Expr> =
                appended.iter().map(|it| (it.input, operands[1 + it.output])).collect();
            let (mut args, mut dims) = (Vec::new(), Vec::new());
            let mut changes = Vec::new();
            for (at, &arg) in operands[1..].iter().enumerate() {
                let it = lying.get(&arg);
                let of = it.or_else(|| lying.get(results.get(&at)?));
                let Some(&Lying { axis, .. }) = of else {
                    args.push(arg);
                    continue;
                };
                dims.push(lying::dim_at(rw, arg, axis)?);
                changes.push(Change { param: at, axis, is_left_out: it.is_none() });
                args.extend(it.map(|it| it.tensor));
            }
            let program = programs.lying(module, name, changes, &appended)?;
            let ty = lying::extents_type(rw, &dims);
            let extents = typed_call(rw, "builtin.alloc_tensor", &[], ty);
            let extents = list.bind_new(rw, is_dataflow, "extents", extents);
            let callee = rw.named(Kind::GLOBAL, program);
            let all: Vec<Expr> = [callee, extents].into_iter().chain(args).collect();
            let call = rw.rebuild(value, &all);
            list.bind(is_dataflow, var, call);
            Ok(())
        };
        // What is bound around branches is there when these are read.
        rw.rewrite_bindings(block, &mut each)?;
        for branch in branches_of(func.view(), bindings) {
            if let View::Let(_) = func.view().view(branch) {
                rw.rewrite_bindings(branch, &mut each)?;
            }
        }
        rw.finish()
    })?;
    remove_unused(&mut module, programs.made.keys().map(|&(name, _)| name));
    Ok(module)
}

/// A tensor that lies in memory with room.
#[derive(Clone, Copy)]
struct Lying {
    /// With the room as its extent.
    tensor: Expr,
    axis: usize,
    room: Dim,
}

fn body_type(rw: &Rewriter, expr: Expr) -> Result<Type> {
    rw.body().ty(expr).ok_or_else(|| PassError::new("this tensor has no type").at(expr))
}

/// A call of an operator that is told the type of its result.
fn typed_call(rw: &mut Rewriter, op: &str, args: &[Expr], ty: Type) -> Expr {
    let attrs = rw.cx().attrs(&[("ty", ty.into())]);
    let op = rw.op(op);
    rw.call(op, args, attrs, Some(ty))
}
