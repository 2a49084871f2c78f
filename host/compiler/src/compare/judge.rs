//! Who says what is right: the reference evaluator, or ONNX Runtime.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use thiserror::Error;

use super::CompareError;
use super::kernels::{bindings_of, nodes_of, returned};
use crate::eval::{EvalError, Evaluator, Limits, Tensor, Value};
use crate::io::{Array, ArrayView, FileError, read_npz, write_npz};
use crate::ir::{Bytes, Context, Module, Term, TermView};
use crate::runtime::{dtype_of, npy_type};
use crate::validate::tensors_of;

/// Has ONNX Runtime give all that nodes of a model give.
const RUNTIME: &str = include_str!("judge.py");

/// Who says what is right.
#[derive(Clone, Copy, Debug)]
pub enum Judge<'a> {
    /// The reference evaluator, within these limits.
    Evaluator(Limits),
    /// ONNX Runtime, of a Python, over the file that the model was read from, with inputs of these names.
    OnnxRuntime { python: &'a Path, model: &'a Path, names: &'a [String] },
}

/// Why it says nothing.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum JudgeError {
    #[error("the evaluator: {0}")]
    Eval(#[from] EvalError),
    #[error("{}: {problem}", python.display())]
    Python { python: PathBuf, problem: String },
    #[error(transparent)]
    File(#[from] FileError),
    #[error("a temporary folder: {0}")]
    Folder(#[from] std::io::Error),
    #[error("an input has elements of {0}, which no file has")]
    Input(crate::ir::DType),
}

/// What it says.
pub(super) struct Numbers {
    /// The outputs, with their names where it knows them.
    pub(super) outputs: Vec<(String, Tensor)>,
    /// What nodes give, in order, with their names.
    nodes: Vec<(String, Tensor)>,
    /// Where in that list a node's tensors stand.
    places: HashMap<String, Vec<usize>>,
}

impl Numbers {
    fn new(outputs: Vec<(String, Tensor)>, nodes: Vec<(String, Tensor)>) -> Self {
        let mut places: HashMap<String, Vec<usize>> = HashMap::new();
        for (at, (node, _)) in nodes.iter().enumerate() {
            places.entry(node.clone()).or_default().push(at);
        }
        Self { outputs, nodes, places }
    }

    /// What these nodes give, in the order of the model.
    pub(super) fn of_nodes(&self, names: &[String]) -> Vec<(&str, &Tensor)> {
        let places = names.iter().filter_map(|name| self.places.get(name)).flatten();
        let mut places: Vec<usize> = places.copied().collect();
        places.sort_unstable();
        places.dedup();
        let node = |at: usize| (self.nodes[at].0.as_str(), &self.nodes[at].1);
        places.into_iter().map(node).collect()
    }
}

impl Judge<'_> {
    /// What it makes of inputs; `traced` gives the model with all that is between them and the outputs behind these.
    pub(super) fn numbers(
        &self,
        inputs: Vec<Value>,
        traced: impl FnOnce() -> Result<Module, CompareError>,
    ) -> Result<Numbers, CompareError> {
        match *self {
            Judge::Evaluator(limits) => evaluated(&traced()?, inputs, limits),
            Judge::OnnxRuntime { python, model, names } => {
                Ok(run_by(python, model, names, &inputs)?)
            }
        }
    }
}

fn evaluated(module: &Module, inputs: Vec<Value>, limits: Limits) -> Result<Numbers, CompareError> {
    let result = Evaluator::new(module).with_limits(limits).call("main", inputs);
    let mut tensors = tensors_of(&result.map_err(JudgeError::from)?);
    let function = module.get_str("main").ok_or(CompareError::NoMain)?;
    let (body, returned) = (function.view(), returned(function));
    let nodes = tensors.split_off(tensors.len().saturating_sub(returned.len()));
    let values: HashMap<_, _> =
        bindings_of(function).into_iter().flat_map(|bindings| bindings.bindings()).collect();
    let nodes = returned.iter().zip(nodes).flat_map(|(&(var, _), tensor)| {
        let value = values.get(&var).copied().unwrap_or(var);
        let names = nodes_of(module.cx(), body, value);
        names.into_iter().map(move |name| (name, tensor.clone())).collect::<Vec<_>>()
    });
    let nodes = nodes.collect();
    let names = output_names(module);
    let name = |at: usize| names.get(at).cloned().unwrap_or_default();
    let outputs = tensors.into_iter().enumerate().map(|(at, tensor)| (name(at), tensor)).collect();
    Ok(Numbers::new(outputs, nodes))
}

/// What the model calls its outputs.
fn output_names(module: &Module) -> Vec<String> {
    let terms = module.cx().terms();
    let names = terms.attrs(module.attrs).get("onnx.outputs");
    let Some(TermView::List(names)) = names else { return Vec::new() };
    let name = |&name: &Term| match terms.view(name) {
        TermView::Str(name) => name.to_owned(),
        _ => String::new(),
    };
    names.iter().map(name).collect()
}

/// Runs a model by ONNX Runtime. Files carry the numbers: `out:NAME`, and `N:NODE` for what node number N gives.
fn run_by(
    python: &Path,
    model: &Path,
    names: &[String],
    inputs: &[Value],
) -> Result<Numbers, JudgeError> {
    let folder = tempfile::tempdir()?;
    let (given, made) = (folder.path().join("given.npz"), folder.path().join("made.npz"));
    let tensors: Vec<Tensor> = inputs.iter().flat_map(tensors_of).collect();
    let arrays = names.iter().zip(&tensors).map(|(name, tensor)| {
        let dtype = npy_type(tensor.dtype()).ok_or(JudgeError::Input(tensor.dtype()))?;
        Ok((name.as_str(), ArrayView { dtype, shape: tensor.shape(), data: tensor.bytes() }))
    });
    write_npz(&given, &arrays.collect::<Result<Vec<_>, JudgeError>>()?)?;
    let mut command = Command::new(python);
    command.args(["-c", RUNTIME]).arg(model).arg(&given).arg(&made);
    let problem = |problem: String| JudgeError::Python { python: python.to_owned(), problem };
    let ran = command.output().map_err(|error| problem(error.to_string()))?;
    if !ran.status.success() {
        let said = String::from_utf8_lossy(&ran.stderr);
        let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it failed");
        return Err(problem(last.to_owned()));
    }
    let (mut outputs, mut nodes) = (Vec::new(), Vec::new());
    for (name, array) in read_npz(&made)? {
        let Some(tensor) = tensor_of(array) else { continue };
        match name.split_once(':') {
            Some(("out", name)) => outputs.push((name.to_owned(), tensor)),
            Some((number, name)) => {
                nodes.push((number.parse().unwrap_or(usize::MAX), name.to_owned(), tensor));
            }
            None => {}
        }
    }
    nodes.sort_by_key(|&(number, ..)| number);
    let nodes = nodes.into_iter().map(|(_, name, tensor)| (name, tensor)).collect();
    Ok(Numbers::new(outputs, nodes))
}

/// An array as a tensor.
pub(super) fn tensor_of(array: Array) -> Option<Tensor> {
    Tensor::new(dtype_of(array.dtype), array.shape, Bytes::new(array.data))
}
