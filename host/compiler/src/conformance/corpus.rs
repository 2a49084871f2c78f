//! The modules that passes are tried on: some that are written down, a call of each operator that does much work, others
//! from seeds; brought to the phase in which a pass runs.
//!
//! In `corpus.txt` `one.0` is an operator of one argument, `one.1` another one where there is another, `two.0` one that adds,
//! and so on: which these are says the book of operators ([`vocabulary`](super::vocabulary)).

use std::collections::HashMap;
use std::sync::Arc;

use super::operator::{Call, calls, sized};
use crate::check::check;
use crate::diagnostics::Source;
use crate::infer::infer_module;
use crate::ir::{Attrs, Build, Context, Cx, DType, Module, OpBook, OpDef, Transaction};
use crate::ops::OpPattern;
use crate::passes::{PassContext, Plan, run};
use crate::registry::Registry;
use crate::target::Target;
use crate::testing::{Random, Vocabulary, random_module};
use crate::text::{NoWeights, parse_module};

/// What the text of a module has where no version knows a node.
pub(super) const UNKNOWN_NODE: &str = "unknown<2000";

/// Operators of a number of arguments that the text tells from each other.
const OPERATORS: usize = 3;

/// Bindings of a long module.
const LONG: usize = 2000;

/// A module with its name.
pub(super) type Case = (String, Module);

/// The modules, and what they became before each phase.
pub(super) struct Corpus {
    cases: Vec<Case>,
    /// None without operators.
    long: Option<Module>,
    prepared: HashMap<String, Vec<Case>>,
}

impl Corpus {
    /// The modules that are written down, one for each operator that does much work, and so many from seeds. Their
    /// operators are those of a book; with no vocabulary there are only those without operators.
    pub(super) fn new(
        book: &Arc<dyn OpBook>,
        vocabulary: Option<&Vocabulary>,
        seed: u64,
        random_modules: usize,
    ) -> Self {
        let cx = || Cx::with_operators(book.clone());
        let texts = include_str!("corpus.txt").split("---\n");
        let mut cases: Vec<Case> = texts
            .filter_map(|text| text.split_once('\n'))
            .filter_map(|(name, text)| Some((name.to_owned(), in_words(&cx(), text, vocabulary)?)))
            .collect();
        cases.extend(vocabulary.map(|words| ("each operator".to_owned(), each(&cx(), words))));
        cases.extend(vocabulary.into_iter().flat_map(|words| workers(&cx(), words, seed)));
        cases.extend(vocabulary.into_iter().flat_map(|words| {
            (0..random_modules as u64).map(move |number| {
                let seed = seed.wrapping_add(number);
                (format!("seed {seed}"), random_module(&cx(), words, seed, 60))
            })
        }));
        let chain: String =
            (0..LONG).map(|at| format!("  %v{} = one.0(%v{at})\n", at + 1)).collect();
        let long = format!("fn @main(%v0: f32[4]) -> f32[4] {{\n{chain}  ret %v{LONG}\n}}\n");
        let long = in_words(&cx(), &long, vocabulary);
        Self { cases, long, prepared: HashMap::new() }
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
        bring(registry, plan, target, self.long.as_ref()?)
    }
}

/// A module after the passes of a plan, where it is well formed.
fn bring(registry: &Registry, plan: &Plan, target: &Target, module: &Module) -> Option<Module> {
    let mut cx = PassContext { target: target.attrs(module.cx()), ..PassContext::default() };
    let module = run(registry, plan, module, &mut cx).ok()?;
    check(&module).is_empty().then_some(module)
}

/// A module of the corpus with the operators of a vocabulary; none where it needs one and there is none.
fn in_words(cx: &Cx, text: &str, vocabulary: Option<&Vocabulary>) -> Option<Module> {
    let mut text = text.to_owned();
    for number in 0..OPERATORS {
        let words = [format!("one.{number}("), format!("two.{number}(")];
        if words.iter().any(|word| text.contains(word)) {
            let Vocabulary { unary, binary } = vocabulary?;
            for (word, names) in words.iter().zip([unary, binary]) {
                text = text.replace(word, &format!("{}(", names[number % names.len()]));
            }
        }
    }
    Some(parse(cx, text))
}

