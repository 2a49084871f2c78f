//! One node test of onnx: its model and data, and what becomes of them.

use std::collections::BTreeMap;
use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

use tenon_compiler::{
    eval::Tensor,
    io::Mapping,
    ir::{Bytes, Context, DType, Expr, Module, TermView, TypeView},
    onnx::import::{ImportError, ImportOptions, Unsupported, import},
    onnx::proto::{Dimension, TensorProto, TypeProto},
    onnx::{TensorReader, decode_model, open_model},
    runtime::model::Model,
};

use crate::compare::{Tolerance, compare};
use crate::compiled;
use crate::evaluated::evaluated;
use crate::unsupported::{Lack, Stage};

/// A test's folder and its data. A sequence is one tensor, with an element in each row; tests of sequences of other elements, of maps,
/// and of optional values that are no tensors come without data.
pub(crate) struct Case {
    model: PathBuf,
    inputs: BTreeMap<String, Tensor>,
    outputs: Vec<Tensor>,
    /// Whether the only output is a sequence.
    gives_sequence: bool,
    tolerance: Tolerance,
    /// Data of other sizes, for dimensions that are open.
    sizes: Vec<Case>,
}

/// How a test ended.
pub(crate) enum Outcome {
    /// Compiled as it is given, and evaluated, it gives what is expected.
    Passed,
    /// Something is missing, and all that can be judged without it is right.
    Unsupported(Lack),
    Failed(Failure),
}

/// A wrong result.
pub(crate) struct Failure {
    /// Of which of us: `evaluated`, `compiled`, both, or `import`.
    pub(crate) what: &'static str,
    pub(crate) text: String,
}

impl From<String> for Failure {
    fn from(text: String) -> Self {
        Self { what: "import", text }
    }
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

/// Whether a module draws random numbers.
fn draws(module: &Module) -> bool {
    module.iter().any(|(_, function)| {
        let body = function.view();
        let is_random = |op: &str| op.starts_with("random.");
        body.post_order().any(|expr| body.op_name(expr).is_some_and(is_random))
    })
}

/// Runs the test in a folder; a panic is a failure.
pub(crate) fn run(folder: &Path) -> Outcome {
    let judge = || Case::read(folder).judge().unwrap_or_else(Outcome::Failed);
    let panic = |_| Outcome::Failed(Failure { what: "panic", text: "it panics".to_owned() });
    catch_unwind(judge).unwrap_or_else(panic)
}

impl Case {
    fn read(folder: &Path) -> Case {
        let tensors = |kind: &str| {
            let files = (0..).map(|number| folder.join(format!("{kind}_{number}.pb")));
            files.map_while(|file| read_tensor(&file)).collect::<Vec<_>>()
        };
        let sizes = (0..).map(|number| folder.join(format!("size_{number}")));
        let are_there = (0..).map(|number| folder.join(format!("input_{number}_is_there.pb")));
        let mut inputs = tensors("input");
        let count = inputs.len();
        inputs.extend(are_there.take(count).filter_map(|file| read_tensor(&file)));
        Case {
            model: folder.join("model.onnx"),
            inputs: inputs.into_iter().collect(),
            gives_sequence: fs::read_to_string(folder.join("sequences"))
                .is_ok_and(|it| it == "0\n"),
            outputs: tensors("output").into_iter().map(|(_, tensor)| tensor).collect(),
            tolerance: read_tolerance(&folder.join("tolerance")).unwrap_or_default(),
            sizes: sizes.take_while(|it| it.exists()).map(|it| Case::read(&it)).collect(),
        }
    }

