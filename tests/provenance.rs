//! What a node came from is known to the end: passes, texts, messages, profiles and symbols name it.

#[allow(dead_code, reason = "other tests use the rest")]
#[path = "models/program.rs"]
mod program;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use object::{Object, ObjectSymbol};
use program::tenon;

/// A protobuf message under construction.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn int(mut self, number: u64, value: u64) -> Self {
        self.varint(number << 3);
        self.varint(value);
        self
    }

    fn bytes(mut self, number: u64, bytes: impl AsRef<[u8]>) -> Self {
        self.varint(number << 3 | 2);
        self.varint(bytes.as_ref().len() as u64);
        self.0.extend(bytes.as_ref());
        self
    }

    fn message(self, number: u64, message: Self) -> Self {
        self.bytes(number, message.0)
    }
}

/// A node of a model: name, operator, inputs, output.
fn node(name: &str, op: &str, inputs: &[&str], output: &str) -> Message {
    let inputs = inputs.iter().fold(Message::default(), |node, input| node.bytes(1, input));
    inputs.bytes(2, output).bytes(3, name).bytes(4, op)
}

fn weight(name: &str, dims: &[u64], value: f32) -> Message {
    let count = dims.iter().product::<u64>() as usize;
    let tensor = dims.iter().fold(Message::default(), |tensor, &dim| tensor.int(1, dim));
    let bytes: Vec<u8> = (0..count).flat_map(|_| value.to_le_bytes()).collect();
    tensor.int(2, 1).bytes(8, name).bytes(9, bytes)
}

fn value(name: &str, dims: &[u64]) -> Message {
    let dim = |dim: &u64| Message::default().int(1, *dim);
    let shape = dims.iter().fold(Message::default(), |shape, d| shape.message(1, dim(d)));
    let ty = Message::default().message(1, Message::default().int(1, 1).message(2, shape));
    Message::default().bytes(1, name).message(2, ty)
}

/// Two layers: a product and what is fused with it, as one exporter names it, and another product and a sum, as another does.
fn model() -> Vec<u8> {
    let scopes =
        |names: &str| Message::default().bytes(1, "pkg.torch.onnx.name_scopes").bytes(2, names);
    let graph = Message::default()
        .message(1, node("/fc1/MatMul", "MatMul", &["x", "w1"], "h"))
        .message(1, node("/act/Relu", "Relu", &["h"], "r"))
        .message(1, node("", "MatMul", &["r", "w2"], "unnamed_output"))
        .message(
            1,
            node("node_add", "Add", &["unnamed_output", "b"], "y")
                .message(9, scopes("['', 'head', 'head.bias', 'add']")),
        )
        .bytes(2, "graph")
        .message(5, weight("w1", &[8, 16], 0.25))
        .message(5, weight("w2", &[16, 4], 0.5))
        .message(5, weight("b", &[4], 1.0))
        .message(11, value("x", &[2, 8]))
        .message(12, value("y", &[2, 4]));
    Message::default().int(1, 8).message(7, graph).message(8, Message::default().int(2, 17)).0
}

struct House(tempfile::TempDir);

