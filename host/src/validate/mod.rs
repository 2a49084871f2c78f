//! Translation validation: whether a module still computes what another one computes.
//!
//! Both are run by the reference evaluator on the same random inputs, which come from a seed, and their results
//! are compared. That finds differences; it does not prove that there are none. What cannot be evaluated,
//! such as a call of something external, is not compared.
//!
//! After G. C. Necula, "Translation validation for an optimizing compiler", PLDI 2000, with testing in the
//! place of proof.

mod compare;
mod inputs;

use std::collections::HashMap;

use rustc_hash::FxBuildHasher;

pub use compare::{Mismatch, Tolerance};

use crate::eval::{EvalError, Evaluator, Value};
use crate::infer::signature;
use crate::ir::{Context, Function, Module, Symbol, Type};

/// What the public functions of a module compute on random inputs.
pub struct Reference {
    seed: u64,
    tolerance: Tolerance,
    results: HashMap<Symbol, Computed, FxBuildHasher>,
}

/// What one function computed.
struct Computed {
    /// Its type, by which it is known to be called in the same way.
    ty: Type,
    inputs: Vec<Value>,
    result: Value,
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
        let mut reference =
            Self { seed, tolerance: Tolerance::default(), results: HashMap::default() };
        for (name, function) in public(module) {
            if let Some(computed) = reference.compute(module, name, function) {
                reference.results.insert(name, computed);
            }
        }
        reference
    }

    /// Sets how much floats may differ.
    pub fn with_tolerance(mut self, tolerance: Tolerance) -> Self {
        self.tolerance = tolerance;
        self
    }

    /// The number of functions that are compared.
    pub fn len(&self) -> usize {
        self.results.len()
    }

    /// Whether nothing is compared.
    pub fn is_empty(&self) -> bool {
        self.results.is_empty()
    }

    /// The reference of `module`, when it computes what this one says. Functions that are called in another
    /// way than before, and those that are gone, are not compared.
    pub fn advance(&self, module: &Module) -> Result<Reference, Difference> {
        let mut next = Self { results: HashMap::default(), ..*self };
        let mut evaluator = Evaluator::new(module);
        for (name, function) in public(module) {
            let before = self.results.get(&name).filter(|old| signature(function) == Some(old.ty));
            let Some(before) = before else {
                next.results.extend(self.compute(module, name, function).map(|new| (name, new)));
                continue;
            };
            let result = evaluator
                .call(module.cx().terms().str(name), before.inputs.clone())
                .map_err(|error| Difference { function: name, how: How::Fails(error) })?;
            self.tolerance
                .compare(&before.result, &result)
                .map_err(|mismatch| Difference { function: name, how: How::Result(mismatch) })?;
            let (ty, inputs) = (before.ty, before.inputs.clone());
            next.results.insert(name, Computed { ty, inputs, result });
        }
        Ok(next)
    }

    fn compute(&self, module: &Module, name: Symbol, function: &Function) -> Option<Computed> {
        let ty = signature(function)?;
        let text = module.cx().terms().str(name);
        let inputs = inputs::random(function, self.seed, text)?;
        let result = Evaluator::new(module).call(text, inputs.clone()).ok()?;
        Some(Computed { ty, inputs, result })
    }
}

fn public(module: &Module) -> impl Iterator<Item = (Symbol, &Function)> {
    module
        .iter()
        .filter(|(_, function)| !function.is_private())
        .map(|(name, function)| (name, &**function))
}

#[cfg(test)]
mod tests;
