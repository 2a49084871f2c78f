use super::{AttributeKind, AttributeValue, Dimension, ModelProto, Storage, TypeProto};
use crate::onnx::{wire::Run, writer::Message};

fn model(graph: Message) -> Vec<u8> {
    Message::new().message(7, graph).0
}

fn node(op: &str) -> Message {
    Message::new().bytes(4, op)
}

/// A model of one node with this attribute.
fn with_attribute(attribute: Message) -> Vec<u8> {
    model(Message::new().message(1, node("Op").message(5, attribute)))
}

fn error(bytes: &[u8]) -> String {
    ModelProto::decode(bytes).unwrap_err().to_string()
}

#[test]
fn reads_a_model() {
    let opset = Message::new().bytes(1, "").int(2, 17);
    let pair = Message::new().bytes(1, "author").bytes(2, "someone");
    let weight = Message::new().ints(1, &[2, 2]).int(2, 1).bytes(8, "w").bytes(9, [0; 16]);
    let graph = Message::new()
        .bytes(2, "g")
        .message(1, node("MatMul").bytes(1, "x").bytes(1, "w").bytes(2, "y").bytes(3, "first"))
        .message(5, weight)
        .bytes(10, "a doc string that nobody keeps")
        .message(11, Message::new().bytes(1, "x"))
        .message(12, Message::new().bytes(1, "y"));
    let bytes = Message::new()
        .int(1, 8)
        .bytes(2, "writer")
        .bytes(3, "1.2")
        .int(5, -3)
        .message(7, graph)
        .message(8, opset)
        .message(14, pair)
        .message(20, Message::new())
        .0;
    let model = ModelProto::decode(&bytes).unwrap();
    assert_eq!((model.ir_version, model.model_version), (8, -3));
    assert_eq!((model.producer_name, model.producer_version), ("writer", "1.2"));
    assert_eq!((model.opset_import[0].domain, model.opset_import[0].version), ("", 17));
    assert_eq!(model.metadata, [("author", "someone")]);
    assert!(model.has_training_info);
    let graph = &model.graph;
    assert_eq!((graph.name, graph.input[0].name, graph.output[0].name), ("g", "x", "y"));
    let node = &graph.node[0];
    assert_eq!((node.name, node.op_type), ("first", "MatMul"));
    assert_eq!((&node.input[..], &node.output[..]), (&["x", "w"][..], &["y"][..]));
    let weight = &graph.initializer[0];
    assert_eq!((weight.name, &weight.dims[..], weight.data_type), ("w", &[2, 2][..], 1));
    assert_eq!(weight.raw_data.unwrap().len(), 16);
}

#[test]
fn reads_every_kind_of_attribute() {
    let attribute = |code| Message::new().bytes(1, "a").int(20, code);
    let tensor = || Message::new().int(2, 7).int(7, 5);
    let read = |attribute: Message| {
        let bytes = with_attribute(attribute);
        let model = ModelProto::decode(&bytes).unwrap();
        format!("{:?}", model.graph.node[0].attribute[0].value)
    };
    assert_eq!(read(attribute(1).float(2, 0.5)), "Float(0.5)");
    assert_eq!(read(attribute(2).int(3, -7)), "Int(-7)");
    assert_eq!(read(attribute(3).bytes(4, "AB")), "String([65, 66])");
    assert_eq!(read(attribute(6).floats(7, &[1.0]).float(7, 2.0)), "Floats([1.0, 2.0])");
    assert_eq!(read(attribute(7).int(8, 1).ints(8, &[2, -3])), "Ints([1, 2, -3])");
    assert_eq!(read(attribute(8).bytes(9, "x").bytes(9, "")), "Strings([[120], []])");
    assert_eq!(read(attribute(13)), "Unsupported(Type)");
    assert_eq!(read(attribute(11).message(22, Message::new())), "Unsupported(SparseTensor)");
    assert_eq!(read(attribute(2).bytes(21, "outer")), "Reference(\"outer\", Int)");
    for message in [attribute(4).message(5, tensor()), attribute(9).message(10, tensor())] {
        let text = read(message);
        assert!(text.contains("storage: Int64, run: Varint(5)"), "{text}");
    }
    // Absent values have protobuf's defaults.
    assert_eq!(read(attribute(1)), "Float(0.0)");
    assert_eq!(read(attribute(2)), "Int(0)");
    assert_eq!(read(attribute(7)), "Ints([])");
    // Files older than the type field.
    assert_eq!(read(Message::new().bytes(1, "a").int(3, 4)), "Int(4)");
}

