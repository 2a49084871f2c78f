//! Where compiled code first computes something else than a judge.
//!
//! A model is brought to kernels and to code as always, but for a pass in between that has it return what every kernel gives. So each
//! kernel is the one that runs without it, and its numbers can be looked at. What came from which node says to which number of the model
//! a kernel's result belongs; layouts that passes choose are undone. A wrong output is followed back through kernels that are wrong
//! as well, to the first one. That one's program is evaluated on what the kernel was given: if it gives the same wrong numbers,
//! a pass wrote it so; if not, its schedule or its code is at fault.
//!
//! Pipelines of the registry say what runs: `intermediates` over the model, `kernels` up to where kernels are whole, and `code`
//! from there.

mod fit;
mod grain;
mod judge;
mod kernels;

use thiserror::Error;

use crate::eval::{Evaluator, Tensor, Value};
use crate::io::Array;
use crate::ir::Module;
use crate::runtime::model::Model as CompiledModel;
use crate::runtime::signature::TensorSpec;
use crate::session::{Model, Options, Pipeline, Session, SessionError, Watch};
use crate::target::Target;
use crate::validate::{CompiledError, run_compiled, tensors_of};

use fit::fit;
use grain::{Grain, is_step};
pub use judge::{Judge, JudgeError};
use kernels::Kernels;

/// What is compared.
#[derive(Clone, Copy)]
pub struct Question<'a> {
    pub session: &'a Session,
    pub model: &'a Model,
    pub target: &'a Target,
    pub options: &'a Options,
    /// The largest difference that is none, as a part of the largest magnitude of a tensor; by what its numbers were rounded to on the
    /// way, where nothing is said.
    pub tolerance: Option<f64>,
}

/// Why nothing was compared.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum CompareError {
    #[error(transparent)]
    Session(#[from] SessionError),
    #[error(transparent)]
    Compiled(#[from] CompiledError),
    #[error(transparent)]
    Judge(#[from] JudgeError),
    #[error("the module has no function `main`, which is what is compared")]
    NoMain,
    #[error("code for {0} cannot be run on this machine")]
    OtherMachine(String),
    #[error("the judge gives {judge} outputs, and compiled code {compiled}")]
    Outputs { judge: usize, compiled: usize },
}

/// How far numbers are from those of a judge.
#[derive(Clone, Debug, PartialEq)]
pub struct Error {
    /// The largest difference, as a part of the largest magnitude.
    pub relative: f64,
    /// Where it is, counted in the order of the judge's elements, and the two numbers there.
    pub index: usize,
    pub expected: f64,
    pub found: f64,
    /// Elements.
    pub of: usize,
}

/// Who is at fault for a kernel that is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Its program computes the wrong numbers when it is evaluated: a pass made it.
    Program,
    /// Its program computes what is right: its schedule or the code that was made of it does not.
    Code,
    /// It was not found out.
    Unknown,
}

/// The first kernel that is wrong.
#[derive(Clone, Debug)]
pub struct First {
    /// The node of the model whose number it is.
    pub node: String,
    pub kernel: String,
    /// All that the kernel came from.
    pub came_from: String,
    pub error: Error,
    pub fault: Fault,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// For each output its name, or its number, and how far it is off.
    pub outputs: Vec<(String, Error)>,
    /// Those that are wrong.
    pub wrong: Vec<usize>,
    /// The first wrong kernel on the way to a wrong output; none where there is none, or none was found.
    pub first: Option<First>,
    /// Kernels whose result was compared with a node of the model, and all of them.
    pub compared: usize,
    pub kernels: usize,
    /// The largest error of a kernel, and its node.
    pub largest: Option<(String, Error)>,
}

/// A model that is compiled so that the result of each kernel can be looked at.
pub struct Compiled<'a> {
    question: Question<'a>,
    fused: Module,
    code: CompiledModel,
}

