//! Has parts of tensors lie where the whole lies, so that nothing copies them.
//!
//! ```ir
//! %half: f32[16] = builtin.alloc_tensor() { ty = f32[16] }
//! %done: () = @slice(%x, %half)
//! %a: f32[64] = builtin.alloc_tensor() { ty = f32[64] }
//! %done_1: () = @exp(%half, %a)
//! %b: f32[64] = builtin.alloc_tensor() { ty = f32[64] }
//! %done_2: () = @log(%half, %b)
//! %both: f32[128] = builtin.alloc_tensor() { ty = f32[128] }
//! %done_3: () = @concatenate(%a, %b, %both)
//! ```
//! becomes
//! ```ir
//! %half: f32[16] = memory.part(%x) { offset = 64, ty = f32[16] }
//! %both: f32[128] = builtin.alloc_tensor() { ty = f32[128] }
//! %a: f32[64] = memory.part(%both) { offset = 0, ty = f32[64] }
//! %done_1: () = @exp(%half, %a)
//! %b: f32[64] = memory.part(%both) { offset = 256, ty = f32[64] }
//! %done_2: () = @log(%half, %b)
//! ```
//!
//! A program is a slice or a split if each of its results is, element for element, what lies in an argument from some place on, and a
//! concatenation if its arguments fill its result one behind the other ([`program`] proves both). So it is along the first axis
//! whose extent is more than 1, as that of channels is in a batch of one. What is written once, by one program, may lie elsewhere: nothing
//! else touches it than programs and views, and what is a result of the function stays a tensor of its own. Extents are known, and a part begins at a cache line.
//!
//! It comes behind fusion: a copy that is computed with what reads it costs less than one of its own, but nothing costs least.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use tenon_plugin_api::ir::{Callee, LetView};
use tenon_plugin_api::prelude::*;

use self::program::{Moves, Part, moves};
use self::uses::Uses;
use crate::unused::remove_unused;

mod program;
mod uses;

/// Where a part may begin, in bytes, so that its vectors cross no more cache lines than those of a tensor of its own.
const ALIGN: i64 = 64;

/// Has parts of tensors lie where the whole lies.
#[pass(
    name = "tenon.PlaceParts",
    opt_level = 2,
    phase = "plan",
    after = ["relax.CallTIRRewrite", "tenon.LowerExternalCalls"],
    before = ["raf.InplaceUpdate", "relax.StaticPlanBlockMemory", "tenon.AppendInPlace"],
    idempotent = true
)]
fn place_parts(mut module: Module, cx: &PassContext) -> Result<Module> {
    let mut programs = Programs::default();
    module.map_functions(cx, |module, _, func| {
        let Some(block) = func.result() else { return Ok(func) };
        let View::Let(bindings) = func.view().view(block) else { return Ok(func) };
        let is_move = |value| {
            let program = program_of(func.view(), value).and_then(|it| programs.of(it, module));
            program.is_some_and(|it| it.moves.is_some())
        };
        if !bindings.bindings().map(|(_, value)| value).any(is_move) {
            return Ok(func);
        }
        let places = Places::of(func.view(), (block, bindings), |name| programs.of(name, module));
        if places.unneeded.is_empty() {
            return Ok(func);
        }
        let mut rw = func.edit();
        rw.rewrite_bindings(block, |rw, list, is_dataflow, var, value| {
            for &(var, place) in places.parts_at.get(&var).into_iter().flatten() {
                let part = place.of(rw, var)?;
                list.bind(is_dataflow, var, part);
            }
            if let Some(&(whole, made)) = places.wholes_at.get(&var) {
                list.bind(is_dataflow, whole, made);
            }
            if let Some(place) = places.pieces.get(&var) {
                let part = place.of(rw, var)?;
                list.bind(is_dataflow, var, part);
            } else if !places.unneeded.contains(&var) {
                list.bind(is_dataflow, var, value);
            } else {
                programs.replaced.extend(program_of(rw.body(), value));
            }
            Ok(())
        })?;
        rw.finish()
    })?;
    remove_unused(&mut module, programs.replaced.into_iter());
    Ok(module)
}

/// The function of the module that a value calls, if it calls one.
fn program_of(body: BodyView<'_>, value: Expr) -> Option<Symbol> {
    match body.callee(value)? {
        Callee::Function(name) => Some(name),
        _ => None,
    }
}

/// The programs that were asked for.
#[derive(Default)]
struct Programs {
    known: HashMap<Symbol, Option<Rc<Known>>>,
    replaced: HashSet<Symbol>,
}

/// A program.
struct Known {
    inputs: usize,
    moves: Option<Moves>,
}

