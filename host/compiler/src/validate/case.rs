//! Inputs of one function, with what compiled code is to make of them.

use super::compare::{Mismatch, Tolerance, Undefined};
use super::compiled::{CompiledError, inputs_of, run_compiled, tuple_of};
use super::inputs::{self, Numbers, Sizes};
use crate::eval::{Evaluator, Limits, Value};
use crate::ir::{Function, Module};
use crate::plan::DimRanges;
use crate::runtime::dlpack::{TensorBuffer, TensorError};
use crate::runtime::model::Model;

/// Ordinary random inputs of a function, and its result.
pub(crate) struct Case {
    inputs: Vec<Value>,
    expected: Value,
}

/// Inputs without a result.
pub(crate) struct Unjudged(Vec<Value>);

impl Unjudged {
    /// Inputs of a function from a seed, of small extents within ranges where these are open.
    ///
    /// # Errors
    /// When such inputs cannot be made: a text says why.
    pub(crate) fn new(
        function: &Function,
        name: &str,
        seed: u64,
        ranges: &DimRanges,
    ) -> Result<Self, String> {
        let sizes = Sizes::within(function, ranges);
        let sizes = sizes.first().ok_or("it takes no sizes")?;
        let made = inputs::random(function, sizes, Numbers::Ordinary, seed, name);
        made.map(Self).map_err(|none| none.to_string())
    }

    /// What the evaluator makes of them, within limits.
    ///
    /// # Errors
    /// The inputs, where it has no result.
    pub(crate) fn evaluated(
        self,
        module: &Module,
        name: &str,
        limits: Limits,
    ) -> Result<Case, Unjudged> {
        let mut evaluator = Evaluator::new(module).with_limits(limits);
        match evaluator.call(name, self.0.clone()) {
            Ok(result) => Ok(Case { inputs: self.0, expected: tuple_of(&result) }),
            Err(_) => Err(self),
        }
    }

    /// What compiled code makes of them.
    ///
    /// # Errors
    /// When it does not run.
    pub(crate) fn computed_by(self, model: &Model) -> Result<Case, CompiledError> {
        let expected = run_compiled(model, &self.0)?;
        Ok(Case { inputs: self.0, expected })
    }
}

impl Case {
    /// The inputs, as compiled code takes them.
    ///
    /// # Errors
    /// When there is no memory for them.
    pub(crate) fn inputs(&self, model: &Model) -> Result<Vec<TensorBuffer>, TensorError> {
        inputs_of(model, &self.inputs)
    }

    /// Runs compiled code, and compares: sums may be made in another order.
    ///
    /// # Errors
    /// When it does not run, or computes something else.
    pub(crate) fn check(&self, model: &Model) -> Result<Result<(), Mismatch>, CompiledError> {
        let found = run_compiled(model, &self.inputs)?;
        let tolerance = Tolerance::default();
        Ok(tolerance.compare(&self.expected, &found, &Undefined::nothing(), Numbers::Ordinary))
    }
}
