//! LLVM as a code generator of the house.

use super::names::names_of;
use super::{LlvmError, machine, probe};
use crate::backend::{Backend, BackendError, Names};
use crate::target::{Abilities, Architecture, Processor};

/// LLVM.
pub struct Llvm;

impl Backend for Llvm {
    fn name(&self) -> &'static str {
        "llvm"
    }

    fn machine(&self) -> Result<Processor, BackendError> {
        Ok(machine::this_machine()?)
    }

    fn names(&self, architecture: Architecture) -> Option<Names> {
        Some(names_of(architecture))
    }

    fn abilities(&self, processor: &Processor) -> Result<Abilities, BackendError> {
        Ok(probe::probe(processor)?)
    }
}

impl From<LlvmError> for BackendError {
    fn from(error: LlvmError) -> BackendError {
        BackendError::Generator(Box::new(error))
    }
}
