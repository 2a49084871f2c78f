//! Sequences and optional values, of which nothing is left where it is known what stands in them.

use super::*;

fn parts(extent: D) -> Model {
    model(17).input("x", FLOAT, &[extent, N(3)])
}

#[test]
fn a_split_sequence_is_put_together_again() {
    let model = parts(N(5))
        .int("two", 2)
        .int("last", -1)
        .node("SplitToSequence", &["x", "two"], &["s"], &[int("axis", 0)])
        .node("SequenceAt", &["s", "last"], &["a"], &[])
        .node("SequenceInsert", &["s", "a"], &["t"], &[])
        .node("SequenceErase", &["t", "two"], &["u"], &[])
        .node("ConcatFromSequence", &["u"], &["y"], &[int("axis", 0)])
        .node("SequenceLength", &["u"], &["n"], &[])
        .output("y")
        .output("n");
    let text = model.text();
    assert!(text.starts_with("fn @main(%x: f32[5, 3]) -> (f32[5, 3], i64[])"), "{text}");
    assert!(text.contains("split(%x) { axis = 0, indices = [2, 4] }"), "{text}");
    assert!(text.contains("const(i64[], 3"), "{text}");
}

#[test]
fn a_sequence_is_stacked_along_a_new_axis() {
    let model = parts(N(2))
        .node("SequenceEmpty", &[], &["none"], &[])
        .node("SequenceInsert", &["none", "x"], &["one"], &[])
        .node("SequenceInsert", &["one", "x"], &["both"], &[])
        .node("ConcatFromSequence", &["both"], &["y"], &[int("axis", -1), int("new_axis", 1)])
        .output("y");
    let text = model.text();
    assert!(text.starts_with("fn @main(%x: f32[2, 3]) -> f32[2, 3, 2]"), "{text}");
    let model = parts(N(2))
        .node("SplitToSequence", &["x"], &["s"], &[int("axis", 1), int("keepdims", 0)])
        .node("ConcatFromSequence", &["s"], &["y"], &[int("axis", 0)])
        .output("y");
    assert!(model.text().starts_with("fn @main(%x: f32[2, 3]) -> f32[6]"), "{}", model.text());
    // As `torch.unbind` is exported; where parts are longer, the axis stays.
    for (length, ty) in [(1, "f32[6]"), (2, "f32[2, 3]")] {
        let split = parts(N(2)).int("l", length).node(
            "SplitToSequence",
            &["x", "l"],
            &["s"],
            &[int("keepdims", 0)],
        );
        let model = split.node("ConcatFromSequence", &["s"], &["y"], &[int("axis", 0)]).output("y");
        assert!(model.text().contains(&format!("-> {ty}")), "{}", model.text());
    }
}

/// As `torch.chunk` is exported: lengths that are computed from the shape.
#[test]
fn lengths_may_be_computed() {
    let model = parts(N(5))
        .int("zero", 0)
        .int("two", 2)
        .ints("one", &[1])
        .node("Shape", &["x"], &["s"], &[])
        .node("Gather", &["s", "zero"], &["n"], &[])
        .node("Div", &["n", "two"], &["half"], &[])
        .node("Expand", &["half", "one"], &["first"], &[])
        .node("Sub", &["n", "half"], &["rest"], &[])
        .node("Unsqueeze", &["rest", "zeros"], &["last"], &[])
        .ints("zeros", &[0])
        .node("Concat", &["first", "last"], &["lengths"], &[int("axis", 0)])
        .node("SplitToSequence", &["x", "lengths"], &["parts"], &[])
        .node("SequenceAt", &["parts", "zero"], &["y"], &[])
        .output("y");
    assert!(model.text().starts_with("fn @main(%x: f32[5, 3]) -> f32[2, 3]"), "{}", model.text());
}