fn parse(cx: &Cx, text: String) -> Module {
    let module = parse_module(cx, &Source::new("the corpus", text), &mut NoWeights);
    let module = module.expect("the corpus is well written");
    infer_module(&module).expect("the corpus has types")
}

/// A function that calls each operator of the vocabulary once, in which the results of all count.
fn each(cx: &Cx, Vocabulary { unary, binary }: &Vocabulary) -> Module {
    let ones = unary.iter().zip(0..).map(|(op, at)| format!("  %a{at} = {op}(%x)\n"));
    let twos = binary.iter().zip(0..).map(|(op, at)| format!("  %b{at} = {op}(%x, %y)\n"));
    let calls: String = ones.chain(twos).collect();
    let names = ["a", "b"].into_iter().zip([unary.len(), binary.len()]);
    let results: Vec<String> =
        names.flat_map(|(name, count)| (0..count).map(move |at| format!("%{name}{at}"))).collect();
    let results = results.join(", ");
    parse(cx, format!("fn @main(%x: f32[3, 4], %y: f32[4]) {{\n{calls}  ret ({results})\n}}\n"))
}

/// A call of each operator that takes others behind it, with some behind it.
fn workers(cx: &Cx, vocabulary: &Vocabulary, seed: u64) -> Vec<Case> {
    let names = cx.operators().names().into_iter();
    let ops = names.filter_map(|name| cx.operators().find(&name).filter(|op| op.name == name));
    let module = |op: Arc<OpDef>| {
        let calls = calls(cx, &op, &mut Random::new(seed));
        let call = calls.iter().map(|call| sized(cx, call)).find(|call| is_of_floats(cx, call))?;
        Some((format!("a call of `{}`", op.name), worker(cx, vocabulary, &op, &call)?))
    };
    ops.filter(|op| op.pattern == OpPattern::OutFusable).filter_map(module).collect()
}

fn is_of_floats(cx: &Cx, call: &Call) -> bool {
    let dtype = |ty| cx.terms().static_tensor(ty).map(|(dtype, _)| dtype);
    call.args.iter().chain([&call.result]).all(|&ty| dtype(ty) == Some(DType::F32))
}

/// A function of the first argument; the others are constants.
fn worker(cx: &Cx, vocabulary: &Vocabulary, op: &OpDef, call: &Call) -> Option<Module> {
    let mut tx = Transaction::new(cx.clone());
    let constant = |tx: &mut Transaction, ty| {
        let (_, shape) = cx.terms().static_tensor(ty)?;
        let count = shape.iter().product::<i64>();
        let bytes = (0..count).flat_map(|at| ((at % 7) as f32 / 4.0 - 0.5).to_le_bytes());
        Some(tx.constant(ty, &bytes.collect::<Vec<u8>>()))
    };
    let param = tx.var("x", Some(*call.args.first()?));
    let mut args = vec![param];
    for &ty in &call.args[1..] {
        args.push(constant(&mut tx, ty)?);
    }
    let number = constant(&mut tx, cx.static_tensor_type(DType::F32, &[]))?;
    let work = tx.call_op(op.name, &args, call.attrs);
    let added = tx.call_op(&vocabulary.binary[0], &[work, number], Attrs::NONE);
    let result = tx.call_op(&vocabulary.unary[0], &[added], Attrs::NONE);
    let root = tx.function(&[param], result, None, Attrs::NONE);
    tx.set_root(root);
    let mut module = Module::new(cx.clone());
    module.insert(cx.symbol("main"), tx.finish().ok()?);
    infer_module(&module).ok()
}

#[cfg(test)]
mod tests {
    use super::{Corpus, UNKNOWN_NODE};
    use crate::check::check;
    use crate::conformance::vocabulary::vocabulary;
    use crate::text::{WeightsPolicy, print_module};

    #[test]
    fn the_corpus_is_well_formed() {
        let book = crate::ops::linked();
        let vocabulary = vocabulary(&book).expect("there are operators");
        let corpus = Corpus::new(&book, Some(&vocabulary), 0, 5);
        assert_eq!(corpus.cases.len(), 15);
        for (name, module) in &corpus.cases {
            assert_eq!(check(module).first().map(|it| it.to_diagnostic().message), None, "{name}");
            let text = print_module(module, &mut WeightsPolicy::inline());
            assert_eq!(text.contains(UNKNOWN_NODE), name == "unknown kinds", "{name}");
        }
    }
}
