//! The modules that passes are tried on: some that are written down, others from seeds, brought to the phase in
//! which a pass runs.

use std::collections::HashMap;
use std::sync::Arc;

use crate::check::check;
use crate::diagnostics::Source;
use crate::infer::infer_module;
use crate::ir::{Cx, Module, OpBook};
use crate::passes::{PassContext, Plan, run};
use crate::registry::Registry;
use crate::target::Target;
use crate::testing::random_module;
use crate::text::{NoWeights, parse_module};

/// What the text of a module has where no version knows a node.
pub(super) const UNKNOWN_NODE: &str = "unknown<2000";

/// Functions of a long module.
const LONG: usize = 2000;

/// A module with its name.
pub(super) type Case = (String, Module);

/// The modules, and what they became before each phase.
pub(super) struct Corpus {
    cases: Vec<Case>,
    long: Module,
    prepared: HashMap<String, Vec<Case>>,
}

impl Corpus {
    /// The modules that are written down, and so many from seeds.
    /// Their operators are those of a book.
    pub(super) fn new(operators: &Arc<dyn OpBook>, seed: u64, random_modules: usize) -> Self {
        let parse = |text: &str| parse(&Cx::with_operators(operators.clone()), text);
        let texts = include_str!("corpus.txt").split("---\n");
        let mut cases: Vec<Case> = texts
            .filter_map(|text| text.split_once('\n'))
            .map(|(name, text)| (name.to_owned(), parse(text)))
            .collect();
        cases.extend((0..random_modules as u64).map(|number| {
            let seed = seed.wrapping_add(number);
            (
                format!("seed {seed}"),
                random_module(&Cx::with_operators(operators.clone()), seed, 60),
            )
        }));
        let chain: String = (0..LONG).map(|at| format!("  %v{} = exp(%v{at})\n", at + 1)).collect();
        let long = format!("fn @main(%v0: f32[4]) -> f32[4] {{\n{chain}  ret %v{LONG}\n}}\n");
        Self { cases, long: parse(&long), prepared: HashMap::new() }
    }

    /// The modules after the passes of a plan; those that it refuses are left out.
    pub(super) fn after(&mut self, registry: &Registry, plan: &Plan, target: &Target) -> &[Case] {
        let key = plan.to_string();
        let cases = &self.cases;
        self.prepared.entry(key).or_insert_with(|| {
            let brought = cases.iter().filter_map(|(name, module)| {
                Some((name.clone(), bring(registry, plan, target, module)?))
            });
            brought.collect()
        })
    }

    /// A module with a long function, after the passes of a plan.
    pub(super) fn long(&self, registry: &Registry, plan: &Plan, target: &Target) -> Option<Module> {
        bring(registry, plan, target, &self.long)
    }
}

/// A module after the passes of a plan, where it is well formed.
fn bring(registry: &Registry, plan: &Plan, target: &Target, module: &Module) -> Option<Module> {
    let mut cx = PassContext { target: target.attrs(module.cx()), ..PassContext::default() };
    let module = run(registry, plan, module, &mut cx).ok()?;
    check(&module).is_empty().then_some(module)
}

fn parse(cx: &Cx, text: &str) -> Module {
    let module = parse_module(cx, &Source::new("the corpus", text), &mut NoWeights);
    let module = module.expect("the corpus is well written");
    infer_module(&module).expect("the corpus has types")
}

#[cfg(test)]
mod tests {
    use super::{Corpus, UNKNOWN_NODE};
    use crate::check::check;
    use crate::text::{WeightsPolicy, print_module};

    #[test]
    fn the_corpus_is_well_formed() {
        let corpus = Corpus::new(&crate::ops::linked(), 0, 5);
        assert_eq!(corpus.cases.len(), 16);
        for (name, module) in &corpus.cases {
            assert_eq!(check(module).first().map(|it| it.to_diagnostic().message), None, "{name}");
            let text = print_module(module, &mut WeightsPolicy::inline());
            assert_eq!(text.contains(UNKNOWN_NODE), name == "unknown kinds", "{name}");
        }
    }
}
