//! The code generator.

use super::error::NvptxError;
use super::text::{behind_others, symbol};
use crate::backend::llvm::Llvm;
use crate::backend::llvm::codegen::{build_device_kernel, launch_shape};
use crate::backend::llvm::units::{CompileOptions, Pipeline, compile_units};
use crate::backend::{
    Backend, BackendError, Compilation, Emit, Kernel, Launch, Loadable, Names, Scratch, Work,
};
use crate::object::externals::Externals;
use crate::target::{Abilities, Architecture, Processor, Target};
use tenon_runtime::{functions::Library, signature::LibraryInfo};

/// LLVM's code generator for NVIDIA's devices.
pub(in crate::backend) struct Nvptx;

impl Backend for Nvptx {
    fn name(&self) -> &'static str {
        "nvptx"
    }

    fn machine(&self) -> Result<Processor, BackendError> {
        Llvm.machine()
    }

    fn names(&self, architecture: Architecture) -> Option<Names> {
        Llvm.names(architecture)
    }

    fn abilities(&self, processor: &Processor) -> Result<Abilities, BackendError> {
        Llvm.abilities(processor)
    }

    fn features(&self, processor: &Processor) -> Vec<&'static str> {
        Llvm.features(processor)
    }

    fn scratch(&self, _: &Kernel<'_>) -> Result<Scratch, BackendError> {
        Ok(Scratch::default())
    }

    fn has_entry(&self) -> bool {
        false
    }

    fn launch(&self, target: &Target, kernel: &Kernel<'_>) -> Result<Option<Launch>, BackendError> {
        let shape = launch_shape(target, kernel)?;
        Ok(Some(Launch { symbol: symbol(kernel.symbol), shape }))
    }

    fn compile(
        &self,
        target: &Target,
        work: &[Work<'_>],
        how: Compilation,
    ) -> Result<Vec<Vec<u8>>, BackendError> {
        let Compilation { emit, threads } = how;
        let options = CompileOptions { emit, threads, pipeline: Pipeline::Default(3) };
        if emit == Emit::Object {
            return Err(NvptxError::Form("object").into());
        }
        let made = compile_units(target, &options, work, |cx, work| match work {
            Work::Kernel(kernel) => {
                let symbol = symbol(kernel.symbol);
                build_device_kernel(cx, target, &Kernel { symbol: &symbol, ..*kernel })
            }
            Work::Code(_) => Err(NvptxError::Work("function of a whole model").into()),
            Work::Front(_) => Err(NvptxError::Work("library").into()),
            Work::Constants(_) => Err(NvptxError::Work("constants").into()),
        })?;
        let is_ptx = emit == Emit::Assembly;
        let text = |(at, text): (usize, Vec<u8>)| match is_ptx && at > 0 {
            true => behind_others(text),
            false => text,
        };
        Ok(made.into_iter().enumerate().map(text).collect())
    }

    fn load(
        &self,
        _: LibraryInfo,
        _: &Loadable<'_>,
        _: &Externals,
    ) -> Result<Library, BackendError> {
        Err(NvptxError::Load.into())
    }
}

impl From<NvptxError> for BackendError {
    fn from(error: NvptxError) -> BackendError {
        BackendError::Generator(Box::new(error))
    }
}
