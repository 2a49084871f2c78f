//! The folder of tests, and how one is run.

use std::collections::BTreeMap;
use std::fs;
use std::panic::catch_unwind;
use std::path::Path;

use tenon_host::{
    eval::{Evaluator, Tensor, Value},
    io::Mapping,
    ir::{Bytes, Context, DType, Module, TermView},
    onnx::import::{ImportError, ImportOptions, Unsupported, import},
    onnx::{TensorReader, proto::TensorProto},
};

use crate::compare::compare;

/// How a test ended.
pub(crate) enum Outcome {
    Passed,
    /// It cannot be imported, for this reason.
    Unsupported(String),
    Failed(String),
}

/// The names of the tests in a folder.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("the folder can be read");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("it can be read").file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with("test_"))
        .collect();
    names.sort_unstable();
    names
}

/// Runs the test in a folder.
pub(crate) fn run(folder: &Path) -> Outcome {
    let module = match import_with_fixed_inputs(folder) {
        Ok(module) => module,
        Err(ImportError::Unsupported { list, .. }) => {
            return Outcome::Unsupported(reason(&list.items[0]));
        }
        Err(error) => return Outcome::Failed(error.to_string()),
    };
    match evaluate(folder, &module) {
        Ok(()) => Outcome::Passed,
        Err(problem) => Outcome::Failed(problem),
    }
}

/// Runs the test in a folder; a panic is a failure.
pub(crate) fn run_caught(folder: &Path) -> Outcome {
    catch_unwind(|| run(folder)).unwrap_or_else(|_| Outcome::Failed("it panics".to_owned()))
}

/// A reason that many tests have in common: without the names of the nodes and inputs.
fn reason(item: &Unsupported) -> String {
    let reason = item.reason.as_deref().unwrap_or("");
    let reason = reason.split(" of the input").next().unwrap_or("");
    let reason = match reason.strip_prefix("the input ") {
        Some(rest) => format!("an input{}", &rest[rest.find(" of kind").unwrap_or(0)..]),
        None => reason.to_owned(),
    };
    match (item.op_type.as_str(), reason.is_empty()) {
        ("", _) => reason,
        (op, true) => op.to_owned(),
        (op, false) => format!("{op}: {reason}"),
    }
}

/// Imports a test's model. Where a shape or axes must be known, the inputs of one dimension at most are made
/// constants: those of integers first, then all.
fn import_with_fixed_inputs(folder: &Path) -> Result<Module, ImportError> {
    let model = folder.join("model.onnx");
    let mut result = import(&model, &ImportOptions::default());
    for integers_only in [true, false] {
        let wants_constants = |list: &[Unsupported]| {
            let reasons = list.iter().filter_map(|item| item.reason.as_deref());
            reasons.into_iter().any(|reason| reason.contains("must be a constant"))
        };
        match &result {
            Err(ImportError::Unsupported { list, .. }) if wants_constants(&list.items) => {}
            _ => return result,
        }
        let is_fixed = |tensor: &Tensor| {
            tensor.shape().len() <= 1 && (tensor.dtype().is_int() || !integers_only)
        };
        let inputs: BTreeMap<String, Tensor> = (0..)
            .map_while(|number| read_tensor(&folder.join(format!("input_{number}.pb"))))
            .filter(|(_, tensor)| is_fixed(tensor))
            .collect();
        result = import(&model, &ImportOptions { inputs, ..ImportOptions::default() });
    }
    result
}

/// Evaluates `main` and compares its results with what is expected.
fn evaluate(folder: &Path, module: &Module) -> Result<(), String> {
    let inputs: BTreeMap<String, Tensor> =
        (0..).map_while(|number| read_tensor(&folder.join(format!("input_{number}.pb")))).collect();
    let arguments: Vec<Value> = names_in(module, "onnx.inputs")
        .iter()
        .map(|name| inputs.get(name).cloned().map(Value::Tensor))
        .collect::<Option<_>>()
        .ok_or("an input has no data")?;
    let result =
        Evaluator::new(module).call("main", arguments).map_err(|error| error.to_string())?;
    let results: Vec<Tensor> = match &result {
        Value::Tuple(tuple) => tuple.fields().iter().filter_map(Value::to_tensor).collect(),
        other => other.to_tensor().into_iter().collect(),
    };
    let names = names_in(module, "onnx.outputs");
    if names.len() != results.len() {
        return Err(format!("{} results for {} outputs", results.len(), names.len()));
    }
    for (number, (name, have)) in names.iter().zip(&results).enumerate() {
        let path = folder.join(format!("output_{number}.pb"));
        let (_, want) = read_tensor(&path).ok_or("an output has no data")?;
        compare(have, &want).map_err(|problem| format!("{name}: {problem}"))?;
    }
    Ok(())
}

/// The names in an attribute of the module.
fn names_in(module: &Module, key: &str) -> Vec<String> {
    let terms = module.cx().terms();
    let Some(TermView::List(names)) = terms.attrs(module.attrs).get(key) else { return Vec::new() };
    names.iter().map(|&name| terms.str(name).to_owned()).collect()
}

/// The name and value of a tensor in a file, if there is one.
fn read_tensor(path: &Path) -> Option<(String, Tensor)> {
    let bytes = fs::read(path).ok()?;
    let file = Mapping::in_memory(path, bytes);
    let proto = TensorProto::decode_file(&file).expect("test data are tensors");
    let data = TensorReader::new(&file).read(&proto).ok()?;
    let dtype = match data.element.name() {
        "bfloat16" => DType::BF16,
        name => {
            DType::from_name(&name.replace("float", "f").replace("int", "i").replace("ui", "u"))?
        }
    };
    let shape = data.dims.iter().map(|&dim| dim as usize).collect();
    let tensor = Tensor::new(dtype, shape, Bytes::new(data.bytes.to_vec()))?;
    Some((proto.name.to_owned(), tensor))
}
