//! Has programs write their results over arguments that nothing reads afterwards.
//!
//! ```ir
//! %a: f32[256] = builtin.alloc_tensor() { ty = f32[256] }
//! %done: () = @exp(%x, %a)
//! %b: f32[256] = builtin.alloc_tensor() { ty = f32[256] }        %a: f32[256] = builtin.alloc_tensor() { … }
//! %done_1: () = @add(%a, %y, %b)                            =>   %done: () = @exp(%x, %a)
//! ret %b                                                         %done_1: () = @add_inplace(%y, %a)
//!                                                                ret %a
//! ```
//!
//! `@add_inplace` is `@add` with one buffer for the argument and the result, which is read and written. That computes
//! the same when the program reads an element of the argument only to compute the very element of the result, each
//! of which it writes once: one store; reads within its value, at its place; and loops around it of which no two
//! steps lead to one place. So a residual sum is written over the shortcut, also by
//! the convolution that it was fused into.
//!
//! The argument is memory that the function made, or a view of it; this call is the last that may touch it, has it
//! as an argument once, and has a result of the same type that nothing touched before. Parameters and constants are
//! never written.
//!
//! A program that begins with a copy of an argument, such as one that puts rows into a cache, computes the same without it in
//! memory that has the argument's elements already. Where the argument is a parameter that nothing else reads, and the result is
//! one of a public function, the copy stands apart:
//!
//! ```ir
//! %done: () = @put(%cache, %rows, %new)       =>       %copied: () = memory.copy(%cache, %new)
//!                                                      %done: () = @put_inplace(%rows, %new)
//! ```
//!
//! A caller who gives one buffer as the parameter and as the result has it updated in place: then nothing is copied.

pub(crate) mod program;
mod state;

use std::collections::HashMap;

use tenon_plugin_api::ir::LetView;
use tenon_plugin_api::prelude::*;

use program::{Overwrite, overwrites};
use state::updated_parameters;

use crate::lifetimes::lifetimes;
use crate::roles::Roles;
use crate::unused::remove_unused;

/// Has programs write their results over arguments that nothing reads afterwards.
#[pass(
    name = "raf.InplaceUpdate",
    aliases = ["raf.pass_.InplaceUpdate", "relax.DataflowUseInplaceCalls",
               "relax.transform.DataflowUseInplaceCalls"],
    opt_level = 1,
    phase = "plan",
    after = ["relax.CallTIRRewrite"],
    before = ["relax.StaticPlanBlockMemory"],
    idempotent = true
)]
fn inplace_update(mut module: Module, cx: &PassContext) -> Result<Module> {
    let mut programs = Programs::default();
    module.map_functions(cx, |module, _, func| {
        let Some(block) = func.result() else { return Ok(func) };
        let View::Let(bindings) = func.view().view(block) else { return Ok(func) };
        let mut updates = Updates::find(func.view(), block, bindings, module, &mut programs, cx);
        if !func.is_private() {
            updates.copied = updated_parameters(func.view(), bindings, |name| {
                programs.overwrites(name, module).to_vec()
            });
        }
        if updates.calls.is_empty() && updates.copied.is_empty() {
            return Ok(func);
        }
        let mut calls = std::mem::take(&mut updates.calls).into_iter().peekable();
        let mut rw = func.edit();
        rw.rewrite_bindings(block, |rw, list, is_dataflow, var, value| {
            if let Some(memory) = updates.written_over.get(var).copied().flatten() {
                rw.replace(var, memory);
                return Ok(());
            }
            if let Some(overwrite) = updates.copied.get(&value) {
                let operands = rw.body().operands(value).to_vec();
                let [from, to] = [overwrite.input, overwrite.output].map(|at| operands[1 + at]);
                let copy = rw.call_op("memory.copy", &[from, to], Attrs::NONE);
                list.bind_new(rw, is_dataflow, "copied", copy);
            }
            // The calls come in their order.
            let update = match calls.next_if(|&(call, _)| call == value) {
                Some((_, overwrite)) => Some(overwrite),
                None => updates.copied.get(&value).copied(),
            };
            let value = match update {
                Some(overwrite) => programs.call(rw, module, value, overwrite)?,
                None => value,
            };
            list.bind(is_dataflow, var, value);
            Ok(())
        })?;
        rw.finish()
    })?;
    remove_unused(&mut module, programs.inplace.keys().map(|&(name, _)| name));
    Ok(module)
}

/// What one function can write in place.
struct Updates {
    /// The calls in their order, and what each does.
    calls: Vec<(Expr, Overwrite)>,
    /// What stands for the variables of results that are not made any more.
    written_over: SideTable<Option<Expr>>,
    /// The calls that put something into a copy of a parameter.
    copied: HashMap<Expr, Overwrite>,
}

/// Memory that a binding makes.
struct Home {
    /// The variable that it was made for.
    var: Expr,
    /// The number of the last binding that may touch it.
    death: Option<usize>,
    is_touched: bool,
}

