//! Modules through the default pipeline, LLVM and the in-process linker: what users run, for suites of many cases.

use std::path::Path;
use std::sync::LazyLock;

use tenon_compiler::diagnostics::Diagnostic;
use tenon_compiler::eval::Tensor;
use tenon_compiler::executable::{CompileOptions, Executable};
use tenon_compiler::ir::{Bytes, Cx, Module};
use tenon_compiler::passes;
use tenon_compiler::passes::{PassContext, plan};
use tenon_compiler::registry::Registry;
use tenon_compiler::runtime::dlpack::{TensorBuffer, TensorRef};
use tenon_compiler::runtime::model::Model;
use tenon_compiler::runtime::signature::data_type;
use tenon_compiler::target::Target;

/// The program's own registry; its plugins are opened once.
static REGISTRY: LazyLock<Registry> = LazyLock::new(|| {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("registry.toml");
    Registry::open(&path).expect("the registry is readable")
});

/// An empty context with what the registry knows: operators, and the rules by which their programs are scheduled.
pub(crate) fn cx() -> Cx {
    Cx::with_operators(REGISTRY.operators())
}

/// Compiles `main` for this machine.
pub(crate) fn compile(module: &Module) -> Result<Model, String> {
    let target = Target::native().map_err(|error| error.to_string())?;
    executable(module, &target)?.jit().map_err(|error| error.to_string())
}

/// Compiles `main`.
pub(crate) fn executable(module: &Module, target: &Target) -> Result<Executable, String> {
    let lowered = lowered(module, target)?;
    Executable::compile(&lowered, target, &options()).map_err(|error| error.to_string())
}

/// A module behind the default pipeline.
pub(crate) fn lowered(module: &Module, target: &Target) -> Result<Module, String> {
    let plan = plan(&REGISTRY, "default").map_err(|error| error.to_string())?;
    let mut cx = PassContext { target: target.attrs(module.cx()), ..PassContext::default() };
    passes::run(&REGISTRY, &plan, module, &mut cx)
        .map_err(|error| first_words(&error.to_diagnostic()))
}

/// One thread: the suites run many cases at once.
pub(crate) fn options() -> CompileOptions {
    CompileOptions { threads: 1, ..CompileOptions::default() }
}

/// The message of a diagnostic, without the excerpts and advice around it.
fn first_words(diagnostic: &Diagnostic) -> String {
    diagnostic.message.clone()
}

/// Runs a model on one thread.
pub(crate) fn run(model: &Model, inputs: &[Tensor]) -> Result<Vec<Tensor>, String> {
    let buffers: Vec<TensorBuffer> = inputs.iter().map(buffer).collect::<Result<_, _>>()?;
    let refs: Vec<TensorRef<'_>> = buffers.iter().map(TensorBuffer::as_ref).collect();
    let outputs = model.run(&refs, None).map_err(|error| error.to_string())?;
    let tensors = outputs.iter().zip(model.outputs()).map(|(output, spec)| {
        let shape = output.shape().iter().map(|&extent| extent as usize).collect();
        Tensor::new(spec.dtype, shape, Bytes::new(output.bytes().to_vec()))
            .ok_or_else(|| format!("an output has not the size of {spec}"))
    });
    tensors.collect()
}

/// A tensor as an input.
pub(crate) fn buffer(tensor: &Tensor) -> Result<TensorBuffer, String> {
    let shape: Vec<i64> = tensor.shape().iter().map(|&extent| extent as i64).collect();
    let dtype = data_type(tensor.dtype())
        .ok_or_else(|| format!("{} cannot be an input", tensor.dtype()))?;
    TensorBuffer::from_bytes(tensor.bytes(), &shape, dtype).map_err(|error| error.to_string())
}
