//! What the rest of the house needs of a code generator.

use super::{BackendError, Compilation, Kernel, Launch, Loadable, Scratch, Work};
use crate::object::externals::Externals;
use crate::target::{Abilities, Architecture, Processor, Target};
use tenon_runtime::{functions::Library, signature::LibraryInfo};

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

    /// The features of a processor whose names are known, those of its name and those that were asked for, sorted.
    fn features(&self, processor: &Processor) -> Vec<&'static str>;

    /// What the caller of a program must lend it.
    fn scratch(&self, kernel: &Kernel<'_>) -> Result<Scratch, BackendError>;

    /// Whether a function that runs a whole model is among what it makes; a device has kernels alone.
    fn has_entry(&self) -> bool {
        true
    }

    /// How a program is started; none where it is called.
    fn launch(&self, _: &Target, _: &Kernel<'_>) -> Result<Option<Launch>, BackendError> {
        Ok(None)
    }

    /// Does every piece of work; the results come in the same order.
    fn compile(
        &self,
        target: &Target,
        work: &[Work<'_>],
        how: Compilation,
    ) -> Result<Vec<Vec<u8>>, BackendError>;

    /// Loads code into this process that defines the functions of `info`, with what others define.
    fn load(
        &self,
        info: LibraryInfo,
        code: &Loadable<'_>,
        externals: &Externals,
    ) -> Result<Library, BackendError>;
}

/// The processors and features of an architecture.
#[derive(Debug, Clone)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Names {
    pub processors: Vec<&'static str>,
    /// Without their signs.
    pub features: Vec<&'static str>,
}

/// The code generator for an architecture.
pub fn backend_for(architecture: Architecture) -> &'static dyn Backend {
    #[cfg(feature = "llvm")]
    if architecture == Architecture::Nvptx64 {
        return &super::nvptx::Nvptx;
    }
    let _ = architecture;
    backend()
}

/// The code generator for processors.
pub fn backend() -> &'static dyn Backend {
    #[cfg(feature = "llvm")]
    return &super::llvm::Llvm;
    #[cfg(not(feature = "llvm"))]
    return &super::none::NoBackend;
}
