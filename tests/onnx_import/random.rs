//! Nodes that draw numbers: what they become, and which seeds they have.

use super::*;

fn like(op: &str, attributes: &[Message]) -> Model {
    model(22).input("x", FLOAT, &[S("n"), N(4)]).node(op, &["x"], &["y"], attributes).output("y")
}

/// The constants that are seeds.
fn seeds(text: &str) -> Vec<&str> {
    let behind = text.split("const(u64[], ").skip(1);
    behind.filter_map(|rest| rest.split(')').next()).collect()
}

#[test]
fn a_seed_is_the_bits_of_the_float() {
    let text = like("RandomNormalLike", &[float("seed", 1.0), float("mean", 2.0)]).text();
    assert!(text.contains("random.normal("), "{text}");
    assert!(text.contains("mean = 2.0"), "{text}");
    assert_eq!(seeds(&text), ["1065353216"], "{text}");
}

/// Also those in the branches of one choice, and a second import gives them again.
#[test]
fn nodes_without_seed_have_different_ones_each_time_the_same() {
    let branch = |name: &str| {
        Message::new()
            .bytes(2, name)
            .message(1, node("RandomUniformLike", &["x"], &[name], &[]))
            .message(12, Message::new().bytes(1, name))
    };
    let graph =
        |name: &str, of: &str| Message::new().bytes(1, name).int(20, 5).message(6, branch(of));
    let model = model(22)
        .input("x", FLOAT, &[N(2)])
        .input("c", BOOL, &[])
        .node("RandomUniformLike", &["x"], &["a"], &[])
        .node("RandomUniformLike", &["x"], &["b"], &[])
        .node("If", &["c"], &["d"], &[graph("then_branch", "t"), graph("else_branch", "e")])
        .node("Add", &["a", "b"], &["ab"], &[])
        .node("Add", &["ab", "d"], &["y"], &[])
        .output("y");
    let text = model.text();
    let mut found = seeds(&text);
    found.sort_unstable();
    found.dedup();
    assert_eq!(found.len(), 4, "{text}");
    assert_eq!(text, model.text());
}

#[test]
fn a_class_is_drawn_for_each_sample() {
    let text = like("Multinomial", &[int("sample_size", 5), int("dtype", INT64)]).text();
    assert!(text.starts_with("fn @main(%x: f32[n, 4]) -> i64[n, 5]"), "{text}");
    assert!(text.contains("shape(n, 5, 4)"), "{text}");
}

#[test]
fn dropout_of_training_that_a_call_tells_is_a_choice() {
    let model = model(22)
        .input("x", FLOAT, &[N(3)])
        .input("r", FLOAT, &[])
        .input("t", BOOL, &[])
        .node("Dropout", &["x", "r", "t"], &["y", "m"], &[])
        .output("y")
        .output("m");
    let text = model.text();
    assert!(text.contains("random.uniform("), "{text}");
    assert!(text.contains("logical_not(%t)"), "{text}");
}

#[test]
fn what_cannot_be_drawn_is_refused() {
    let shapeless = model(22).node("RandomNormal", &[], &["y"], &[]).output("y");
    assert!(
        shapeless.error().contains("its attribute `shape`, a list of ints, is missing"),
        "{}",
        shapeless.error()
    );
    let below =
        model(22).node("RandomUniform", &[], &["y"], &[ints("shape", &[2, -1])]).output("y");
    assert!(below.error().contains("a dimension of its shape is negative"), "{}", below.error());
    let empty = like("Multinomial", &[int("sample_size", 0)]);
    assert!(empty.error().contains("its `sample_size` is below 1"), "{}", empty.error());
    let bytes = like("Multinomial", &[int("dtype", FLOAT)]);
    assert!(bytes.error().contains("not i32 or i64"), "{}", bytes.error());
    let integers = like("RandomUniformLike", &[int("dtype", INT64)]);
    assert!(integers.error().contains("only f16, bf16, f32 and f64"), "{}", integers.error());
}
