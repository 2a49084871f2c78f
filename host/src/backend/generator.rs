//! What the rest of the house needs of a code generator.

use super::BackendError;
use crate::target::{Abilities, Architecture, Processor};

/// A code generator.
pub trait Backend: Sync {
    /// Its name.
    fn name(&self) -> &'static str;

    /// The processor of this machine.
    fn machine(&self) -> Result<Processor, BackendError>;

    /// The names that it knows for an architecture; `None` for one that it makes no code for.
    fn names(&self, architecture: Architecture) -> Option<Names>;

    /// What a processor can do, whose names are known.
    fn abilities(&self, processor: &Processor) -> Result<Abilities, BackendError>;
}

/// The processors and features of an architecture.
#[derive(Debug, Clone)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Names {
    pub processors: Vec<&'static str>,
    /// Without their signs.
    pub features: Vec<&'static str>,
}

/// The code generator of this program.
pub fn backend() -> &'static dyn Backend {
    #[cfg(feature = "llvm")]
    return &super::llvm::Llvm;
    #[cfg(not(feature = "llvm"))]
    return &super::none::NoBackend;
}
