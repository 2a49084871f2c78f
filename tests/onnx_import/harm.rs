//! Models that mean harm end with an error, soon, and without much memory.

use super::*;

/// A node that reads its own result of the round before.
fn repeated(start: Model, rounds: usize, node: impl Fn(Model, &str, &str) -> Model) -> Model {
    let name = |round: usize| format!("v{round}");
    let model = (0..rounds).fold(start, |model, round| node(model, &name(round), &name(round + 1)));
    model.output(&name(rounds))
}

#[test]
fn dimensions_do_not_grow_without_end() {
    let start = model(13).input("x", FLOAT, &[S("n")]).node("Shape", &["x"], &["v0"], &[]);
    let squares =
        repeated(start, 100, |model, from, to| model.node("Mul", &[from, from], &[to], &[]));
    // From some round on it is a computation like any other.
    assert!(squares.text().contains("= multiply("), "{}", squares.text());

    let start =
        model(13).input("v0", FLOAT, &[S("n"), S("n")]).ints("flat", &[-1]).ints("axis", &[1]);
    let outer = repeated(start, 20, |model, from, to| {
        let [flat, column] = ["f", "c"].map(|part| format!("{part}{to}"));
        model
            .node("Reshape", &[from, "flat"], &[&flat], &[])
            .node("Unsqueeze", &[&flat, "axis"], &[&column], &[])
            .node("Mul", &[&column, &flat], &[to], &[])
    });
    // They get names.
    let text = outer.text();
    assert!(text.contains("bind_dims(") && text.len() < 50_000, "{text}");
}

#[test]
fn dimensions_that_grow_with_each_layer_have_names() {
    let layers = |count| {
        let start = model(13)
            .input("v0", FLOAT, &[S("a"), S("b")])
            .ints("rows", &[1, -1])
            .ints("columns", &[-1, 1]);
        repeated(start, count, |model, from, to| {
            let [row, column] = ["r", "c"].map(|part| format!("{part}{to}"));
            model
                .node("Reshape", &[from, "rows"], &[&row], &[])
                .node("Reshape", &[from, "columns"], &[&column], &[])
                .node("Add", &[&row, "v0"], &[&format!("s{to}")], &[])
                .node("Add", &[&format!("s{to}"), &column], &[to], &[])
        })
    };
    assert!(!layers(1).text().contains("bind_dims("));
    let [few, many] = [20, 60].map(|count| layers(count).text());
    // The same length for each layer: a name stands for what is behind it.
    assert!(many.len() < 4 * few.len(), "{} {}", few.len(), many.len());
    assert!(many.contains("bind_dims("), "{many}");
}

#[test]
fn computed_constants_are_few() {
    let mut model = model(13).int("start", 0).int("limit", 60_000).int("step", 1);
    for number in 0..1000 {
        let name = format!("r{number}");
        model = model.node("Range", &["start", "limit", "step"], &[&name], &[]);
    }
    let error = model.output("r0").error();
    assert!(error.contains("a model that computes so many constants"), "{error}");
}

#[test]
fn tensors_have_a_few_dimensions() {
    let axes: Vec<i64> = (0..100_000).collect();
    let model = model(13)
        .input("x", FLOAT, &[N(1)])
        .ints("axes", &axes)
        .node("Unsqueeze", &["x", "axes"], &["y"], &[])
        .output("y");
    assert!(model.error().contains("must be a constant"), "{}", model.error());
    let model = super::model(11)
        .input("x", FLOAT, &[N(1)])
        .node("Unsqueeze", &["x"], &["y"], &[ints("axes", &axes)])
        .output("y");
    assert!(model.error().contains("100001 dimensions"), "{}", model.error());
    let model = super::model(11).input("x", FLOAT, &[N(1); 1000]).output("x");
    assert!(model.error().contains("1000 dimensions of the input `x`"), "{}", model.error());
}

#[test]
fn many_nodes_take_a_small_stack() {
    let import = || {
        let start = model(13).input("v0", FLOAT, &[S("n")]);
        let model =
            repeated(start, 100_000, |model, from, to| model.node("Relu", &[from], &[to], &[]));
        let module = model.import(&[]).unwrap();
        assert!(module.get_str("main").unwrap().view().len() > 200_000);
    };
    let small = std::thread::Builder::new().stack_size(512 << 10);
    small.spawn(import).unwrap().join().unwrap();
}

/// A model with something of everything.
fn everything() -> Model {
    model(13)
        .input("x", FLOAT, &[S("n"), N(2), N(6), N(6)])
        .floats("w", &[2, 2, 3, 3], &[0.5; 36])
        .floats("b", &[2], &[1.0, 2.0])
        .ints("axes", &[0])
        .ints("tail", &[-1])
        .int("0", 0)
        .node("Conv", &["x", "w", "b"], &["c"], &[ints("pads", &[1, 1, 1, 1])])
        .node("Clip", &["c", "", ""], &["d"], &[])
        .node("MaxPool", &["d"], &["e"], &[ints("kernel_shape", &[2, 2]), int("ceil_mode", 1)])
        .node("Shape", &["e"], &["s"], &[])
        .node("Gather", &["s", "0"], &["g"], &[])
        .node("Unsqueeze", &["g", "axes"], &["u"], &[])
        .node("Concat", &["u", "tail"], &["to"], &[int("axis", 0)])
        .node("Reshape", &["e", "to"], &["r"], &[])
        .node("Split", &["r"], &["p", "q"], &[int("axis", 1)])
        .node("Slice", &["p", "axes", "tail", "axes"], &["l"], &[])
        .node("ReduceMean", &["q"], &["m"], &[ints("axes", &[1])])
        .node("Softmax", &["p"], &["t"], &[float("unknown", 1.0)])
        .output("l")
        .output("m")
}

#[test]
fn any_byte_may_be_wrong() {
    let whole = everything();
    let bytes = whole.bytes();
    let import = |bytes: Vec<u8>| {
        let file = Mapping::in_memory(Path::new("m.onnx"), bytes);
        if let Err(error) =
            import_mapping(&tenon_compiler::testing::cx(), &file, &ImportOptions::default())
        {
            assert!(error.to_string().len() < 20_000);
        }
    };
    for at in 0..bytes.len() {
        for value in [0, 1, 0x7f, 0x80, 0xff, bytes[at] ^ 1, bytes[at] ^ 8] {
            let mut damaged = bytes.clone();
            damaged[at] = value;
            import(damaged);
        }
    }
}
