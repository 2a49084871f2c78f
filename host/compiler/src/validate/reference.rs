//! What a module computes, and whether another one computes it too.

use std::collections::{BTreeMap, HashMap};

use rustc_hash::FxBuildHasher;

use super::compare::{Mismatch, Tolerance, Undefined};
use super::inputs::{self, Numbers, Sizes};
use crate::eval::{EvalError, Evaluator, Limits, Value};
use crate::infer::signature;
use crate::ir::{Context, Function, Module, Symbol, Type, View};

/// What the public functions of a module compute on random inputs.
pub struct Reference {
    seed: u64,
    tolerance: Tolerance,
    limits: Limits,
    results: HashMap<Symbol, Computed, FxBuildHasher>,
    /// What is to be known of functions that are not compared, or not with what they were at first.
    notes: BTreeMap<String, String>,
}

/// What one function computed.
pub(super) struct Computed {
    interface: Interface,
    /// With ordinary numbers, and with extreme ones where it has a result for them.
    pub(super) runs: Vec<Run>,
}

/// Inputs, and what was computed of them.
#[derive(Clone)]
pub(super) struct Run {
    pub(super) inputs: Vec<Value>,
    pub(super) result: Value,
    pub(super) undefined: Undefined,
    pub(super) numbers: Numbers,
}

/// How a function is called. Inputs are found by the names of parameters, so other names are another interface; those
/// of a tensor program's buffers are not seen by who calls it.
#[derive(PartialEq)]
struct Interface {
    ty: Type,
    names: Vec<Symbol>,
}

/// A function that computes something else, or nothing any more.
#[derive(Debug)]
pub struct Difference {
    /// The function.
    pub function: Symbol,
    /// How it differs.
    pub how: How,
}

/// How a function differs.
#[derive(Debug, thiserror::Error)]
pub enum How {
    /// Another result.
    #[error("{0}")]
    Result(Mismatch),
    /// It had a result, and now has none.
    #[error("it could be evaluated before, and now: {0}")]
    Fails(EvalError),
}

impl Reference {
    /// Evaluates the public functions of a module that have inputs which can be made and results.
    pub fn new(module: &Module, seed: u64) -> Self {
        Self::with_limits(module, seed, Limits::default())
    }

    /// The same, with other limits for each evaluation.
    pub fn with_limits(module: &Module, seed: u64, limits: Limits) -> Self {
        let mut reference = Self {
            seed,
            tolerance: Tolerance::default(),
            limits,
            results: HashMap::default(),
            notes: BTreeMap::new(),
        };
        public(module).for_each(|(name, function)| reference.compute(module, name, function));
        reference
    }

    /// Sets how much floats may differ.
    pub fn with_tolerance(mut self, tolerance: Tolerance) -> Self {
        self.tolerance = tolerance;
        self
    }

    /// Compares what becomes of ordinary numbers alone.
    pub fn with_ordinary_numbers(mut self) -> Self {
        self.results.values_mut().for_each(|computed| computed.runs.truncate(1));
        self
    }

    /// Lets floats differ as much as `tolerance` says, from here on.
    pub fn tolerate(&mut self, tolerance: Tolerance) {
        self.tolerance = self.tolerance.max(tolerance);
    }

    /// The number of functions that are compared.
    pub fn len(&self) -> usize {
        self.results.len()
    }

    /// Whether nothing is compared.
    pub fn is_empty(&self) -> bool {
        self.results.is_empty()
    }

    /// The functions that are not compared, or not with what they were at first, each with the reason.
    pub fn notes(&self) -> impl Iterator<Item = (&str, &str)> {
        self.notes.iter().map(|(function, why)| (function.as_str(), why.as_str()))
    }

    /// What a function computed.
    pub(super) fn computed(&self, name: Symbol) -> Option<&Computed> {
        self.results.get(&name)
    }

    /// How much floats may differ.
    pub(super) fn tolerance(&self) -> Tolerance {
        self.tolerance
    }