    /// What is true of the test; the error is a wrong result.
    fn judge(&self) -> Result<Outcome, Failure> {
        // What is open stays so where there is data of several sizes.
        let dims = if self.sizes.is_empty() { self.dims()? } else { BTreeMap::new() };
        let as_given = ImportOptions { dims, ..ImportOptions::default() };
        let list = match import(&compiled::cx(), &self.model, &as_given).map(|it| it.module) {
            // The 0 and the -1 of a `Reshape` ask for another size.
            Ok(module) if self.refuses_sizes(&module) => {
                let list = [Unsupported {
                    op_type: String::new(),
                    domain: String::new(),
                    version: 0,
                    reason: Some("a size that is refused and must be a constant here".to_owned()),
                    count: 1,
                    nodes: Vec::new(),
                }];
                list.to_vec()
            }
            Ok(_) if self.outputs.is_empty() => {
                let reason = "a sequence or an optional value".to_owned();
                return Ok(Outcome::Unsupported(Lack::new(Stage::Unjudged, reason)));
            }
            Ok(module) => {
                return Ok(match self.judge_module(&module) {
                    Ok(None) => Outcome::Passed,
                    Ok(Some(reason)) => {
                        Outcome::Unsupported(Lack::new(Stage::EvaluatorOnly, reason))
                    }
                    Err(_) if draws(&module) => {
                        let reason = "numbers that another generator draws".to_owned();
                        Outcome::Unsupported(Lack::new(Stage::Unjudged, reason))
                    }
                    Err(failure) => return Err(failure),
                });
            }
            Err(ImportError::Unsupported { list, .. }) => list.items,
            Err(error) => return Err(error.to_string().into()),
        };
        let fixed = self.import_with_fixed_inputs(as_given, &list).map(|module| {
            self.judge_module(&module).map_err(|failure| Failure {
                text: format!("with fixed inputs: {}", failure.text),
                ..failure
            })
        });
        let stage = match fixed.transpose()? {
            None => Stage::Unsupported,
            Some(None) => Stage::FixedInputs,
            Some(Some(_)) => Stage::EvaluatorWithFixedInputs,
        };
        Ok(Outcome::Unsupported(Lack::new(stage, reason(&list[0]))))
    }

    /// Judges a module by the evaluator and compiled, once for all sizes that there are; if it cannot be compiled, why not. The
    /// error says which of them is wrong.
    fn judge_module(&self, module: &Module) -> Result<Option<String>, Failure> {
        let compiled = compiled::compile(module);
        let with_number = |(number, case): (usize, &Case)| {
            case.judge_compiled(module, &compiled).map_err(|failure| match number {
                0 => failure,
                _ => Failure { text: format!("of size {number}: {}", failure.text), ..failure },
            })
        };
        std::iter::once(self).chain(&self.sizes).enumerate().try_for_each(with_number)?;
        Ok(compiled.err())
    }

    /// Judges a module by the evaluator, and compiled where it can be.
    fn judge_compiled(
        &self,
        module: &Module,
        compiled: &Result<Model, String>,
    ) -> Result<(), Failure> {
        let inputs = self.inputs_of(module)?;
        let evaluated = self.compare(evaluated(module, &inputs));
        let compiled = match compiled {
            Ok(model) => self.compare(compiled::run(model, &inputs)),
            Err(_) => Ok(()),
        };
        let (what, text) = match (evaluated, compiled) {
            (Ok(()), Ok(())) => return Ok(()),
            (Err(problem), Ok(())) => ("evaluated", format!("evaluated: {problem}")),
            (Ok(()), Err(problem)) => ("compiled", format!("compiled: {problem}")),
            (Err(first), Err(second)) => {
                ("evaluated and compiled", format!("evaluated: {first}; compiled: {second}"))
            }
        };
        Err(Failure { what, text })
    }

    /// Values for the named dimensions, as a user would give them with `-D`: those of the data.
    fn dims(&self) -> Result<BTreeMap<String, i64>, String> {
        let file = open_model(&self.model).map_err(|error| error.to_string())?;
        let model = decode_model(&file).map_err(|error| error.to_string())?;
        let weights = &model.graph.initializer;
        let (mut dims, mut anonymous) = (BTreeMap::new(), 0);
        for input in &model.graph.input {
            let TypeProto::Tensor { shape: Some(shape), .. } = &input.ty else { continue };
            if weights.iter().any(|weight| weight.name == input.name) {
                continue;
            }
            for (axis, dimension) in shape.iter().enumerate() {
                let name = match dimension {
                    Dimension::Value(_) => continue,
                    Dimension::Param(name) => (*name).to_owned(),
                    Dimension::Unknown => {
                        anonymous += 1;
                        format!("unk_{}", anonymous - 1)
                    }
                };
                let tensor = self.inputs.get(input.name);
                let extent = tensor.and_then(|tensor| tensor.shape().get(axis)).copied();
                // No dimension can be bound to 0.
                if let Some(extent) = extent.filter(|&extent| extent > 0) {
                    dims.insert(name, extent as i64);
                }
            }
        }
        Ok(dims)
    }

    /// Whether the code takes elements of inputs as sizes and refuses those of the data.
    fn refuses_sizes(&self, module: &Module) -> bool {
        let Some(main) = module.get_str("main") else { return false };
        let terms = module.cx().terms();
        let is_shape = |&param: &Expr| {
            let ty = main.view().ty(param).map(|ty| terms.ty(ty));
            matches!(ty, Some(TypeView::Shape(_)))
        };
        let (Ok(inputs), true) = (self.inputs_of(module), main.params().iter().any(is_shape))
        else {
            return false;
        };
        compiled::compile(module).is_ok_and(|model| compiled::run(&model, &inputs).is_err())
    }

