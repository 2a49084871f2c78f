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

fn in_domain(domain: &str, message: Message) -> Message {
    message.bytes(7, domain)
}

/// A function of a domain of its own, which is written in these versions of others.
fn of_domain(domain: &str, name: &str, sets: &[(&str, i64)], nodes: &[Message]) -> Message {
    let function = Message::new().bytes(1, name).bytes(10, domain).bytes(4, "a").bytes(5, "b");
    let function = nodes.iter().fold(function, |it, node| it.message(7, node.clone()));
    sets.iter().fold(function, |it, &(domain, version)| {
        it.message(9, Message::new().bytes(1, domain).int(2, version))
    })
}

/// Each function is written in its own versions of the operators, and hands attributes on, with defaults of its own.
#[test]
fn a_domain_has_one_version() {
    let in_versions = |versions: &[i64]| {
        let sets: Vec<_> = versions.iter().map(|&version| ("", version)).collect();
        let body = [node("Relu", &["a"], &["b"], &[])];
        let model = model(17).input("x", FLOAT, &[N(2)]).output("y");
        model
            .with(1, own(node("F", &["x"], &["y"], &[])))
            .function(of_domain("own", "F", &sets, &body))
    };
    in_versions(&[17, 17]).text();
    assert_eq!(
        in_versions(&[17, 13]).error(),
        "`m.onnx` is not a valid model: the function `F` is in the operators of `ai.onnx` of version 17, and in those of \
         version 13"
    );
}

#[test]
fn functions_of_several_domains_call_each_other() {
    let inner = of_domain(
        "inner",
        "Scaled",
        &[("", 11)],
        &[node("Softmax", &["a"], &["b"], &[reference("axis", "along", 2)])],
    );
    let call =
        |attributes: &[Message]| in_domain("inner", node("Scaled", &["a"], &["b"], attributes));
    // An attribute with a default, which the inner function gets by another name.
    let outer =
        of_domain("outer", "Twice", &[("", 13)], &[call(&[reference("along", "where", 2)])]);
    let outer = outer.message(11, int("where", 2));
    let calls = |attributes: &[Message]| {
        let call = in_domain("outer", node("Twice", &["x"], &["y"], attributes));
        model(17)
            .input("x", FLOAT, &[N(2), N(3), N(1)])
            .with(1, call)
            .output("y")
            .function(inner.clone())
            .function(outer.clone())
            .text()
    };
    // Before version 13 softmax is over all that comes from the axis on.
    assert!(calls(&[]).ends_with("= nn.softmax(%x) { axis = 2 }\nret %b"), "{}", calls(&[]));
    let along = calls(&[int("where", 0)]);
    assert!(along.contains("reshape(%x, shape(1, 6))"), "{along}");
}

/// What has no rule is told at once, however deep it stands, in the version that its function is written in.
#[test]
fn what_is_not_supported_within_functions_is_listed() {
    let inner = of_domain(
        "inner",
        "F",
        &[("", 20), ("other", 3)],
        &[
            node("RegexFullMatch", &["a"], &["t"], &[]),
            in_domain("other", node("Magic", &["t"], &["s"], &[])),
            node("Relu", &["a"], &["b"], &[int("speed", 1)]),
        ],
    );
    let outer = of_domain(
        "outer",
        "G",
        &[("", 21)],
        &[
            in_domain("inner", node("F", &["a"], &["c"], &[])),
            node("StringSplit", &["c"], &["b"], &[]),
        ],
    );
    let unused = of_domain("outer", "Unused", &[("", 17)], &[node("Loop", &["a"], &["b"], &[])]);
    let model = model(22)
        .input("x", FLOAT, &[N(2)])
        .with(1, in_domain("outer", node("G", &["x"], &["y"], &[])))
        .with(1, node("StringConcat", &["y"], &["z"], &[]))
        .output("z")
        .function(inner)
        .function(outer)
        .function(unused);
    assert_eq!(
        model.error(),
        "`m.onnx` is not a valid model: the Relu (ai.onnx 20) that makes `b`: it has an attribute `speed`, but Relu has none\n\
         and it uses what is not supported:\n  \
         RegexFullMatch (ai.onnx 20) — once: the one that makes `t`\n  \
         Magic (other 3) — once: the one that makes `s`\n  \
         StringSplit (ai.onnx 21) — once: the one that makes `b`\n  \
         StringConcat (ai.onnx 22) — once: the one that makes `z`\n\
         other: these are no operators of the standard; export the model without them, or use a plugin with rules of import for \
         this domain"
    );
}

#[test]
fn an_input_that_a_call_leaves_out_is_left_out_inside() {
    let clips =
        function("Clips", &["x", "low"], &["y"], &[node("Clip", &["x", "low"], &["y"], &[])]);
    let model = |inputs: &[&str]| {
        model(13)
            .input("x", FLOAT, &[N(2)])
            .with(1, own(node("Clips", inputs, &["z"], &[])))
            .function(clips.clone())
            .output("z")
    };
    let text = model(&["x"]).text();
    assert!(text.contains("clip(%x)"), "{text}");
    assert_eq!(model(&["x", ""]).text(), text);
    let adds = function("Adds", &["x", "w"], &["y"], &[node("Add", &["x", "w"], &["y"], &[])]);
    let error =
        model(&["x"]).function(adds).with(1, own(node("Adds", &["x"], &["v"], &[]))).error();
    assert!(error.contains("the Add (ai.onnx 13) that makes `y`"), "{error}");
}