impl<'a> Compiled<'a> {
    /// Compiles it.
    pub fn new(question: Question<'a>) -> Result<Self, CompareError> {
        let Question { session, model, target, options, .. } = question;
        if model.module.get_str("main").is_none() {
            return Err(CompareError::NoMain);
        }
        if !target.runs_here() {
            return Err(CompareError::OtherMachine(target.to_string()));
        }
        let fused = question.behind(model, "kernels")?;
        let lowered = question.behind(&fused.clone().into(), "code")?;
        let code = session.generate(&lowered, target, options)?;
        let code = code.jit().map_err(CompiledError::from)?;
        Ok(Self { question, fused, code })
    }

    /// What it is to be given.
    pub fn inputs(&self) -> &[TensorSpec] {
        self.code.inputs()
    }

    /// Compares what it makes of inputs with what a judge makes of them.
    pub fn compare(
        &self,
        inputs: Vec<Value>,
        judge: &Judge<'_>,
    ) -> Result<Comparison, CompareError> {
        let Question { model, .. } = self.question;
        let found = tensors_of(&run_compiled(&self.code, &inputs)?);
        let traced = || self.question.behind(model, "intermediates");
        let judged = judge.numbers(inputs.clone(), traced)?;
        // Weights that are stored as bytes are rounded before any of them is read.
        let least = match self.question.options.weights {
            Some(_) => Grain::Byte,
            None => Grain::Fine,
        };
        let kernels = Kernels::of(&self.fused, least);
        let outputs = found.len().saturating_sub(kernels.all.len());
        if judged.outputs.len() != outputs {
            let judge = judged.outputs.len();
            return Err(CompareError::Outputs { judge, compiled: outputs });
        }
        let (of_outputs, of_kernels) = found.split_at(outputs);
        let Self { question, fused, .. } = self;
        let seen = Seen { question, fused, kernels: &kernels, inputs, of_kernels };
        Ok(seen.comparison(of_outputs, &judged))
    }
}

impl Question<'_> {
    /// A model behind a pipeline of the registry.
    fn behind(&self, model: &Model, pipeline: &str) -> Result<Module, CompareError> {
        let pipeline = Pipeline::Text(pipeline.to_owned());
        let options = Options { pipeline, ..self.options.clone() };
        Ok(self.session.lower(model, self.target, &options, &mut Watch::default())?)
    }
}

/// An array as a value; none of elements that a module has not.
pub fn value_of(array: Array) -> Option<Value> {
    judge::tensor_of(array).map(Value::Tensor)
}

/// What compiled code has given.
struct Seen<'a> {
    question: &'a Question<'a>,
    fused: &'a Module,
    kernels: &'a Kernels,
    inputs: Vec<Value>,
    of_kernels: &'a [Tensor],
}

