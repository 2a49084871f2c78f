//! Models of ONNX, real ones and small ones that are made here, and the text of what they become.

use tenon_operators as _;

mod calls;
#[path = "../support/compiled.rs"]
mod compiled;
mod compositions;
mod control;
mod dimensions;
mod functions;
mod harm;
mod machine_learning;
mod models;
mod open_sequences;
mod operators;
mod random;
mod refusals;
mod rules;
mod sequences;
mod sizes;
mod trees;
#[allow(dead_code, reason = "tests of the reader write what these do not")]
#[path = "../../host/compiler/src/onnx/writer.rs"]
mod writer;
mod wrong_models;

use std::path::Path;

use tenon_compiler::io::Mapping;
use tenon_compiler::ir::Module;
use tenon_compiler::onnx::import::{ImportError, ImportOptions, Imported, import_mapping};
use tenon_compiler::text::{WeightsPolicy, print_module};

use writer::Message;

/// ONNX's codes for element types.
const FLOAT: i64 = 1;
const INT64: i64 = 7;
const BOOL: i64 = 9;

/// A dimension of a declared shape.
#[derive(Clone, Copy)]
enum D {
    N(i64),
    S(&'static str),
    Unknown,
}

use D::{N, S, Unknown};

/// A model under construction.
#[derive(Clone, Default)]
struct Model {
    version: i64,
    graph: Message,
    functions: Vec<Message>,
}

fn model(version: i64) -> Model {
    Model { version, ..Model::default() }
}

impl Model {
    fn with(mut self, number: u32, message: Message) -> Self {
        self.graph = self.graph.message(number, message);
        self
    }

    fn input(self, name: &str, element: i64, dims: &[D]) -> Self {
        self.with(11, value(name, element, dims))
    }

    /// An output that says nothing about its type.
    fn output(self, name: &str) -> Self {
        self.with(12, Message::new().bytes(1, name))
    }

    fn typed_output(self, name: &str, element: i64, dims: &[D]) -> Self {
        self.with(12, value(name, element, dims))
    }

    fn node(self, op: &str, inputs: &[&str], outputs: &[&str], attributes: &[Message]) -> Self {
        self.with(1, node(op, inputs, outputs, attributes))
    }

    fn floats(self, name: &str, dims: &[i64], values: &[f32]) -> Self {
        self.with(5, Message::new().bytes(8, name).int(2, FLOAT).ints(1, dims).floats(4, values))
    }

    fn ints(self, name: &str, values: &[i64]) -> Self {
        let dims = [values.len() as i64];
        self.with(5, Message::new().bytes(8, name).int(2, INT64).ints(1, &dims).ints(7, values))
    }

    fn int(self, name: &str, value: i64) -> Self {
        self.with(5, Message::new().bytes(8, name).int(2, INT64).ints(7, &[value]))
    }

    fn function(mut self, function: Message) -> Self {
        self.functions.push(function);
        self
    }

    fn bytes(&self) -> Vec<u8> {
        let set = |domain: &str, version| Message::new().bytes(1, domain).int(2, version);
        let model = Message::new()
            .int(1, 8)
            .message(8, set("", self.version))
            .message(8, set("own", 1))
            .message(8, set("ai.onnx.ml", 3))
            .message(7, self.graph.clone());
        self.functions.iter().fold(model, |model, function| model.message(25, function.clone())).0
    }

    fn import(&self, dims: &[(&str, i64)]) -> Result<Module, ImportError> {
        self.imported(dims).map(|imported| imported.module)
    }

    fn imported(&self, dims: &[(&str, i64)]) -> Result<Imported, ImportError> {
        let dims = dims.iter().map(|&(name, value)| (name.to_owned(), value)).collect();
        let file = Mapping::in_memory(Path::new("m.onnx"), self.bytes());
        import_mapping(
            &tenon_compiler::testing::cx(),
            &file,
            &ImportOptions { dims, ..ImportOptions::default() },
        )
    }

    /// The lines of `main` without their indentation, types left to the parameters and the result.
    fn text(&self) -> String {
        match self.import(&[]) {
            Ok(module) => short(&print_module(&module, &mut WeightsPolicy::elided(16))),
            Err(error) => error.to_string(),
        }
    }

    fn error(&self) -> String {
        match self.import(&[]) {
            Ok(_) => panic!("it is imported"),
            Err(error) => error.to_string(),
        }
    }
}

fn value(name: &str, element: i64, dims: &[D]) -> Message {
    let ty = Message::new().message(1, value_type(element, dims));
    Message::new().bytes(1, name).message(2, ty)
}

/// The type of a tensor.
fn value_type(element: i64, dims: &[D]) -> Message {
    let mut shape = Message::new();
    for &dim in dims {
        let dim = match dim {
            N(value) => Message::new().int(1, value),
            S(name) => Message::new().bytes(2, name),
            Unknown => Message::new(),
        };
        shape = shape.message(1, dim);
    }
    Message::new().int(1, element).message(2, shape)
}

fn node(op: &str, inputs: &[&str], outputs: &[&str], attributes: &[Message]) -> Message {
    let mut node = Message::new().bytes(4, op);
    for name in inputs {
        node = node.bytes(1, name);
    }
    for name in outputs {
        node = node.bytes(2, name);
    }
    attributes.iter().fold(node, |node, attribute| node.message(5, attribute.clone()))
}

fn int(name: &str, value: i64) -> Message {
    Message::new().bytes(1, name).int(20, 2).int(3, value)
}

fn ints(name: &str, values: &[i64]) -> Message {
    Message::new().bytes(1, name).int(20, 7).ints(8, values)
}

fn float(name: &str, value: f32) -> Message {
    Message::new().bytes(1, name).int(20, 1).float(2, value)
}

fn string(name: &str, value: &str) -> Message {
    Message::new().bytes(1, name).int(20, 3).bytes(4, value)
}

/// The part of a module's text that says what is computed.
fn short(text: &str) -> String {
    let mut lines = Vec::new();
    for line in text.lines().map(str::trim) {
        let is_frame = line.is_empty()
            || ["module", "dataflow", "}"].iter().any(|start| line.starts_with(start));
        if is_frame {
            continue;
        }
        match (line.split_once(": "), line.split_once(" = ")) {
            (Some((name, _)), Some((_, value))) if line.starts_with('%') => {
                lines.push(format!("{name} = {value}"));
            }
            _ => lines.push(line.trim_end_matches(" {").to_owned()),
        }
    }
    lines.join("\n")
}