impl Programs {
    /// A program; nothing for a function that is none.
    fn of(&mut self, name: Symbol, module: &Module) -> Option<Rc<Known>> {
        let known = self.known.entry(name).or_insert_with(|| {
            let program = module.get(name).filter(Function::is_prim)?;
            let body = program.view();
            let View::PrimFunc { params, outputs, .. } = body.view(body.root()) else {
                return None;
            };
            Some(Rc::new(Known { inputs: params.len() - outputs, moves: moves(body) }))
        });
        known.clone()
    }
}

/// Where a tensor lies that is a part of another one.
#[derive(Clone, Copy)]
struct Place {
    whole: Expr,
    offset: i64,
}

impl Place {
    /// The part that `var` is bound to.
    fn of(&self, rw: &mut Rewriter, var: Expr) -> Result<Expr> {
        let ty = rw.body().ty(var).ok_or_else(|| PassError::new("this has no type").at(var))?;
        let attrs = rw.cx().attrs(&[("offset", self.offset.into()), ("ty", ty.into())]);
        let op = rw.op("memory.part");
        Ok(rw.call(op, &[self.whole], attrs, Some(ty)))
    }
}

/// What lies where, by the variables of bindings.
#[derive(Default)]
struct Places {
    /// The slices that a call made, by the variable that the call is bound to.
    parts_at: HashMap<Expr, Vec<(Expr, Place)>>,
    /// What is made earlier than it was, with its value, before the first tensor that is a part of it.
    wholes_at: HashMap<Expr, (Expr, Expr)>,
    /// Tensors that are made as parts of others.
    pieces: HashMap<Expr, Place>,
    /// What is not bound any more, or elsewhere.
    unneeded: HashSet<Expr>,
}

impl Places {
    fn of(
        body: BodyView<'_>,
        (block, bindings): (Expr, LetView<'_>),
        mut program: impl FnMut(Symbol) -> Option<Rc<Known>>,
    ) -> Self {
        let mut known = |value| program_of(body, value).and_then(&mut program);
        let uses = Uses::of(body, (block, bindings), |value| known(value).map(|it| it.inputs));
        let mut places = Self::default();
        for (number, (var, value)) in bindings.bindings().enumerate() {
            let Some(program) = known(value) else { continue };
            let View::Call { args, .. } = body.view(value) else { continue };
            let place = |part: &Part| {
                let place = Place { whole: args.at(part.whole), offset: part.offset };
                (args.at(part.part), place)
            };
            match &program.moves {
                None => {}
                Some(Moves::Apart(parts)) => {
                    let parts = parts.iter().map(place).collect();
                    places.slice(body, &uses, (number, var), parts);
                }
                Some(Moves::Together(parts)) => {
                    places.join(&uses, var, parts.iter().map(place).collect());
                }
            }
        }
        places
    }

    /// Has the results of a call be parts of its arguments, where that goes for all of them.
    fn slice(
        &mut self,
        body: BodyView<'_>,
        uses: &Uses,
        (number, call): (usize, Expr),
        parts: Vec<(Expr, Place)>,
    ) {
        let goes = parts.iter().all(|&(part, Place { whole, offset })| {
            offset % ALIGN == 0
                && uses.is_free(part)
                && uses.viewed.get(&part).is_none_or(|&viewed| viewed > number)
                && !self.pieces.contains_key(&part)
                && uses.is_final(body, whole)
        });
        if goes {
            self.unneeded.extend(parts.iter().map(|&(part, _)| part).chain([call]));
            self.parts_at.insert(call, parts);
        }
    }

    /// Has the arguments of a call be made as parts of its result, where that goes for all of them.
    fn join(&mut self, uses: &Uses, call: Expr, parts: Vec<(Expr, Place)>) {
        let root = |(part, place): (Expr, Place)| uses.root[part].map(|root| (root, place));
        let Some(parts) = parts.into_iter().map(root).collect::<Option<Vec<_>>>() else { return };
        let Some(&(_, Place { whole, .. })) = parts.first() else { return };
        let mut seen = HashSet::from([whole]);
        let is_placed =
            |places: &Self, var| places.pieces.contains_key(&var) || places.unneeded.contains(&var);
        let goes = parts.iter().all(|&(part, Place { offset, .. })| {
            offset % ALIGN == 0 && uses.is_free(part) && seen.insert(part) && !is_placed(self, part)
        });
        let Some(&(_, made)) = uses.made.get(&whole).filter(|_| goes) else { return };
        let first = parts.iter().map(|&(part, _)| part).min_by_key(|part| uses.made[part].0);
        let Some(first) = first.filter(|_| uses.writes[whole] == 1 && !is_placed(self, whole))
        else {
            return;
        };
        self.wholes_at.insert(first, (whole, made));
        self.unneeded.extend([whole, call]);
        self.pieces.extend(parts);
    }
}