#[test]
fn attributes_that_contradict_themselves_are_errors() {
    let attribute = |code| Message::new().bytes(1, "axis").int(20, code);
    let text = |attribute| error(&with_attribute(attribute));
    assert!(text(attribute(2).float(2, 1.0)).contains("`axis` says Int, but has a Float"));
    assert!(text(attribute(99)).contains("`axis` has the unknown type 99"));
    assert!(text(attribute(0)).contains("`axis` has no type and not exactly one value"));
    assert!(text(attribute(4)).contains("says that it has a Tensor, but has none"));
    assert!(text(Message::new().int(3, 1)).contains("AttributeProto has no name"));
    assert!(text(attribute(2).bytes(3, "5")).contains("of other bytes, expected an integer"));
}

#[test]
fn graphs_inside_attributes_are_read_when_asked_for() {
    let mut graph = Message::new().message(1, node("Innermost"));
    for _ in 0..20 {
        let attribute = Message::new().bytes(1, "then_branch").int(20, 5).message(6, graph);
        graph = Message::new().message(1, node("If").message(5, attribute));
    }
    let bytes = model(graph);
    let mut graph = ModelProto::decode(&bytes).unwrap().graph;
    for _ in 0..20 {
        let [attribute] = &graph.node[0].attribute[..] else { panic!("one attribute") };
        assert_eq!(attribute.kind(), AttributeKind::Graph);
        let AttributeValue::Graph(inner) = &attribute.value else { panic!("a graph") };
        graph = inner.decode().unwrap();
    }
    assert_eq!(graph.node[0].op_type, "Innermost");
}

#[test]
fn nesting_without_end_is_refused() {
    let mut graph = Message::new();
    for _ in 0..1000 {
        let attribute = Message::new().bytes(1, "g").int(20, 5).message(6, graph);
        graph = Message::new().message(1, node("If").message(5, attribute));
    }
    let bytes = model(graph);
    let mut graph = ModelProto::decode(&bytes).unwrap().graph;
    let error = loop {
        let AttributeValue::Graph(inner) = &graph.node[0].attribute[0].value else {
            panic!("a graph")
        };
        match inner.decode() {
            Ok(inner) => graph = inner,
            Err(error) => break error.to_string(),
        }
    };
    assert!(error.ends_with("messages are nested more than 100 deep"), "{error}");
}

#[test]
fn reads_types() {
    let dim = |number: u32| match number {
        0 => Message::new(),
        1 => Message::new().int(1, 3),
        3 => Message::new().int(1, -1),
        4 => Message::new().bytes(2, "?"),
        _ => Message::new().bytes(2, "batch"),
    };
    let shape = [2, 1, 0, 3, 4].iter().fold(Message::new(), |it, &kind| it.message(1, dim(kind)));
    let tensor = Message::new().int(1, 10).message(2, shape);
    let value = |name: &str, ty| Message::new().bytes(1, name).message(2, ty);
    let graph = Message::new()
        .message(11, value("a", Message::new().message(1, tensor)))
        .message(11, value("b", Message::new().message(1, Message::new().int(1, 1))))
        .message(11, value("c", Message::new().message(4, Message::new())))
        .message(11, value("d", Message::new()));
    let bytes = model(graph);
    let graph = ModelProto::decode(&bytes).unwrap().graph;
    let TypeProto::Tensor { elem_type: 10, shape: Some(shape) } = &graph.input[0].ty else {
        panic!("a tensor")
    };
    let unknown = [Dimension::Unknown; 3];
    assert_eq!(shape[..2], [Dimension::Param("batch"), Dimension::Value(3)]);
    assert_eq!(shape[2..], unknown);
    assert!(matches!(graph.input[1].ty, TypeProto::Tensor { elem_type: 1, shape: None }));
    assert!(matches!(graph.input[2].ty, TypeProto::Unsupported("sequence")));
    assert!(matches!(graph.input[3].ty, TypeProto::Unknown));
}

