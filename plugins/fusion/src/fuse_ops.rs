//! Groups calls of tensor programs that are worth one program.
//!
//! ```ir
//! fn @main(%x: f32[4], %y: f32[4]) {
//!   %a: f32[4] = call_tir(@add, %x, %y) { out = f32[4] }
//!   %b: f32[4] = call_tir(@exp, %a) { out = f32[4] }
//!   ret %b
//! }
//! ```
//! becomes
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
//!
//! The calls that a `let` binds are nodes, and a node points at those that read its result ([`graph`]). A
//! node may join its post-dominator ([`dominators`]), the first node that all paths from it lead to, together
//! with all that lies between: then nothing of the group but its last result is seen outside. Whether it does
//! depends on the patterns of the programs on the way ([`groups`]); a result that anything else reads
//! ends its group. Calls have no effects and read only what is bound before them, so a group may stand where
//! its last call stood ([`outline`]), if nothing writes memory that it reads in between ([`Effects`]). Equal groups
//! share a function, and constants become its parameters, so that groups that differ only in weights are equal.
//!
//! Programs say how they fuse in the attribute `op_pattern`; one without it is left alone, and so are tensors
//! of unknown rank. `relax.FuseTIR` makes one program of each group.

mod dominators;
mod graph;
mod groups;
mod outline;

use tenon_plugin_api::ir::{SymbolMap, Terms};
use tenon_plugin_api::prelude::*;
use tenon_plugin_api::program::TARGET;

use dominators::PostDominators;
use graph::{Graph, Scratch};
use groups::Groups;
use outline::Outlines;

use crate::names;

/// Groups calls of tensor programs that are worth one program.
#[pass(
    name = "relax.FuseOps",
    aliases = ["relax.transform.FuseOps", "relay._transform.FuseOps", "raf.pass_.FuseTVM"],
    opt_level = 1,
    phase = "fuse",
    after = ["tir.AnnotateOpPattern"],
    before = ["relax.FuseTIR"]
)]
fn fuse_ops(mut module: Module, cx: &PassContext, options: Options) -> Result<Module> {
    let mut programs = Programs::new(cx);
    let mut outlines = Outlines::default();
    let effects_of = ModuleEffects::of(&module);
    module.map_functions(cx, |module, _, func| {
        if names::is_group(cx, &func) {
            return Ok(func);
        }
        let mut rw = func.edit();
        let mut scratch = Scratch::of(func.view());
        let effects = effects_of.of_function(&func, cx);
        for expr in rw.post_order() {
            if !matches!(rw.view(expr), View::Let(_)) {
                continue;
            }
            let graph = Graph::of(&rw, expr, &effects, &mut scratch, &mut programs, module);
            let tree = PostDominators::of(&graph);
            let groups = Groups::of(&graph, &tree, options.max_depth);
            if groups.is_trivial() {
                continue;
            }
            let fused =
                outlines.apply(&mut rw, expr, &graph, (groups, &mut scratch), module, cx)?;
            rw.replace(expr, fused);
        }
        rw.finish()
    })?;
    Ok(module)
}

#[derive(Options)]
struct Options {
    /// most calls in one group
    #[option(default = 256, min = 1)]
    max_depth: usize,
}

/// What is known of the module's tensor programs, each looked at once.
pub(super) struct Programs {
    call_tir: Symbol,
    known: SymbolMap<Option<Program>>,
}

/// A tensor program that may be fused.
#[derive(Clone)]
pub(super) struct Program {
    pattern: OpPattern,
    /// The types of its parameters, which are all tensors of known rank.
    params: Vec<Type>,
    /// What its code is for; programs for different processors do not fuse.
    target: Option<Term>,
}

impl Programs {
    fn new(cx: &PassContext) -> Self {
        Self { call_tir: cx.symbol("call_tir"), known: SymbolMap::default() }
    }

    fn get(&mut self, name: Symbol, module: &Module, terms: Terms<'_>) -> Option<&Program> {
        let read = || {
            let func = module.get(name).filter(|func| func.is_prim())?;
            let pattern = OpPattern::from_code(terms.attrs(func.attrs()).int("op_pattern")?);
            let params: Vec<Type> = func.param_types().into_iter().collect::<Option<_>>()?;
            let is_ranked = |&ty: &Type| terms.tensor(ty).is_some();
            let may_fuse = pattern <= OpPattern::OutFusable && params.iter().all(is_ranked);
            let target = terms.attrs(func.attrs()).term(TARGET);
            may_fuse.then_some(Program { pattern, params, target })
        };
        self.known.entry(name).or_insert_with(read).as_ref()
    }
}
