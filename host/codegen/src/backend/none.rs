//! What stands in for a code generator in a program that was built without.

use super::{Backend, BackendError, Compilation, Kernel, Loadable, Names, Scratch, Work};
use crate::object::externals::Externals;
use crate::target::{Abilities, Architecture, Processor, Target};
use tenon_runtime::{functions::Library, signature::LibraryInfo};

/// Knows the architecture of this machine, with vectors that each of its processors has.
pub(super) struct NoBackend;

impl Backend for NoBackend {
    fn name(&self) -> &'static str {
        "none"
    }

    fn machine(&self) -> Result<Processor, BackendError> {
        use std::env::consts::{ARCH, OS};
        Ok(Processor {
            triple: format!("{ARCH}-unknown-{OS}"),
            architecture: Architecture::of(ARCH).unwrap_or(Architecture::X86_64),
            cpu: "generic".to_owned(),
            features: String::new(),
        })
    }

    fn names(&self, architecture: Architecture) -> Option<Names> {
        let here = Architecture::of(std::env::consts::ARCH);
        let names = Names { processors: vec!["generic"], features: Vec::new() };
        (here == Some(architecture)).then_some(names)
    }

    fn abilities(&self, _: &Processor) -> Result<Abilities, BackendError> {
        Ok(Abilities {
            vector_bits: 128,
            has_fma: false,
            has_half: false,
            has_rounding: false,
            has_scaling: false,
        })
    }

    fn features(&self, _: &Processor) -> Vec<&'static str> {
        Vec::new()
    }

    fn scratch(&self, _: &Kernel<'_>) -> Result<Scratch, BackendError> {
        Err(BackendError::Absent)
    }

    fn compile(
        &self,
        _: &Target,
        _: &[Work<'_>],
        _: Compilation,
    ) -> Result<Vec<Vec<u8>>, BackendError> {
        Err(BackendError::Absent)
    }

    fn load(
        &self,
        _: LibraryInfo,
        _: &Loadable<'_>,
        _: &Externals,
    ) -> Result<Library, BackendError> {
        Err(BackendError::Absent)
    }
}
