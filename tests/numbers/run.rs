//! Evaluates modules, or compiles and runs them.

use std::fmt;
use std::path::Path;
use std::sync::LazyLock;

use libtest_mimic::Failed;
use tenon_compiler::diagnostics::Source;
use tenon_compiler::eval::{Evaluator, Tensor, Value};
use tenon_compiler::executable::{CompileOptions, Executable};
use tenon_compiler::infer::infer_module;
use tenon_compiler::ir::{Bytes, Cx, Module};
use tenon_compiler::passes;
use tenon_compiler::passes::{PassContext, plan};
use tenon_compiler::registry::Registry;
use tenon_compiler::runtime::dlpack::{TensorBuffer, TensorRef};
use tenon_compiler::runtime::model::Model;
use tenon_compiler::runtime::parallel::ThreadPool;
use tenon_compiler::runtime::signature::data_type;
use tenon_compiler::target::Target;
use tenon_compiler::text::{NoWeights, parse_module};

/// What computes.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Machine {
    /// The reference evaluator.
    Evaluator,
    /// Compiled code for this processor.
    Host,
    /// Compiled code for the least processor of this architecture.
    Baseline,
}

impl Machine {
    pub(crate) const ALL: [Machine; 3] = [Machine::Evaluator, Machine::Host, Machine::Baseline];
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Machine::Evaluator => "evaluated",
            Machine::Host => "compiled",
            Machine::Baseline => "compiled_for_the_baseline",
        })
    }
}

/// What the evaluator makes of `main` before a pipeline and behind it, which changes it.
pub(crate) fn rewritten(
    text: &str,
    pipeline: &str,
    inputs: &[Tensor],
) -> Result<[Vec<Tensor>; 2], Failed> {
    let before = read(text)?;
    let after = lower(&before, pipeline, &Target::native()?)?;
    Ok([evaluate(&before, inputs)?, evaluate(&after, inputs)?])
}

/// The results of a function `main` that returns a tuple.
pub(crate) fn run(text: &str, inputs: &[Tensor], machine: Machine) -> Result<Vec<Tensor>, Failed> {
    let target = match machine {
        Machine::Evaluator => return evaluate(&read(text)?, inputs),
        Machine::Host => Target::native()?,
        Machine::Baseline => Target::parse(&format!("{}-linux-gnu", std::env::consts::ARCH))?,
    };
    run_on(text, inputs, &target)
}

/// The same, compiled for a target.
pub(crate) fn run_on(
    text: &str,
    inputs: &[Tensor],
    target: &Target,
) -> Result<Vec<Tensor>, Failed> {
    Compiled::new(text, target)?.run(inputs, None)
}

/// What the evaluator makes of what a pipeline makes of a module.
pub(crate) fn evaluated_behind(
    text: &str,
    pipeline: &str,
    inputs: &[Tensor],
) -> Result<Vec<Tensor>, Failed> {
    evaluate(&lower(&read(text)?, pipeline, &Target::native()?)?, inputs)
}

/// A compiled module.
pub(crate) struct Compiled {
    executable: Executable,
    model: Model,
}

impl Compiled {
    pub(crate) fn new(text: &str, target: &Target) -> Result<Self, Failed> {
        let module = lower(&read(text)?, "default", target)?;
        let executable = Executable::compile(&module, target, &CompileOptions::default())?;
        let model = executable.jit()?;
        Ok(Self { executable, model })
    }

    /// The bytes of its code.
    pub(crate) fn objects(&self) -> Vec<&[u8]> {
        self.executable.objects().iter().map(|unit| &unit.bytes[..]).collect()
    }

    pub(crate) fn run(
        &self,
        inputs: &[Tensor],
        pool: Option<&ThreadPool>,
    ) -> Result<Vec<Tensor>, Failed> {
        let model = &self.model;
        let buffers = inputs
            .iter()
            .zip(model.inputs())
            .map(|(input, spec)| {
                let dtype = data_type(spec.dtype).ok_or("a dtype")?;
                let shape: Vec<i64> = input.shape().iter().map(|&extent| extent as i64).collect();
                TensorBuffer::from_bytes(input.bytes(), &shape, dtype).map_err(Failed::from)
            })
            .collect::<Result<Vec<_>, Failed>>()?;
        let inputs: Vec<TensorRef<'_>> = buffers.iter().map(TensorBuffer::as_ref).collect();
        let outputs = model.run(&inputs, pool)?;
        let tensors = outputs.iter().zip(model.outputs()).map(|(tensor, spec)| {
            let shape = tensor.shape().iter().map(|&extent| extent as usize).collect();
            let bytes = Bytes::new(tensor.bytes().to_vec());
            Tensor::new(spec.dtype, shape, bytes).expect("as many bytes")
        });
        Ok(tensors.collect())
    }
}

/// What is known of operators, and the rules by which their programs are scheduled.
static REGISTRY: LazyLock<Registry> = LazyLock::new(|| {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("registry.toml");
    Registry::open(&path).expect("the registry is readable")
});

fn read(text: &str) -> Result<Module, Failed> {
    let source = Source::new("numbers", text);
    let module = parse_module(&Cx::with_operators(REGISTRY.operators()), &source, &mut NoWeights)
        .map_err(|errors| errors.render(false))?;
    Ok(infer_module(&module).map_err(|errors| errors[0].1.to_diagnostic(&source).render(false))?)
}

fn lower(module: &Module, pipeline: &str, target: &Target) -> Result<Module, Failed> {
    let plan = plan(&REGISTRY, pipeline).map_err(|error| error.to_string())?;
    let mut context = PassContext { target: target.attrs(module.cx()), ..PassContext::default() };
    Ok(passes::run(&REGISTRY, &plan, module, &mut context)
        .map_err(|error| error.to_diagnostic().render(false))?)
}

fn evaluate(module: &Module, inputs: &[Tensor]) -> Result<Vec<Tensor>, Failed> {
    let args = inputs.iter().cloned().map(Value::Tensor).collect();
    let Value::Tuple(results) = Evaluator::new(module).call("main", args)? else {
        return Err("the function returns no tuple".into());
    };
    Ok(results.fields().iter().filter_map(Value::to_tensor).collect())
}