#[test]
fn reads_typed_and_external_tensors() {
    let entry = |key: &str, value: &str| Message::new().bytes(1, key).bytes(2, value);
    let typed = Message::new().bytes(8, "t").int(2, 1).floats(4, &[1.0]).float(4, 2.0);
    let external = Message::new()
        .bytes(8, "e")
        .int(2, 1)
        .message(13, entry("location", "w.bin"))
        .message(13, entry("offset", "64"))
        .int(14, 1);
    let sparse = Message::new().message(1, Message::new().bytes(8, "s").int(2, 1));
    let bytes = model(Message::new().message(5, typed).message(5, external).message(15, sparse));
    let graph = ModelProto::decode(&bytes).unwrap().graph;
    let [typed, external] = &graph.initializer[..] else { panic!("two tensors") };
    assert!(typed.typed_data.iter().all(|run| run.storage == Storage::Float));
    assert_eq!(typed.typed_data[1].run, Run::Fixed32(2f32.to_le_bytes()));
    assert!(external.is_external);
    assert_eq!(external.external_data, [("location", "w.bin"), ("offset", "64")]);
    assert_eq!(graph.sparse_initializer, ["s"]);
}

#[test]
fn reads_functions() {
    let default = Message::new().bytes(1, "alpha").int(20, 1).float(2, 0.1);
    let function = Message::new()
        .bytes(1, "F")
        .bytes(10, "local")
        .bytes(13, "v2")
        .bytes(4, "x")
        .bytes(5, "y")
        .bytes(6, "axis")
        .message(11, default)
        .message(7, node("Relu"))
        .message(9, Message::new().int(2, 18));
    let bytes = Message::new().message(7, Message::new()).message(25, function).0;
    let model = ModelProto::decode(&bytes).unwrap();
    let function = &model.functions[0];
    assert_eq!((function.domain, function.name, function.overload), ("local", "F", "v2"));
    assert_eq!((&function.input[..], &function.output[..]), (&["x"][..], &["y"][..]));
    assert_eq!((&function.attribute[..], function.opset_import[0].version), (&["axis"][..], 18));
    assert_eq!(function.attribute_default[0].name, "alpha");
    assert_eq!(function.node[0].op_type, "Relu");
}

#[test]
fn parts_of_a_graph_are_merged() {
    let bytes = Message::new()
        .message(7, Message::new().bytes(2, "a").message(1, node("A")))
        .message(7, Message::new().message(1, node("B")))
        .0;
    let graph = ModelProto::decode(&bytes).unwrap().graph;
    assert_eq!(graph.name, "a");
    assert_eq!(graph.node.iter().map(|node| node.op_type).collect::<Vec<_>>(), ["A", "B"]);
}

#[test]
fn what_must_be_there_is_missed() {
    assert_eq!(error(&Message::new().int(1, 8).0), "byte 2: ModelProto has no graph");
    let text = error(&model(Message::new().message(1, Message::new().bytes(3, "n"))));
    assert_eq!(text, "byte 7: NodeProto `n` has no op_type");
    let text = error(&model(Message::new().message(5, Message::new().int(2, 1))));
    assert!(text.contains("GraphProto has an initializer without a name"), "{text}");
    let text = error(&model(Message::new().message(5, Message::new().bytes(8, "w"))));
    assert!(text.contains("TensorProto `w` has no data_type"), "{text}");
    let text = error(&model(Message::new().message(11, Message::new())));
    assert!(text.contains("ValueInfoProto has no name"), "{text}");
    let text = error(&Message::new().message(7, Message::new()).message(25, Message::new()).0);
    assert!(text.contains("FunctionProto of domain `` has no name"), "{text}");
}

#[test]
fn other_files_are_no_models() {
    assert!(error(b"\x93NUMPY").contains("ModelProto"));
    assert!(error(b"# a text file\n").contains("ModelProto"));
    assert!(error(b"PK\x03\x04\0\0\0\0").contains("ModelProto"));
}

#[test]
fn scopes_of_nodes_are_those_that_pytorch_writes() {
    let innermost = |key: &str, value: &str| {
        let entry = Message::new().bytes(1, key).bytes(2, value);
        let bytes = model(Message::new().message(1, node("Conv").message(9, entry)));
        ModelProto::decode(&bytes).unwrap().graph.node[0].scopes.innermost().to_owned()
    };
    let names = "pkg.torch.onnx.name_scopes";
    assert_eq!(innermost(names, "['', 'layer1', 'layer1.conv1', 'conv2d']"), "layer1.conv1");
    assert_eq!(innermost(names, "['', 'conv2d']"), "");
    for other in ["['conv2d']", "[]", "[", "", "', '"] {
        assert_eq!(innermost(names, other), "", "{other}");
    }
    let namespace = ": a.Net/network.0: torch.Linear/linear: aten.linear.default";
    assert_eq!(innermost("namespace", namespace), "network.0");
    assert_eq!(innermost("namespace", "linear: aten.linear.default"), "");
    assert_eq!(innermost("other", namespace), "");
}