    /// The module with inputs as constants, where a shape or axes must be known: those of one dimension at most,
    /// integers first, then all.
    fn import_with_fixed_inputs(
        &self,
        mut options: ImportOptions,
        list: &[Unsupported],
    ) -> Option<Module> {
        let wants_constants = |list: &[Unsupported]| {
            let reasons = list.iter().filter_map(|item| item.reason.as_deref());
            reasons.into_iter().any(|reason| reason.contains("must be a constant"))
        };
        let mut is_wanted = wants_constants(list);
        for integers_only in [true, false] {
            if !is_wanted {
                return None;
            }
            let is_fixed = |tensor: &Tensor| {
                tensor.shape().len() <= 1 && (tensor.dtype().is_int() || !integers_only)
            };
            let inputs = self.inputs.iter().filter(|(_, tensor)| is_fixed(tensor));
            options.inputs = inputs.map(|(name, tensor)| (name.clone(), tensor.clone())).collect();
            match import(&compiled::cx(), &self.model, &options).map(|it| it.module) {
                Ok(module) => return Some(module),
                Err(ImportError::Unsupported { list, .. }) => {
                    is_wanted = wants_constants(&list.items);
                }
                Err(_) => return None,
            }
        }
        None
    }

    /// The data of the inputs that a module has, in its order.
    fn inputs_of(&self, module: &Module) -> Result<Vec<Tensor>, String> {
        let names = names_in(module, "onnx.inputs");
        let data = names.iter().map(|name| self.inputs.get(name).cloned());
        data.collect::<Option<_>>().ok_or_else(|| "an input has no data".to_owned())
    }

    /// Compares results with what is expected.
    fn compare(&self, results: Result<Vec<Tensor>, String>) -> Result<(), String> {
        let mut results = results?;
        if self.gives_sequence && self.outputs.len() == 1 {
            results = vec![as_sequence(results, &self.outputs[0])?];
        }
        if results.len() != self.outputs.len() {
            return Err(format!("{} results for {} outputs", results.len(), self.outputs.len()));
        }
        for (index, (have, want)) in results.iter().zip(&self.outputs).enumerate() {
            compare(have, want, self.tolerance)
                .map_err(|problem| format!("output {index}: {problem}"))?;
        }
        Ok(())
    }
}

/// The elements of a sequence as the rows of one tensor: they are that already, or each is a result, as many as are expected.
fn as_sequence(mut results: Vec<Tensor>, expected: &Tensor) -> Result<Tensor, String> {
    if results.len() == 1 && results[0].shape().len() == expected.shape().len() {
        return Ok(results.remove(0));
    }
    let (count, element) = (expected.shape()[0], &expected.shape()[1..]);
    if results.len() != count || results.iter().any(|result| result.shape() != element) {
        return Err(format!("{} results for a sequence of {count}", results.len()));
    }
    let bytes: Vec<u8> = results.iter().flat_map(|result| result.bytes().iter().copied()).collect();
    Tensor::new(results[0].dtype(), expected.shape().to_vec(), Bytes::new(bytes))
        .ok_or_else(|| "elements of another type".to_owned())
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

/// The names in an attribute of the module.
fn names_in(module: &Module, key: &str) -> Vec<String> {
    let terms = module.cx().terms();
    let Some(TermView::List(names)) = terms.attrs(module.attrs).get(key) else { return Vec::new() };
    names.iter().map(|&name| terms.str(name).to_owned()).collect()
}

/// The two numbers in a file, if there is one.
fn read_tolerance(path: &Path) -> Option<Tolerance> {
    let text = fs::read_to_string(path).ok()?;
    let (relative, absolute) = text.trim().split_once(' ')?;
    Some(Tolerance { relative: relative.parse().ok()?, absolute: absolute.parse().ok()? })
}

/// The name and value of a tensor in a file, if there is one.
fn read_tensor(path: &Path) -> Option<(String, Tensor)> {
    let bytes = fs::read(path).ok()?;
    let file = Mapping::in_memory(path, bytes);
    let proto = TensorProto::decode_file(&file).expect("test data are tensors");
    let data = TensorReader::new(&file).read(&proto).ok()?;
    let dtype = match data.element.name() {
        "bfloat16" => DType::BF16,
        "float8e4m3fn" => DType::F8E4M3,
        name => {
            DType::from_name(&name.replace("float", "f").replace("int", "i").replace("ui", "u"))?
        }
    };
    let shape = data.dims.iter().map(|&dim| dim as usize).collect();
    let tensor = Tensor::new(dtype, shape, Bytes::new(data.bytes.to_vec()))?;
    Some((proto.name.to_owned(), tensor))
}