impl Updates {
    fn find(
        body: BodyView<'_>,
        block: Expr,
        bindings: LetView<'_>,
        module: &Module,
        programs: &mut Programs,
        cx: &PassContext,
    ) -> Self {
        let mut updates = Self {
            calls: Vec::new(),
            written_over: SideTable::new(body, None),
            copied: HashMap::new(),
        };
        let mut roles = Roles::new(body, module, cx);
        let mut made = lifetimes(body, block, |value| roles.of(value)).into_iter().peekable();
        let mut homes: Vec<Home> = Vec::new();
        // The home of what each variable stands for.
        let mut home_of: SideTable<Option<usize>> = SideTable::new(body, None);
        for (now, (var, value)) in bindings.bindings().enumerate() {
            let death = made.next_if(|made| made.birth == now).map(|made| made.death);
            if let Some(death) = death.filter(|_| roles.is_unplaced(value)) {
                home_of[var] = Some(homes.len());
                homes.push(Home { var, death, is_touched: false });
                continue;
            }
            home_of[var] = roles.viewed(value).and_then(|tensor| home_of[tensor]);
            if let View::Call { callee, args, .. } = body.view(value)
                && let View::Global { name } = body.view(callee)
            {
                let homes_of: Vec<Option<usize>> = args.iter().map(|arg| home_of[arg]).collect();
                let is_single =
                    |home| homes_of.iter().filter(|&&other| other == Some(home)).count() == 1;
                let found = programs.overwrites(name, module).iter().find_map(|&overwrite| {
                    let (read, write) = (homes_of[overwrite.input]?, homes_of[overwrite.output]?);
                    let (input, output) = (args.at(overwrite.input), args.at(overwrite.output));
                    let is_update = homes[read].death == Some(now)
                        && !homes[write].is_touched
                        && homes[write].var == output
                        && is_single(read)
                        && is_single(write)
                        && body.ty(input) == body.ty(output);
                    is_update.then_some((overwrite, input, output, read, write))
                });
                if let Some((overwrite, input, output, read, write)) = found {
                    let memory = updates.written_over[input].unwrap_or(input);
                    updates.calls.push((value, overwrite));
                    updates.written_over[output] = Some(memory);
                    homes[read].death = homes[write].death;
                    home_of[output] = Some(read);
                }
            }
            for operand in body.operands(value).iter() {
                if let Some(home) = home_of[operand] {
                    homes[home].is_touched = true;
                }
            }
        }
        updates
    }
}

/// What programs can write in place, and those that do.
#[derive(Default)]
struct Programs {
    overwrites: HashMap<Symbol, Vec<Overwrite>>,
    inplace: HashMap<(Symbol, Overwrite), Symbol>,
}

impl Programs {
    /// What the program `name` can write over what; nothing when it is no program.
    fn overwrites(&mut self, name: Symbol, module: &Module) -> &[Overwrite] {
        self.overwrites.entry(name).or_insert_with(|| {
            let program = module.get(name).filter(Function::is_prim);
            program.and_then(|program| overwrites(program.view())).unwrap_or_default()
        })
    }

    /// `call` with the program that writes in place.
    fn call(
        &mut self,
        rw: &mut Rewriter,
        module: &mut Module,
        call: Expr,
        overwrite: Overwrite,
    ) -> Result<Expr> {
        let mut operands = rw.body().operands(call).to_vec();
        let View::Global { name } = rw.view(operands[0]) else { return Ok(call) };
        let program = match self.inplace.get(&(name, overwrite)) {
            Some(&program) => program,
            None => self.make(module, name, overwrite)?,
        };
        operands[0] = rw.named(Kind::GLOBAL, program);
        operands.remove(1 + overwrite.input);
        Ok(rw.rebuild(call, &operands))
    }

    fn make(&mut self, module: &mut Module, name: Symbol, overwrite: Overwrite) -> Result<Symbol> {
        let program = module.get(name).ok_or_else(|| PassError::new("a program is missing"))?;
        let mut rw = program.edit();
        let root = program.view().root();
        let mut operands: Vec<Expr> = rw.body().operands_keeping_binders(root).collect();
        let (written, read) = (operands[overwrite.output], operands.remove(overwrite.input));
        if overwrite.is_copied
            && let View::PrimFunc { body, .. } = program.view().view(root)
            && let View::Seq(statements) = program.view().view(body)
        {
            // Of elements that are there.
            let rest = statements.skip(1).to_vec();
            let last = operands.len() - 1;
            operands[last] = match *rest.as_slice() {
                [only] => only,
                _ => rw.rebuild(body, &rest),
            };
        }
        let inplace = rw.rebuild(root, &operands);
        rw.replace(read, written);
        rw.set_root(inplace);
        let new = module.fresh_name(&format!("{}_inplace", rw.terms().str(name)));
        let inplace = rw.finish()?;
        module.insert(new, &inplace);
        Ok(*self.inplace.entry((name, overwrite)).or_insert(new))
    }
}
