//! Any bytes as an ONNX model: no panic, and no tensor larger than the bytes allow.
//!
//! `cargo +nightly fuzz run onnx`; put some models into `corpus/onnx` first.

#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use tenon_compiler::{
    io::Mapping,
    onnx::{
        TensorReader,
        proto::{AttributeValue, ModelProto, TensorProto},
    },
};

fuzz_target!(|bytes: &[u8]| {
    let file = Mapping::in_memory(Path::new("/nowhere/model.onnx"), bytes.to_vec());
    let mut tensors = TensorReader::new(&file);
    let mut read = |tensor: &TensorProto<'_>| {
        if let Ok(data) = tensors.read(tensor) {
            assert!(data.bytes.len() <= 8 * bytes.len());
        }
    };
    if let Ok(tensor) = TensorProto::decode_file(&file) {
        read(&tensor);
    }
    let Ok(model) = ModelProto::decode(&file) else { return };
    let mut graphs = vec![model.graph];
    // A graph may be reached once per attribute that holds it, never twice.
    while let Some(graph) = graphs.pop() {
        graph.initializer.iter().for_each(&mut read);
        for attribute in graph.node.iter().flat_map(|node| &node.attribute) {
            match &attribute.value {
                AttributeValue::Tensor(tensor) => read(tensor),
                AttributeValue::Tensors(list) => list.iter().for_each(&mut read),
                AttributeValue::Graph(inner) => graphs.extend(inner.decode()),
                AttributeValue::Graphs(list) => graphs.extend(list.iter().flat_map(|g| g.decode())),
                _ => {}
            }
        }
    }
});
