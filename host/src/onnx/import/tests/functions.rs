//! A model's own functions.

use super::*;

fn function(name: &str, inputs: &[&str], outputs: &[&str], nodes: &[Message]) -> Message {
    let mut function = Message::new().bytes(1, name).bytes(10, "own");
    for name in inputs {
        function = function.bytes(4, name);
    }
    for name in outputs {
        function = function.bytes(5, name);
    }
    for node in nodes {
        function = function.message(7, node.clone());
    }
    let set = |domain: &str, version| Message::new().bytes(1, domain).int(2, version);
    function.message(9, set("", 13)).message(9, set("own", 1))
}

fn own(node: Message) -> Message {
    node.bytes(7, "own")
}

/// An attribute that is what the call gives for the attribute `of` of the function.
fn reference(name: &str, of: &str, kind: i64) -> Message {
    Message::new().bytes(1, name).int(20, kind).bytes(21, of)
}

#[test]
fn calls_are_expanded_with_their_attributes() {
    let leaky = function(
        "Leaky",
        &["a"],
        &["b"],
        &[
            node("LeakyRelu", &["a"], &["t"], &[reference("alpha", "slope", 1)]),
            node("Neg", &["t"], &["b"], &[]),
        ],
    );
    let twice = function(
        "Twice",
        &["a"],
        &["c"],
        &[
            own(node("Leaky", &["a"], &["b"], &[float("slope", 0.5)])),
            own(node("Leaky", &["b"], &["c"], &[])),
        ],
    );
    let model = model(13)
        .input("x", FLOAT, &[N(2)])
        .with(1, own(node("Twice", &["x"], &["y"], &[])))
        .output("y")
        .function(leaky)
        .function(twice);
    assert_eq!(
        model.text(),
        "fn @main(%x: f32[2]) -> f32[2]\n\
         %t = nn.leaky_relu(%x) { alpha = 0.5 }\n\
         %b = negative(%t)\n\
         %t_1 = nn.leaky_relu(%b) { alpha = 0.009999999776482582 }\n\
         %b_1 = negative(%t_1)\n\
         ret %b_1"
    );
}

#[test]
fn functions_that_call_themselves_are_refused() {
    let call = |name: &str| own(node(name, &["a"], &["b"], &[]));
    let model = model(13)
        .input("x", FLOAT, &[N(2)])
        .with(1, own(node("F", &["x"], &["y"], &[])))
        .output("y")
        .function(function("F", &["a"], &["b"], &[call("G")]))
        .function(function("G", &["a"], &["b"], &[call("F")]));
    assert_eq!(model.error(), "`m.onnx` is not a valid model: the function `F` calls itself");
}

#[test]
fn expansion_has_an_end() {
    // Each of forty functions calls the next one twice.
    let name = |level: usize| format!("F{level}");
    let mut harmful = model(13)
        .input("x", FLOAT, &[N(2)])
        .with(1, own(node("F0", &["x"], &["y"], &[])))
        .output("y")
        .function(function(&name(40), &["a"], &["b"], &[node("Neg", &["a"], &["b"], &[])]));
    for level in 0..40 {
        let next = name(level + 1);
        let calls = [own(node(&next, &["a"], &["t"], &[])), own(node(&next, &["t"], &["b"], &[]))];
        harmful = harmful.function(function(&name(level), &["a"], &["b"], &calls));
    }
    assert_eq!(
        harmful.error(),
        "`m.onnx` is not a valid model: its functions expand to more than 1048576 nodes"
    );
}
