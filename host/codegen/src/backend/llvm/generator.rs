//! LLVM as a code generator of the house.

use super::codegen::{
    build_code, build_constants, build_front, build_kernel, pipeline_for, scratch_of,
};
use super::process::load_library;
use super::units::{CompileOptions, Pipeline, compile_units_by};
use super::{LlvmError, machine, probe, subtarget};
use crate::backend::{Backend, BackendError, Compilation, Kernel, Loadable, Names, Scratch, Work};
use crate::object::externals::Externals;
use crate::target::{Abilities, Architecture, Processor, Target};
use tenon_runtime::{functions::Library, signature::LibraryInfo};

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
        Some(subtarget::names_of(architecture))
    }

    fn abilities(&self, processor: &Processor) -> Result<Abilities, BackendError> {
        Ok(probe::probe(processor)?)
    }

    fn features(&self, processor: &Processor) -> Vec<&'static str> {
        subtarget::features(processor)
    }

    fn scratch(&self, kernel: &Kernel<'_>) -> Result<Scratch, BackendError> {
        scratch_of(kernel)
    }

    fn compile(
        &self,
        target: &Target,
        work: &[Work<'_>],
        how: Compilation,
    ) -> Result<Vec<Vec<u8>>, BackendError> {
        let Compilation { emit, threads } = how;
        let options = CompileOptions { emit, threads, ..CompileOptions::default() };
        let pipeline = |work: &Work<'_>| match work {
            Work::Kernel(kernel) => pipeline_for(kernel.function),
            Work::Code(_) | Work::Front(_) => Pipeline::Calls,
            Work::Constants(_) => Pipeline::None,
        };
        compile_units_by(target, &options, work, pipeline, |cx, work| match work {
            Work::Code(code) => build_code(cx, target, code),
            Work::Kernel(kernel) => build_kernel(cx, target, kernel),
            Work::Front(front) => build_front(cx, target, front),
            Work::Constants(constants) => Ok(build_constants(cx, constants)),
        })
    }

    fn load(
        &self,
        info: LibraryInfo,
        code: &Loadable<'_>,
        externals: &Externals,
    ) -> Result<Library, BackendError> {
        Ok(load_library(info, code, externals)?)
    }
}

impl From<LlvmError> for BackendError {
    fn from(error: LlvmError) -> BackendError {
        BackendError::Generator(Box::new(error))
    }
}