impl Seen<'_> {
    fn comparison(&self, of_outputs: &[Tensor], judged: &judge::Numbers) -> Comparison {
        let off = |(at, found): (usize, &Tensor)| {
            let (name, expected) = &judged.outputs[at];
            let name = if name.is_empty() { at.to_string() } else { name.clone() };
            (name, fit(expected, found).unwrap_or_else(Error::of_shapes))
        };
        let outputs: Vec<(String, Error)> = of_outputs.iter().enumerate().map(off).collect();
        let is_wrong = |at: &usize| {
            self.is_wrong(&outputs[*at].1, self.kernels.grain_of_output(*at), &of_outputs[*at])
        };
        let wrong: Vec<usize> = (0..outputs.len()).filter(is_wrong).collect();
        let fits: Vec<Option<(String, Error)>> =
            (0..self.kernels.all.len()).map(|at| self.best(at, judged)).collect();
        let errors = fits.iter().flatten().cloned();
        let largest = errors.max_by(|(_, a), (_, b)| a.relative.total_cmp(&b.relative));
        let first = if wrong.is_empty() { None } else { self.first(&fits, &wrong) };
        Comparison {
            outputs,
            wrong,
            first,
            compared: fits.iter().flatten().count(),
            kernels: fits.len(),
            largest,
        }
    }

    /// Whether a tensor of numbers that were rounded to such elements is too far off.
    fn is_wrong(&self, error: &Error, grain: Grain, found: &Tensor) -> bool {
        let tolerance = self.question.tolerance;
        let is_rounded = tolerance.is_none() && grain == Grain::Byte;
        let is_step = is_rounded && is_step(found, error.expected, error.found);
        error.relative > tolerance.unwrap_or(grain.tolerance()) && !is_step
    }

    /// The node of the model to which the result of a kernel belongs: of those that it came from the last one of a fitting shape; the one
    /// that fits best, where others came from the same nodes, as the parts of products that were joined.
    fn best(&self, at: usize, judged: &judge::Numbers) -> Option<(String, Error)> {
        let (kernel, found) = (&self.kernels.all[at], &self.of_kernels[at]);
        let candidates = judged.of_nodes(&kernel.nodes).into_iter().rev();
        let mut fits = candidates
            .filter_map(|(node, expected)| Some((node.to_owned(), fit(expected, found)?)));
        match self.kernels.of_nodes(&kernel.nodes) {
            1 => fits.next(),
            _ => fits.min_by(|(_, a), (_, b)| a.relative.total_cmp(&b.relative)),
        }
    }

    /// The first wrong kernel of those that a wrong output is reached from through kernels that are wrong, or unknown.
    fn first(&self, fits: &[Option<(String, Error)>], wrong: &[usize]) -> Option<First> {
        let steps = &self.kernels.steps;
        let mut is_reached = vec![false; steps.len()];
        for step in self.kernels.of_outputs(wrong) {
            is_reached[step] = true;
        }
        let mut first = None;
        for (at, step) in steps.iter().enumerate().rev() {
            if !is_reached[at] {
                continue;
            }
            let is_wrong = |at: usize| {
                let (_, error) = fits[at].as_ref()?;
                Some(self.is_wrong(error, step.grain, &self.of_kernels[at]))
            };
            let own = step.kernels.clone();
            if !own.is_empty() && own.clone().all(|kernel| is_wrong(kernel) == Some(false)) {
                continue;
            }
            first = own.clone().find(|&kernel| is_wrong(kernel) == Some(true)).or(first);
            for &before in &step.reads {
                is_reached[before] = true;
            }
        }
        let at = first?;
        let grain = steps.iter().find(|step| step.kernels.contains(&at))?.grain;
        let (node, error) = fits[at].as_ref()?;
        let kernel = &self.kernels.all[at];
        Some(First {
            node: node.clone(),
            kernel: kernel.program.clone(),
            came_from: kernel.came_from.clone(),
            error: error.clone(),
            fault: self.fault(at, grain),
        })
    }

    /// Whether the kernel's program, evaluated on what the kernel was given, gives what the kernel gave.
    fn fault(&self, at: usize, grain: Grain) -> Fault {
        let kernel = &self.kernels.all[at];
        let given = kernel.args.iter().map(|arg| match arg {
            kernels::Argument::Input(at) => self.inputs.get(*at).cloned(),
            kernels::Argument::Kernel(at) => Some(Value::Tensor(self.of_kernels[*at].clone())),
            kernels::Argument::Constant(tensor) => Some(Value::Tensor(tensor.clone())),
            kernels::Argument::Unknown => None,
        });
        let Some(given) = given.collect::<Option<Vec<Value>>>() else { return Fault::Unknown };
        let Ok(result) = Evaluator::new(self.fused).call(&kernel.program, given) else {
            return Fault::Unknown;
        };
        let Some(expected) = tensors_of(&result).into_iter().nth(kernel.field) else {
            return Fault::Unknown;
        };
        match fit(&expected, &self.of_kernels[at]) {
            Some(error) if self.is_wrong(&error, grain, &self.of_kernels[at]) => Fault::Code,
            Some(_) => Fault::Program,
            None => Fault::Unknown,
        }
    }
}

impl Error {
    /// Of tensors that cannot be compared.
    fn of_shapes() -> Self {
        let (expected, found) = (f64::NAN, f64::NAN);
        Self { relative: f64::INFINITY, index: 0, expected, found, of: 0 }
    }
}
