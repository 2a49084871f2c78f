//! Models as text, one mistake or a few in each, and what is said of them: `wrong_models.txt`.
//!
//! ```text
//! # what is wrong                     a case; what follows is a line each
//! opset ai.onnx 17                    of a domain
//! input x: f32[2, 3]
//! weight w: f32[3] = 1                as many numbers as elements, or one for all
//! y = Softmax(x) { axis = 7 }         a node, its domain in front with `::`
//! output y                            with its type, or without
//! ! `m.onnx` is not a valid model: …  what is said, a line behind each mark
//! ```
//!
//! `TENON_BLESS=1 cargo test --release --test onnx_import wrong_models` writes what is said anew.

use std::fs;
use std::path::Path;

use tenon_compiler::io::Mapping;
use tenon_compiler::onnx::import::{ImportOptions, import_mapping};

use super::writer::Message;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/onnx_import/wrong_models.txt");

/// ONNX's codes for element types, by our names.
const ELEMENTS: [(&str, i64); 7] =
    [("f32", 1), ("i32", 6), ("i64", 7), ("bool", 9), ("f16", 10), ("f64", 11), ("f8e5m2", 19)];

#[test]
fn what_is_wrong_is_said() {
    let text = fs::read_to_string(FILE).expect("the cases");
    let mut said = String::new();
    for (number, case) in text.split("\n# ").enumerate() {
        if number == 0 {
            said.push_str(case.trim_end());
            continue;
        }
        let (model, lines) = read(case);
        let file = Mapping::in_memory(Path::new("m.onnx"), model.0);
        let options = ImportOptions::default();
        let error = match import_mapping(&tenon_compiler::testing::cx(), &file, &options) {
            Ok(_) => "nothing: it is imported".to_owned(),
            Err(error) => error.to_string(),
        };
        said.push_str(&format!("\n\n# {}", lines.join("\n")));
        error.lines().for_each(|line| said.push_str(&format!("\n! {line}")));
    }
    said.push('\n');
    if std::env::var_os("TENON_BLESS").is_some() {
        fs::write(FILE, &said).expect("the cases can be written");
    } else {
        let differs = said.lines().zip(text.lines()).find(|(now, before)| now != before);
        assert!(said == text, "TENON_BLESS=1 writes {FILE} anew: {differs:?}");
    }
}

/// The model of a case, and the lines that say it.
fn read(case: &str) -> (Message, Vec<&str>) {
    let is_said = |line: &&str| line.starts_with('!') || line.is_empty();
    let lines: Vec<&str> = case.lines().filter(|line| !is_said(line)).collect();
    let (mut model, mut graph) = (Message::new().int(1, 10), Message::new());
    for line in &lines[1..] {
        let (word, rest) = line.split_once(' ').expect("a word and what it is about");
        match word {
            "opset" => {
                let (domain, version) = rest.split_once(' ').expect("a domain and its version");
                let domain = if domain == "ai.onnx" { "" } else { domain };
                let version = version.parse().expect("a version");
                model = model.message(8, Message::new().bytes(1, domain).int(2, version));
            }
            "input" => graph = graph.message(11, value(rest)),
            "output" => graph = graph.message(12, value(rest)),
            "weight" => graph = graph.message(5, weight(rest)),
            _ => graph = graph.message(1, node(line)),
        }
    }
    (model.message(7, graph), lines)
}

/// `x: f32[2, 3]`, or the name alone.
fn value(text: &str) -> Message {
    let Some((name, ty)) = text.split_once(": ") else { return Message::new().bytes(1, text) };
    let (element, dims) = tensor(ty);
    let dim = |shape: Message, &dim: &i64| shape.message(1, Message::new().int(1, dim));
    let shape = dims.iter().fold(Message::new(), dim);
    let ty = Message::new().message(1, Message::new().int(1, element).message(2, shape));
    Message::new().bytes(1, name).message(2, ty)
}

/// `f32[2, 3]`.
fn tensor(text: &str) -> (i64, Vec<i64>) {
    let (name, dims) = text.trim_end_matches(']').split_once('[').expect("a type");
    let element = ELEMENTS.iter().find(|(other, _)| *other == name).expect("a type of elements").1;
    (element, numbers(dims, ", "))
}

/// `w: f32[3] = 1`.
fn weight(text: &str) -> Message {
    let (name, rest) = text.split_once(": ").expect("a name");
    let (ty, values) = rest.split_once(" = ").expect("values");
    let (element, dims) = tensor(ty);
    let mut values: Vec<f64> = numbers(values, " ");
    let count = usize::try_from(dims.iter().product::<i64>()).expect("a number of elements");
    values.resize(count, values[0]);
    let tensor = Message::new().bytes(8, name).int(2, element).ints(1, &dims);
    let integers: Vec<i64> = values.iter().map(|&value| value as i64).collect();
    let floats: Vec<f32> = values.iter().map(|&value| value as f32).collect();
    match element {
        1 => tensor.floats(4, &floats),
        7 => tensor.ints(7, &integers),
        _ => tensor.ints(5, &integers),
    }
}

/// `y, z = acme::Foo(x, w) { axis = 1, mode = "x" }`.
fn node(text: &str) -> Message {
    let (outputs, call) = text.split_once(" = ").expect("a node");
    let (op, rest) = call.split_once('(').expect("inputs");
    let (inputs, attributes) = rest.split_once(')').expect("the end of the inputs");
    let (domain, op) = op.split_once("::").unwrap_or(("", op));
    let mut node = Message::new().bytes(4, op).bytes(7, domain);
    for (field, names) in [(1, inputs), (2, outputs)] {
        let names = names.split(", ").filter(|_| !names.is_empty());
        node = names.fold(node, |node, name| node.bytes(field, name));
    }
    let mut attributes = attributes.trim_start_matches(" {").trim_end_matches('}').trim();
    while let Some((name, rest)) = attributes.split_once(" = ") {
        let end =
            if rest.starts_with('[') { rest.find(']').map(|at| at + 1) } else { rest.find(',') };
        let (value, rest) = rest.split_at(end.unwrap_or(rest.len()));
        node = node.message(5, attribute(name, value));
        attributes = rest.trim_start_matches(", ");
    }
    node
}

fn attribute(name: &str, value: &str) -> Message {
    let attribute = Message::new().bytes(1, name);
    if let Some(list) = value.strip_prefix('[') {
        let list = list.trim_end_matches(']');
        return match list.contains('.') {
            true => attribute.int(20, 6).floats(7, &numbers(list, ", ")),
            false => attribute.int(20, 7).ints(8, &numbers(list, ", ")),
        };
    }
    match value.strip_prefix('"') {
        Some(text) => attribute.int(20, 3).bytes(4, text.trim_end_matches('"')),
        None if value.contains('.') => {
            attribute.int(20, 1).float(2, value.parse().expect("a float"))
        }
        None => attribute.int(20, 2).int(3, value.parse().expect("an integer")),
    }
}

fn numbers<T: std::str::FromStr>(text: &str, between: &str) -> Vec<T> {
    let parts = text.split(between).filter(|part| !part.is_empty());
    parts.map(|part| part.parse().unwrap_or_else(|_| panic!("{part} is a number"))).collect()
}
