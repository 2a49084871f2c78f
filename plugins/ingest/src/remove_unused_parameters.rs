//! Removes parameters of private functions that nothing reads.
//!
//! ```ir
//! fn @main(%x: f32[4], %y: f32[4]) {                fn @main(%x: f32[4], %y: f32[4]) {
//!   %a = @f(%x, %y)                                   %a = @f(%x)
//!   ret %a                                     =>     ret %a
//! }                                                 }
//! private fn @f(%p: f32[4], %q: f32[4]) { … %p … }  private fn @f(%p: f32[4]) { … %p … }
//! ```
//!
//! A parameter that is only handed on to one that nothing reads is not read either, over any number of functions
//! and for those that call themselves. A parameter whose type says what a symbol is stays, unless another one
//! says so as well. A function that is a value anywhere keeps all of its parameters. The arguments are still
//! evaluated where they were bound; `relax.DeadCodeElimination` removes those that nothing else reads.

use std::collections::{HashMap, HashSet};

use tenon_plugin_api::ir::{SymbolMap, Terms};
use tenon_plugin_api::prelude::*;

use crate::call_sites::{called, closed_functions};
use crate::symbols::{Symbols, said_by};

/// Removes parameters of private functions that nothing reads.
#[pass(
    name = "relax.RemoveUnusedParameters",
    aliases = ["relax.transform.RemoveUnusedParameters"],
    opt_level = 1,
    phase = "ingest",
    until = "builtin",
    idempotent = true
)]
fn remove_unused_parameters(mut module: Module, cx: &PassContext) -> Result<Module> {
    let closed = closed_functions(&module);
    let read = Read::of(&module, &closed, cx.terms());
    if read.is_all() {
        return Ok(module);
    }
    let is_shorter = |name: &Symbol| read.kept.get(name).is_some_and(|kept| kept.contains(&false));
    module.map_functions(cx, |_, name, func| {
        let body = func.view();
        let mut rw = func.edit();
        for expr in body.post_order() {
            let Some(callee) = called(body, expr).filter(is_shorter) else { continue };
            let operands = rw.body().operands(expr).to_vec();
            let kept = operands[1..].iter().zip(&read.kept[&callee]);
            let mut shorter = vec![operands[0]];
            shorter.extend(kept.filter(|&(_, &kept)| kept).map(|(&arg, _)| arg));
            let shorter = rw.rebuild(expr, &shorter);
            rw.replace(expr, shorter);
        }
        if is_shorter(&name) {
            let root = body.root();
            let mut operands: Vec<Expr> = rw.body().operands_keeping_binders(root).collect();
            let mut kept = read.kept[&name].iter().chain([&true]);
            operands.retain(|_| kept.next() == Some(&true));
            let shorter = rw.rebuild(root, &operands);
            rw.set_type(shorter, None);
            rw.set_root(shorter);
        }
        rw.finish()
    })?;
    Ok(module)
}

/// Which parameters are read.
struct Read {
    kept: SymbolMap<Vec<bool>>,
}

impl Read {
    fn of(module: &Module, closed: &SymbolMap<Function>, terms: Terms<'_>) -> Self {
        let kept = closed.iter().map(|(&name, func)| (name, vec![false; func.param_types().len()]));
        let mut read = Self { kept: kept.collect() };
        // Parameters that are read when another one is.
        let mut handed: HashMap<Param, Vec<Param>> = HashMap::new();
        let mut work: Vec<Param> = Vec::new();
        for (name, func) in module.functions().iter().filter(|(name, _)| closed.contains_key(name))
        {
            let body = func.view();
            let params = body.operands(body.root());
            let params = params.take(params.len() - 1);
            let number: HashMap<Expr, usize> =
                params.iter().enumerate().map(|(number, param)| (param, number)).collect();
            for expr in body.post_order().filter(|&expr| expr != body.root()) {
                let callee = called(body, expr).filter(|callee| closed.contains_key(callee));
                for (position, operand) in body.operands(expr).iter().enumerate() {
                    let Some(&param) = number.get(&operand) else { continue };
                    match &callee {
                        Some(callee) if position > 0 => {
                            handed.entry((*callee, position - 1)).or_default().push((*name, param));
                        }
                        _ => work.push((*name, param)),
                    }
                }
            }
            work.extend(
                body.operands(body.root())
                    .iter()
                    .last()
                    .and_then(|result| number.get(&result).map(|&param| (*name, param))),
            );
        }
        read.note(&mut work, &mut handed);
        for (name, func) in module.functions().iter().filter(|(name, _)| closed.contains_key(name))
        {
            let needed = read.says_a_symbol(*name, func, terms);
            work.extend(needed.into_iter().map(|param| (*name, param)));
            read.note(&mut work, &mut handed);
        }
        read
    }

    /// Whether nothing can be removed.
    fn is_all(&self) -> bool {
        self.kept.values().flatten().all(|&is_kept| is_kept)
    }

    /// Notes that parameters are read, and so are those that are handed on to them.
    fn note(&mut self, work: &mut Vec<Param>, handed: &mut HashMap<Param, Vec<Param>>) {
        while let Some((name, param)) = work.pop() {
            let Some(kept) = self.kept.get_mut(&name) else { continue };
            if !std::mem::replace(&mut kept[param], true) {
                work.extend(handed.remove(&(name, param)).unwrap_or_default());
            }
        }
    }

    /// The parameters that are not read, but say what a symbol is that the body has and no other one says.
    fn says_a_symbol(&self, name: Symbol, func: &Function, terms: Terms<'_>) -> Vec<usize> {
        let (kept, types) = (&self.kept[&name], func.param_types());
        let says_one =
            |(kept, ty): (&bool, &Option<Type>)| !kept && !said_by(terms, *ty).is_empty();
        if !kept.iter().zip(&types).any(says_one) {
            return Vec::new();
        }
        let body = func.view();
        let params: HashSet<Expr> = body.operands(body.root()).iter().take(types.len()).collect();
        let mut used = Symbols::default();
        for expr in body.post_order().filter(|expr| !params.contains(expr)) {
            used.find_in(body, expr);
        }
        for (ty, _) in types.iter().zip(kept).filter(|(_, kept)| **kept) {
            // The type of a parameter that stays may hold symbols that it does not say.
            used.find(terms, ty.map(Term::from));
            for dim in said_by(terms, *ty) {
                used.found.remove(&dim);
            }
        }
        let is_needed = |&param: &usize| {
            let said = if kept[param] { Vec::new() } else { said_by(terms, types[param]) };
            said.iter().filter(|&dim| used.found.remove(dim)).count() > 0
        };
        (0..types.len()).filter(is_needed).collect()
    }
}

/// A parameter: its function and number.
type Param = (Symbol, usize);
