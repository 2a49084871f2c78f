//! Shrinks a module while something about it stays true.
//!
//! Simplifications are small edits: a binding goes and a parameter stands for it, a call becomes one of its
//! arguments, a loop becomes its body, a function is removed. Many are tried at once, then halves of them, and
//! so on, after A. Zeller and R. Hildebrandt, "Simplifying and isolating failure-inducing input", IEEE
//! Transactions on Software Engineering 28(2), 2002. Rounds follow each other until one changes nothing.

mod edits;

use std::collections::HashMap;

use edits::{Edit, edits_of};
use rustc_hash::FxBuildHasher;

use crate::check::check;
use crate::infer::infer_module;
use crate::ir::{Attrs, Context, Function, Module, Symbol};

/// What a reduction did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Modules that were tried.
    pub tried: usize,
    /// Nodes of the smallest one so far.
    pub nodes: usize,
    /// Its functions.
    pub functions: usize,
}

/// The smallest module found of which `is_interesting` says so; the module itself when it does not say so of
/// that. Only modules with right types are tried, and only well-formed ones if the module is. `watch` is told
/// of every step forward.
pub fn reduce(
    module: &Module,
    is_interesting: impl FnMut(&Module) -> bool,
    watch: impl FnMut(Progress),
) -> Module {
    let is_well_formed = check(module).is_empty();
    let mut search = Search { is_interesting, watch, is_well_formed, tried: 0 };
    if !search.is_kept(module) {
        return module.clone();
    }
    let mut smallest = module.clone();
    loop {
        let next = search.round(&smallest);
        if weight(&next) >= weight(&smallest) {
            return smallest;
        }
        smallest = next;
    }
}

/// A simplification of a module.
#[derive(Clone, Copy)]
enum Step {
    /// Takes a function away.
    Remove(Symbol),
    /// Takes the module's attributes away, but its phase.
    DropAttrs,
    /// Edits a function.
    Edit(Symbol, Edit),
}

struct Search<Interesting, Watch> {
    is_interesting: Interesting,
    watch: Watch,
    is_well_formed: bool,
    tried: usize,
}

impl<Interesting: FnMut(&Module) -> bool, Watch: FnMut(Progress)> Search<Interesting, Watch> {
    /// Tries all simplifications of a module, in groups that are halved. What is kept is applied to the same
    /// base as the next group, so the numbers of nodes stay right.
    fn round(&mut self, base: &Module) -> Module {
        let steps = steps_of(base);
        let mut kept: Vec<Step> = Vec::new();
        let mut best = base.clone();
        let mut waiting = vec![&steps[..]];
        while let Some(group) = waiting.pop() {
            if group.is_empty() {
                continue;
            }
            let all: Vec<Step> = kept.iter().chain(group).copied().collect();
            match apply(base, &all).filter(|candidate| self.is_kept(candidate)) {
                Some(candidate) => {
                    (kept, best) = (all, candidate);
                    (self.watch)(Progress {
                        tried: self.tried,
                        nodes: nodes(&best),
                        functions: best.len(),
                    });
                }
                None if group.len() > 1 => {
                    let (front, back) = group.split_at(group.len() / 2);
                    waiting.extend([back, front]);
                }
                None => {}
            }
        }
        best
    }

    fn is_kept(&mut self, candidate: &Module) -> bool {
        if self.is_well_formed && !check(candidate).is_empty() {
            return false;
        }
        self.tried += 1;
        (self.is_interesting)(candidate)
    }
}

/// What may be simplified: whole functions first, then from the ends of functions to their beginnings.
fn steps_of(module: &Module) -> Vec<Step> {
    let mut steps: Vec<Step> = module.iter().map(|(name, _)| Step::Remove(name)).collect();
    if module.attrs != phase_alone(module) {
        steps.push(Step::DropAttrs);
    }
    for (name, function) in module.iter() {
        steps.extend(edits_of(function).into_iter().map(|edit| Step::Edit(name, edit)));
    }
    steps
}

/// The module after some simplifications, with all types; `None` when they do not go together.
fn apply(module: &Module, steps: &[Step]) -> Option<Module> {
    let mut edits: HashMap<Symbol, Vec<Edit>, FxBuildHasher> = HashMap::default();
    let mut after = module.clone();
    for &step in steps {
        match step {
            Step::Remove(name) => after.remove(name),
            Step::DropAttrs => after.attrs = phase_alone(module),
            Step::Edit(name, edit) => edits.entry(name).or_default().push(edit),
        }
    }
    if after.is_empty() {
        return None;
    }
    for (name, edits) in edits {
        if let Some(function) = after.get(name) {
            let edited = edits::apply(function, &edits)?;
            after.insert(name, edited);
        }
    }
    infer_module(&after).ok()
}

fn phase_alone(module: &Module) -> Attrs {
    match module.cx().terms().attrs(module.attrs).term("phase") {
        Some(phase) => module.cx().with_attr(Attrs::NONE, "phase", phase.into()),
        None => Attrs::NONE,
    }
}

fn nodes(module: &Module) -> usize {
    module.iter().map(|(_, function)| function.view().len()).sum()
}

/// Functions count most, then what they are made of.
fn weight(module: &Module) -> (usize, usize, bool) {
    let parts = |function: &Function| {
        let body = function.view();
        body.len() + body.post_order().map(|expr| body.operands(expr).len()).sum::<usize>()
    };
    let total = module.iter().map(|(_, function)| parts(function)).sum();
    (module.len(), total, module.attrs != phase_alone(module))
}

#[cfg(test)]
mod tests;
