//! Damaged models: whatever the bytes, reading ends with a result, and with a result that is no
//! larger than the file allows.

use std::path::Path;

use super::{
    TensorReader,
    proto::{AttributeValue, GraphProto, ModelProto, TensorProto},
    writer::Message,
};
use crate::io::Mapping;

/// A small model with something of everything.
fn model() -> Vec<u8> {
    let pair = |key: &str, value: &str| Message::new().bytes(1, key).bytes(2, value);
    let weight = |name: &str| Message::new().bytes(8, name).int(2, 1).ints(1, &[2, 1]);
    let dim = Message::new().bytes(2, "n");
    let shape = Message::new().message(1, dim).message(1, Message::new().int(1, 2));
    let ty = Message::new().message(1, Message::new().int(1, 1).message(2, shape));
    let value = |name: &str| Message::new().bytes(1, name).message(2, ty.clone());
    let attribute = |name: &str, code| Message::new().bytes(1, name).int(20, code);
    let inner =
        Message::new().message(1, Message::new().bytes(4, "Neg").bytes(1, "x").bytes(2, "z"));
    let node = Message::new()
        .bytes(1, "x")
        .bytes(1, "w")
        .bytes(2, "y")
        .bytes(3, "node")
        .bytes(4, "Op")
        .message(5, attribute("f", 1).float(2, 1.0))
        .message(5, attribute("i", 2).int(3, -1))
        .message(5, attribute("s", 3).bytes(4, "text"))
        .message(5, attribute("t", 4).message(5, weight("").floats(4, &[1.0, 2.0])))
        .message(5, attribute("g", 5).message(6, inner))
        .message(5, attribute("fs", 6).floats(7, &[1.0, 2.0]))
        .message(5, attribute("is", 7).ints(8, &[1, -2, 300]))
        .message(5, attribute("ss", 8).bytes(9, "a").bytes(9, "b"));
    let external = weight("e").message(13, pair("location", "absent")).int(14, 1);
    let bytes = Message::new().bytes(8, "b").int(2, 3).ints(1, &[3]).ints(5, &[1, -2, 3]);
    let graph = Message::new()
        .message(1, node.clone())
        .bytes(2, "graph")
        .message(5, weight("w").bytes(9, [0; 8]))
        .message(5, external)
        .message(5, bytes)
        .message(11, value("x"))
        .message(12, value("y"))
        .message(13, value("v"));
    let function = Message::new().bytes(1, "F").bytes(10, "d").message(7, node);
    let opset = Message::new().bytes(1, "").int(2, 17);
    Message::new()
        .int(1, 8)
        .message(8, opset)
        .bytes(2, "producer")
        .message(7, graph)
        .message(14, pair("k", "v"))
        .message(25, function)
        .0
}

/// Reads everything that there is to read.
fn read_all(bytes: Vec<u8>) {
    let length = bytes.len();
    let mapping = Mapping::in_memory(Path::new("model.onnx"), bytes);
    let Ok(model) = ModelProto::decode(&mapping) else { return };
    let mut tensors = TensorReader::new(&mapping);
    let mut graphs: Vec<GraphProto<'_>> = vec![model.graph];
    while let Some(graph) = graphs.pop() {
        let lists = graph.node.len() + graph.initializer.len() + graph.input.len();
        assert!(lists <= length, "more messages than bytes");
        for tensor in &graph.initializer {
            check_tensor(&mut tensors, tensor, length);
        }
        for attribute in graph.node.iter().flat_map(|node| &node.attribute) {
            match &attribute.value {
                AttributeValue::Tensor(tensor) => check_tensor(&mut tensors, tensor, length),
                AttributeValue::Graph(inner) => graphs.extend(inner.decode()),
                AttributeValue::Ints(ints) => assert!(ints.len() <= length),
                _ => {}
            }
        }
    }
}

fn check_tensor(tensors: &mut TensorReader<'_>, tensor: &TensorProto<'_>, length: usize) {
    match tensors.read(tensor) {
        Ok(data) => {
            let count: u64 = data.dims.iter().product();
            assert_eq!(Some(data.bytes.len()), data.element.bytes_of(count as usize));
            assert!(data.bytes.len() <= 8 * length, "more data than the file can have");
        }
        Err(error) => assert!(error.to_string().len() < 2000),
    }
}

/// A sequence of numbers that is the same every time.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) as usize) % limit
    }
}

#[test]
fn a_model_may_end_at_any_byte() {
    let whole = model();
    ModelProto::decode(&whole).unwrap();
    for length in 0..whole.len() {
        read_all(whole[..length].to_vec());
    }
}

#[test]
fn any_bit_may_be_wrong() {
    let whole = model();
    for at in 0..whole.len() {
        for bit in 0..8 {
            let mut damaged = whole.clone();
            damaged[at] ^= 1 << bit;
            read_all(damaged);
        }
    }
}

#[test]
fn any_bytes_may_be_wrong() {
    let whole = model();
    let mut random = Random(1);
    for _ in 0..20_000 {
        let mut damaged = whole.clone();
        for _ in 0..=random.below(8) {
            let at = random.below(damaged.len());
            match random.below(4) {
                0 => damaged[at] = random.below(256) as u8,
                1 => damaged[at] = 0xff,
                2 => drop(damaged.remove(at)),
                _ => damaged.insert(at, random.below(256) as u8),
            }
        }
        read_all(damaged);
    }
}

#[test]
fn bytes_need_not_be_a_model() {
    let mut random = Random(2);
    for _ in 0..20_000 {
        let length = random.below(64);
        read_all((0..length).map(|_| random.below(256) as u8).collect());
    }
}

/// Every length in a model, replaced by ones that lie.
#[test]
fn any_length_may_lie() {
    let whole = model();
    for at in 0..whole.len() {
        for lie in [&[0x7f][..], &[0xff, 0xff, 0xff, 0xff, 0x07], &[0xff; 10], &[0xff, 0xff, 0x03]]
        {
            let mut damaged = whole.clone();
            damaged.splice(at..=at, lie.iter().copied());
            read_all(damaged);
        }
    }
}