impl House {
    fn new() -> Self {
        let house = Self(tempfile::tempdir().expect("a folder"));
        fs::write(house.path("m.onnx"), model()).expect("it can be written");
        house
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Runs a command in the folder: its exit code, and what it said on both outputs.
    #[track_caller]
    fn say(&self, args: &[&str]) -> (i32, String) {
        let mut command: Command = tenon();
        let command = command.current_dir(self.0.path()).args(args);
        let Output { status, stdout, stderr } = command.output().expect("the program was built");
        let said = [stdout, stderr].map(|bytes| String::from_utf8(bytes).expect("it says text"));
        (status.code().expect("it exits"), said.concat())
    }

    #[track_caller]
    fn succeed(&self, args: &[&str]) -> String {
        let (code, said) = self.say(args);
        assert_eq!(code, 0, "{said}");
        said
    }
}

/// The bindings of graph functions in printed modules that say of no source.
fn bare_bindings(text: &str) -> Vec<&str> {
    let mut is_graph = false;
    let is_bare = |line: &&str| {
        let line = line.trim_start();
        if line.starts_with("fn @") || line.starts_with("private fn @") {
            is_graph = true;
        } else if line.contains("prim @") {
            is_graph = false;
        }
        let is_binding = is_graph && line.starts_with('%') && line.contains(" = ");
        // The memory that all of the function shares came from no node.
        is_binding && !line.contains(" loc(") && !line.contains("memory.alloc_storage")
    };
    text.lines().filter(is_bare).collect()
}

#[test]
fn each_binding_has_a_source_behind_each_pass() {
    let house = House::new();
    let said = house.succeed(&[
        "opt",
        "m.onnx",
        "-p",
        "default",
        "--target",
        "x86_64-linux-gnu",
        "--print-after",
        "--print-sources",
    ]);
    assert_eq!(bare_bindings(&said), Vec::<&str>::new(), "{said}");
    for name in ["\"/fc1/MatMul\"", "\"/act/Relu\"", "\"unnamed_output\"", "in \"head.bias\""] {
        assert!(said.contains(name), "{name}: {said}");
    }
    // What was fused came from all that it does.
    assert!(said.contains("loc(\"/fc1/MatMul\", \"/act/Relu\")"), "{said}");
    assert!(said.contains("loc(\"unnamed_output\", \"node_add\" in \"head.bias\")"), "{said}");
    let programs: Vec<&str> = said.lines().filter(|line| line.contains("prim @")).collect();
    assert!(programs.iter().all(|line| line.contains(" loc(")), "{programs:#?}");
    // Nobody sees it who does not ask.
    assert!(!house.succeed(&["opt", "m.onnx", "-p", "default"]).contains("loc("));
}

#[test]
fn texts_keep_sources_and_are_sources() {
    let house = House::new();
    let pass = "relax.CanonicalizeBindings";
    house.succeed(&["opt", "m.onnx", "-p", pass, "--print-sources", "-o", "a.ir"]);
    house.succeed(&["opt", "a.ir", "-p", pass, "--print-sources", "-o", "b.ir"]);
    let text = |name: &str| fs::read_to_string(house.path(name)).expect("it was written");
    assert_eq!(
        text("a.ir").replace("a.safetensors", ""),
        text("b.ir").replace("b.safetensors", "")
    );
    assert!(text("a.ir").contains("loc(\"node_add\" in \"head.bias\")"), "{}", text("a.ir"));

    let own = "fn @main(%x: f32[4]) {\n  %a = exp(%x)\n  %b = nn.relu(%a) loc(\"mine\")\n\
               \x20 %c = tanh(%b) loc(\"a\", \"b\" in \"c\", 7 more)\n  ret %c\n}\n";
    fs::write(house.path("own.ir"), own).expect("it can be written");
    let said = house.succeed(&["opt", "own.ir", "-p", pass, "--print-sources"]);
    for source in ["loc(\"own.ir:2\")", "loc(\"mine\")", "loc(\"a\", \"b\" in \"c\", 7 more)"] {
        assert!(said.contains(source), "{source}: {said}");
    }
    fs::write(house.path("own.ir"), own.replace("\"mine\"", "")).expect("it can be written");
    let (code, said) = house.say(&["check", "own.ir"]);
    assert!(code == 1 && said.contains("at least one thing"), "{said}");
}

#[test]
fn changes_are_printed_with_sources() {
    let said = House::new().succeed(&[
        "opt",
        "m.onnx",
        "-p",
        "default",
        "--print-changed=relax.LegalizeOps",
        "--print-sources",
    ]);
    let is_change = |line: &&str| line.starts_with("+  ") && line.contains("call_tir");
    let changed: Vec<&str> = said.lines().filter(is_change).collect();
    assert!(changed.iter().any(|line| line.contains("loc(\"/act/Relu\")")), "{said}");
}

#[test]
fn errors_name_sources() {
    let house = House::new();
    let (code, said) = house.say(&["compile", "m.onnx", "--pipeline", "relax.Normalize"]);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("from /fc1/MatMul: the operator `matmul` is left over"), "{said}");
}

#[test]
fn profiles_and_symbols_name_sources() {
    let house = House::new();
    let x = tensor_file(&house.path("x.npy"));
    let input = format!("x={}", x.display());
    let said = house.succeed(&["run", "m.onnx", "--input", &input, "--profile", "--repeat", "3"]);
    let rows: Vec<&str> = said.lines().filter(|line| line.contains("  kernel")).collect();
    assert!(rows.iter().any(|row| row.ends_with("/fc1/MatMul, /act/Relu")), "{said}");
    assert!(rows.iter().any(|row| row.ends_with("unnamed_output, node_add (head.bias)")), "{said}");

    house.succeed(&["compile", "m.onnx", "--emit", "obj", "-o", "m.o"]);
    let bytes = fs::read(house.path("m.o")).expect("it was written");
    let file = object::File::parse(&*bytes).expect("it is an object");
    let symbols: Vec<&str> = file.symbols().filter_map(|symbol| symbol.name().ok()).collect();
    let has =
        |end: &str| symbols.iter().any(|name| name.starts_with("kernel") && name.ends_with(end));
    assert!(has(".fc1.MatMul") && has(".unnamed_output"), "{symbols:?}");
}

/// Sixteen ones, in the shape that the model takes.
fn tensor_file(path: &Path) -> PathBuf {
    let mut header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 8), }".to_owned();
    while !(10 + header.len() + 1).is_multiple_of(64) {
        header.push(' ');
    }
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend((0..16).flat_map(|_| 1f32.to_le_bytes()));
    fs::write(path, bytes).expect("it can be written");
    path.to_owned()
}