#[test]
fn an_open_extent_makes_an_open_sequence() {
    let split = parts(S("n")).node("SplitToSequence", &["x"], &["s"], &[]);
    let model = split
        .int("last", -1)
        .node("SequenceLength", &["s"], &["l"], &[])
        .node("SequenceAt", &["s", "last"], &["a"], &[])
        .node("SequenceErase", &["s"], &["e"], &[])
        .node("ConcatFromSequence", &["e"], &["y"], &[int("axis", 1)])
        .output("l")
        .output("a")
        .output("y");
    let text = model.text();
    let ty = "fn @main(%x: f32[n, 3]) -> (i64[], f32[1, 3], f32[1, 3*max(n - 1, 0)])";
    assert!(text.starts_with(ty), "{text}");
    // A call whose last part would be shorter has no such rows.
    let pairs = parts(S("n")).int("two", 2).node("SplitToSequence", &["x", "two"], &["s"], &[]);
    let text =
        pairs.node("ConcatFromSequence", &["s"], &["y"], &[int("axis", 1)]).output("y").text();
    assert!(text.contains("reshape(%x, shape(floordiv(n, 2), 2, 3))"), "{text}");
    let told = parts(N(6)).input("l", INT64, &[N(2)]);
    let told = told.node("SplitToSequence", &["x", "l"], &["s"], &[]).int("one", 1);
    let text = told.node("SequenceAt", &["s", "one"], &["y"], &[]).output("y").text();
    assert!(
        text.starts_with("fn @main(%x: f32[6, 3], %l: shape[l_0, l_1]) -> f32[l_1, 3]"),
        "{text}"
    );
}

#[test]
fn what_is_not_known_of_a_sequence_is_told() {
    let of_place = |place: i64| {
        let made = parts(N(2)).int("at", place);
        let made = made.node("SequenceConstruct", &["x", "x"], &["s"], &[]);
        made.node("SequenceAt", &["s", "at"], &["y"], &[]).output("y")
    };
    assert!(of_place(-2).text().contains("%y = (%x, %x).0"), "{}", of_place(-2).text());
    let error = of_place(2).error();
    assert!(error.contains("there is no place 2 among 2"), "{error}");
    let made = parts(N(2)).node("SequenceLength", &["x"], &["y"], &[]).output("y");
    assert!(made.error().contains("its input 1 is no sequence"), "{}", made.error());
    let lengths = parts(N(2)).ints("l", &[1, 2]).node("SplitToSequence", &["x", "l"], &["s"], &[]);
    let made = lengths.node("SequenceLength", &["s"], &["y"], &[]).output("y");
    assert!(made.error().contains("the parts are not 2 together"), "{}", made.error());
}

#[test]
fn an_optional_value_is_there_or_not() {
    let model = Model { version: 18, ..parts(N(2)) }
        .node("Optional", &["x"], &["o"], &[])
        .node("OptionalHasElement", &["o"], &["is_there"], &[])
        .node("OptionalHasElement", &[], &["is_nothing"], &[])
        .node("OptionalGetElement", &["o"], &["y"], &[])
        .output("y")
        .output("is_there")
        .output("is_nothing");
    let text = model.text();
    assert!(text.contains("const(bool[], true") && text.contains("const(bool[], false"), "{text}");
    let nothing = model_of_nothing();
    assert!(nothing.error().contains("an optional value that is not there"), "{}", nothing.error());
}

fn model_of_nothing() -> Model {
    let made = parts(N(2)).node("Optional", &[], &["o"], &[]);
    made.node("OptionalHasElement", &["o"], &["y"], &[]).output("y")
}

#[test]
fn a_sequence_may_be_an_output() {
    // A type of the kind sequence, of which nothing is looked at.
    let sequence =
        Message::new().bytes(1, "s").message(2, Message::new().message(4, Message::new()));
    let model = parts(N(2)).node("SplitToSequence", &["x"], &["s"], &[]).with(12, sequence.clone());
    let text = model.text();
    assert!(text.starts_with("fn @main(%x: f32[2, 3]) -> (f32[1, 3], f32[1, 3])"), "{text}");
    let tensor = parts(N(2)).node("Relu", &["x"], &["s"], &[]).with(12, sequence);
    assert!(
        tensor.error().contains("declared as of kind sequence, but it is f32[2, 3]"),
        "{}",
        tensor.error()
    );
}