    /// The reference of `module`, when it computes what this one says. A function that is called in another way than
    /// before is compared from here on, and one that is gone is not.
    pub fn advance(&self, module: &Module) -> Result<Reference, Difference> {
        let (results, notes) = (HashMap::default(), self.notes.clone());
        let mut next = Self { results, notes, ..*self };
        let mut evaluator = Evaluator::new(module).with_limits(self.limits);
        for (name, function) in public(module) {
            let text = module.cx().terms().str(name);
            let interface = Interface::of(function);
            let before = match self.results.get(&name) {
                Some(before) if interface.as_ref() == Some(&before.interface) => before,
                // What could not be evaluated once is not tried again and again.
                None if self.notes.contains_key(text) => continue,
                before => {
                    next.compute(module, name, function);
                    if before.is_some() && next.results.contains_key(&name) {
                        let why = "compared from where its parameters became others";
                        next.notes.insert(text.to_owned(), why.to_owned());
                    }
                    continue;
                }
            };
            let runs: Result<Vec<Run>, How> =
                before.runs.iter().map(|run| self.again(run, text, &mut evaluator)).collect();
            match runs {
                Ok(runs) => {
                    let names = before.interface.names.clone();
                    let interface = Interface { names, ..before.interface };
                    next.results.insert(name, Computed { interface, runs });
                }
                Err(How::Fails(error)) if error.is_no_verdict() => {
                    next.notes.insert(text.to_owned(), format!("not compared any more: {error}"));
                }
                Err(how) => return Err(Difference { function: name, how }),
            }
        }
        Ok(next)
    }

    /// What a function computes now of the inputs of a run.
    fn again(&self, run: &Run, name: &str, evaluator: &mut Evaluator<'_>) -> Result<Run, How> {
        let result = evaluator.call(name, run.inputs.clone()).map_err(How::Fails)?;
        let compared = self.tolerance.compare(&run.result, &result, &run.undefined, run.numbers);
        compared.map_err(How::Result)?;
        Ok(Run { result, ..run.clone() })
    }

    /// Evaluates a function, or notes why not.
    fn compute(&mut self, module: &Module, name: Symbol, function: &Function) {
        let text = module.cx().terms().str(name);
        let mut why = "a parameter has no type".to_owned();
        if let Some(interface) = Interface::of(function) {
            for sizes in Sizes::of(function) {
                let run = |numbers| self.evaluate(module, function, text, &sizes, numbers);
                match run(Numbers::Ordinary) {
                    Ok(ordinary) => {
                        // An extreme number may be no index, or no size.
                        let has_floats = inputs::takes_floats(&ordinary.inputs);
                        let infinite = has_floats.then(|| run(Numbers::Infinite).ok()).flatten();
                        let more = run(Numbers::Extreme).ok().into_iter().chain(infinite);
                        let runs = [ordinary].into_iter().chain(more).collect();
                        let computed = Computed { interface, runs };
                        self.results.insert(name, computed);
                        return;
                    }
                    Err(NoValue::ForThese(error)) => why = error,
                    Err(NoValue::AtAll(error)) => {
                        why = error;
                        break;
                    }
                }
            }
        }
        self.notes.insert(text.to_owned(), format!("not compared: {why}"));
    }

    fn evaluate(
        &self,
        module: &Module,
        function: &Function,
        name: &str,
        sizes: &Sizes,
        numbers: Numbers,
    ) -> Result<Run, NoValue> {
        let inputs = inputs::random(function, sizes, numbers, self.seed, name);
        let inputs = inputs.map_err(|none| NoValue::ForThese(none.to_string()))?;
        let mut evaluator = Evaluator::new(module).with_limits(self.limits);
        let result = evaluator.call(name, inputs.clone())?;
        if !evaluator.has_memory() {
            return Ok(Run { inputs, result, undefined: Undefined::nothing(), numbers });
        }
        let limits = Limits { fill: !self.limits.fill, ..self.limits };
        let other = Evaluator::new(module).with_limits(limits).call(name, inputs.clone())?;
        let undefined = Undefined::between(&result, &other).ok_or_else(|| {
            let why = "the shape of its result depends on memory that nothing has written";
            NoValue::AtAll(why.to_owned())
        })?;
        Ok(Run { inputs, result, undefined, numbers })
    }
}

/// Why a function has no value.
enum NoValue {
    /// Other inputs may have one.
    ForThese(String),
    AtAll(String),
}

impl From<EvalError> for NoValue {
    fn from(error: EvalError) -> Self {
        match error.is_no_verdict() {
            true => NoValue::AtAll(error.to_string()),
            false => NoValue::ForThese(error.to_string()),
        }
    }
}

impl Interface {
    fn of(function: &Function) -> Option<Self> {
        let body = function.view();
        let names = match body.view(body.root()) {
            View::Function { params, .. } => {
                params.iter().map(|param| Symbol(body.raw_node(param).data)).collect()
            }
            _ => Vec::new(),
        };
        Some(Self { ty: signature(function)?, names })
    }
}

fn public(module: &Module) -> impl Iterator<Item = (Symbol, &Function)> {
    module
        .iter()
        .filter(|(_, function)| !function.is_private())
        .map(|(name, function)| (name, &**function))
}
