//! What is wrong with a model is said, all that is not supported in one go.

use super::*;

#[test]
fn everything_that_is_not_supported_is_listed() {
    let graph = Message::new().message(1, node("StringSplit", &["x"], &["z"], &[]));
    let body_graph = Message::new().bytes(1, "body").int(20, 5).message(6, graph);
    let mut model = model(20)
        .input("x", FLOAT, &[N(2)])
        .input("s", 8, &[N(2)])
        .node("ImageDecoder", &["x"], &["a"], &[])
        .node("Relu", &["a"], &["b"], &[])
        .with(1, node("OddMap", &["x"], &["c"], &[body_graph]).bytes(7, "own"));
    for name in ["p", "q", "r", "t"] {
        model = model.node("RegexFullMatch", &["b"], &[name], &[]);
    }
    let model = model
        .node("Relu", &["x"], &["d"], &[int("speed", 9)])
        .with(1, node("Gelu", &["x"], &["e"], &[]).bytes(7, "own").bytes(3, "gelu_1"))
        .output("d");
    assert_eq!(
        model.error(),
        "`m.onnx` is not a valid model: the Relu (ai.onnx 20) that makes `d`: it has an attribute `speed`, but Relu has none\n\
         and it uses what is not supported:\n  \
         the element type string (code 8) of the input `s`\n  \
         ImageDecoder (ai.onnx 20) — once: the one that makes `a`\n  \
         OddMap (own 1) — once: the one that makes `c`\n  \
         StringSplit (ai.onnx 20) — once: the one that makes `z`\n  \
         RegexFullMatch (ai.onnx 20) — 4 times: the one that makes `p`, the one that makes `q`, \
         the one that makes `r`, …\n  \
         Gelu (own 1) — once: `gelu_1`\n\
         own: these are no operators of the standard; export the model without them, or use a plugin with rules of import for \
         this domain"
    );
}

/// What reads an output of a node without translation is looked at where the model declares its type.
#[test]
fn nodes_behind_others_are_listed_too() {
    let call = node("f", &["x"], &["z"], &[]).bytes(7, "own");
    let body = Message::new().message(1, call);
    let body_graph = Message::new().bytes(1, "body").int(20, 5).message(6, body);
    let function = Message::new()
        .bytes(1, "f")
        .bytes(4, "a")
        .bytes(5, "b")
        .message(7, node("StringSplit", &["a"], &["b"], &[]))
        .message(9, Message::new().bytes(1, "").int(2, 20))
        .bytes(10, "own");
    let model = model(20)
        .input("x", FLOAT, &[N(2), N(3)])
        .function(function)
        .with(13, value("b", FLOAT, &[N(2), N(3)]))
        .with(13, value("s", INT64, &[N(2)]))
        .with(1, node("OddMap", &["x"], &["b"], &[body_graph]).bytes(7, "own"))
        .node("Relu", &["b"], &["c"], &[int("speed", 9)])
        .node("Softmax", &["c"], &["d"], &[int("axis", 7)])
        .node("Shape", &["b"], &["shape"], &[])
        .node("RegexFullMatch", &["b"], &["s"], &[])
        // That the shape is not known is due to what makes it, and not told.
        .node("Reshape", &["b", "s"], &["e"], &[])
        .node("Sigmoid", &["b"], &["g"], &[])
        .node("Tanh", &["g"], &["h"], &[int("depth", 1)])
        .output("h");
    assert_eq!(
        model.error(),
        "`m.onnx` is not a valid model:\n  \
         the Relu (ai.onnx 20) that makes `c`: it has an attribute `speed`, but Relu has none\n  \
         the Tanh (ai.onnx 20) that makes `h`: it has an attribute `depth`, but Tanh has none\n\
         and it uses what is not supported:\n  \
         OddMap (own 1) — once: the one that makes `b`\n  \
         StringSplit (ai.onnx 20) — once: the one that makes `b`\n  \
         RegexFullMatch (ai.onnx 20) — once: the one that makes `s`\n\
         own: these are no operators of the standard; export the model without them, or use a plugin with rules of import for \
         this domain"
    );
}

/// Of a node that reads what is not known is told what is wrong whatever it reads, and nothing that may follow from that.
#[test]
fn attributes_behind_what_is_missing_are_looked_at() {
    let odd = |inputs: &[&str], output: &str| node("Odd", inputs, &[output], &[]).bytes(7, "own");
    let model = model(20)
        .input("x", FLOAT, &[N(2), N(3)])
        .with(13, value("b", FLOAT, &[N(2), N(3)]))
        .with(1, odd(&["x"], "a"))
        .with(1, odd(&["a"], "b"))
        // Of nothing known, and of a declared type.
        .node("Transpose", &["a"], &["c"], &[ints("perm", &[0, 0])])
        .node("Transpose", &["b"], &["d"], &[ints("perm", &[0, 2])])
        .node("Softmax", &["c"], &["e"], &[float("axis", 1.0)])
        .node("Relu", &["e"], &["f"], &[int("speed", 9)])
        .node("Concat", &["f", "x"], &["g"], &[])
        .node("MaxPool", &["g"], &["h"], &[ints("kernel_shape", &[2, 2]), ints("strides", &[1, 0])])
        .input("w", FLOAT, &[N(4), N(3), N(2), N(2)])
        .node("Conv", &["h", "w"], &["i"], &[string("auto_pad", "SOME")])
        .node("DepthToSpace", &["i"], &["j"], &[int("blocksize", -2)])
        // Right for some inputs.
        .node("Transpose", &["a"], &["k"], &[ints("perm", &[0, 2, 1, 3, 4, 5])])
        .node("Softmax", &["b"], &["l"], &[int("axis", 9)])
        .node("Mod", &["a", "a"], &["m"], &[int("fmod", 0)])
        .node("Concat", &["x", "a"], &["n"], &[int("axis", 1)])
        .node("Gather", &["x", "a"], &["o"], &[int("axis", 1)])
        .node("Conv", &["a", "h"], &["p"], &[int("group", 7)])
        .node("Conv", &["a", "w"], &["p3"], &[int("group", 2)])
        .node("Split", &["a"], &["q", "r"], &[int("num_outputs", 2), int("axis", 3)])
        .node("Reshape", &["x", "a"], &["s"], &[int("allowzero", 1)])
        // What its type forbids, and an attribute besides.
        .node("Softmax", &["t"], &["u"], &[int("speed", 1)])
        .input("t", INT64, &[N(2)])
        .output("u");
    assert_eq!(
        model.error(),
        "`m.onnx` is not a valid model:\n  \
         the Transpose (ai.onnx 20) that makes `c`: its attribute `perm` is [0, 0], and has to name each of 2 axes, from 0 on, once\n  \
         the Transpose (ai.onnx 20) that makes `d`: its attribute `perm` is [0, 2], and has to name each of 2 axes, from 0 on, once\n  \
         the Softmax (ai.onnx 20) that makes `e`: its attribute `axis` is an int, not a float\n  \
         the Relu (ai.onnx 20) that makes `f`: it has an attribute `speed`, but Relu has none\n  \
         the Concat (ai.onnx 20) that makes `g`: its attribute `axis`, an int, is missing\n  \
         the MaxPool (ai.onnx 20) that makes `h`: its attribute `strides` has 0\n  \
         the Conv (ai.onnx 20) that makes `i`: its attribute `auto_pad` is \"SOME\"; allowed is NOTSET, SAME_UPPER, SAME_LOWER, \
         VALID\n  \
         the DepthToSpace (ai.onnx 20) that makes `j`: its attribute `blocksize` is -2, expected to be between 1 and 65536\n  \
         the Softmax (ai.onnx 20) that makes `u`: its input 1, `input`, is i64, but f16, bf16, f32 or f64 is allowed; put a Cast \
         before it\n  \
         the Softmax (ai.onnx 20) that makes `u`: it has an attribute `speed`, but Softmax has `axis`\n\
         and it uses what is not supported:\n  \
         Odd (own 1) — 2 times: the one that makes `a`, the one that makes `b`\n\
         own: these are no operators of the standard; export the model without them, or use a plugin with rules of import for \
         this domain"
    );
}

#[test]
fn all_that_is_wrong_is_said_at_once_and_what_is_missing_behind_it() {
    let model = model(20)
        .input("x", FLOAT, &[N(2), N(3)])
        .node("Add", &["x", "p"], &["a"], &[])
        .node("Softmax", &["x"], &["b"], &[int("axis", 9)])
        .node("RegexFullMatch", &["x"], &["r"], &[])
        .node("Mul", &["a", "q"], &["c"], &[])
        .node("Softmax", &["c"], &["y"], &[int("axis", 9)])
        .output("y");
    assert_eq!(
        model.error(),
        "`m.onnx` is not a valid model:\n  \
         the Add (ai.onnx 20) that makes `a` reads `p`, which is not defined before it\n  \
         the Softmax (ai.onnx 20) that makes `b`: its attribute `axis` cannot be 9: there are 2 dimensions, -2 to 1; it is given \
         f32[2, 3]\n  \
         the Mul (ai.onnx 20) that makes `c` reads `q`, which is not defined before it\n\
         and it uses what is not supported:\n  \
         RegexFullMatch (ai.onnx 20) — once: the one that makes `r`"
    );
    // Only the first are told, whatever their number.
    let many = (0..100_000).fold(self::model(17).input("x", FLOAT, &[N(2)]), |model, n| {
        model.node("Add", &["x", "p"], &[&format!("y{n}")], &[])
    });
    let said = many.output("y7").error();
    assert_eq!(said.lines().count(), 22, "{said}");
    assert!(said.ends_with("\n  … and 99980 more"), "{said}");
}

/// Shapes that cannot go together are the model's mistake, and not something that is missing.
#[test]
fn shapes_that_do_not_fit_are_wrong() {
    let model = model(17)
        .input("x", FLOAT, &[N(2), N(3)])
        .input("w", FLOAT, &[N(2), N(4)])
        .input("k", FLOAT, &[N(4), N(2), N(1), N(1)])
        .input("i", FLOAT, &[N(1), N(3), N(8), N(8)])
        .node("MatMul", &["x", "w"], &["a"], &[])
        .node("Conv", &["i", "k"], &["b"], &[])
        .node("Concat", &["x", "w"], &["y"], &[int("axis", 0)])
        .output("y");
    assert_eq!(
        model.error(),
        "`m.onnx` is not a valid model:\n  \
         the MatMul (ai.onnx 17) that makes `a`: as `matmul`, the shapes, over which is summed, do not agree: [2, 3] and [2, 4]; \
         it is given f32[2, 3], f32[2, 4]\n  \
         the Conv (ai.onnx 17) that makes `b`: as `nn.conv2d`, the channels of data and kernel, with groups = 1, do not agree: [3] and \
         [2]; it is given f32[1, 3, 8, 8], f32[4, 2, 1, 1]\n  \
         the Concat (ai.onnx 17) that makes `y`: as `concatenate`, the shapes of the parts do not agree: [2, 3] and [2, 4]; it is given \
         f32[2, 3], f32[2, 4]"
    );
}

#[test]
fn an_output_that_nobody_reads_need_not_be_made() {
    let dropout = |model: Model| {
        model
            .input("x", FLOAT, &[N(1), N(4)])
            .node("Dropout", &["x"], &["y", "mask"], &[])
            .output("y")
    };
    assert!(dropout(model(10)).text().ends_with("ret %y"));
    assert!(
        dropout(model(10))
            .output("mask")
            .error()
            .ends_with("Dropout (ai.onnx 10): output 2 — once: the one that makes `y`")
    );
}

#[test]
fn names_are_defined_once_and_before_they_are_read() {
    let base = || model(13).input("x", FLOAT, &[N(2)]);
    let error = |model: Model| {
        let error = model.error();
        error.strip_prefix("`m.onnx` is not a valid model: ").unwrap_or(&error).to_owned()
    };
    assert_eq!(
        error(base().node("Relu", &["z"], &["y"], &[]).output("y")),
        "the Relu (ai.onnx 13) that makes `y` reads `z`, which is not defined before it"
    );
    assert_eq!(
        error(
            base().node("Relu", &["b"], &["a"], &[]).node("Relu", &["a"], &["b"], &[]).output("b")
        ),
        "the Relu (ai.onnx 13) that makes `b` reads `a`, which is not defined before it; a later node defines \
         it: the nodes are in a circle"
    );
    assert_eq!(
        error(base().node("Relu", &["x"], &["x"], &[]).output("x")),
        "`x` is defined twice, as an input and as an output of the Relu that makes `x`"
    );
    assert_eq!(error(base().output("y")), "the output `y` is not defined");
    assert_eq!(error(base()), "it has no outputs");
    assert_eq!(
        error(base().input("x", FLOAT, &[N(2)]).output("x")),
        "`x` is defined twice, as an input and as an input"
    );
    assert_eq!(
        error(model(13).input("x", FLOAT, &[N(-2)]).output("x")),
        "the input `x` is declared with dimension -2"
    );
}

#[test]
fn declared_outputs_must_agree() {
    let relu = |output: &[D], element| {
        model(13)
            .input("x", FLOAT, &[S("n"), N(3)])
            .node("Relu", &["x"], &["y"], &[])
            .typed_output("y", element, output)
            .text()
    };
    assert!(relu(&[S("n"), N(3)], FLOAT).ends_with("ret %y"));
    assert!(relu(&[S("other"), Unknown], FLOAT).ends_with("ret %y"));
    let wrong = "`m.onnx` is not a valid model: the output `y` is declared as";
    assert_eq!(relu(&[S("n"), N(3)], BOOL), format!("{wrong} bool[n, 3], but it is f32[n, 3]"));
}

/// As torch's exporter declares an output behind a `Transpose` that it adds.
#[test]
fn outputs_of_another_shape_than_declared_are_told() {
    let notes = |output: &[D]| {
        let base = model(13).input("x", FLOAT, &[S("n"), N(3)]);
        let relu = base.node("Relu", &["x"], &["y"], &[]).typed_output("y", FLOAT, output);
        relu.imported(&[]).unwrap().notes
    };
    let told = |declared: &str| {
        [format!("the output `y` is declared as {declared}, but it is f32[n, 3], which holds")]
    };
    assert_eq!(notes(&[S("n"), N(4)]), told("f32[n, 4]"));
    assert_eq!(notes(&[S("n")]), told("f32[n]"));
    assert!(notes(&[S("n"), N(3)]).is_empty());
}

#[test]
fn versions_that_are_not_known_are_refused() {
    for version in [6, 29, -1, i64::MAX] {
        let base = model(version).input("x", FLOAT, &[N(2)]);
        let model = base.node("Add", &["x", "x"], &["y"], &[]).output("y");
        let expected = format!("version {version} of the operators of ai.onnx; 7 to 28 are known");
        assert!(model.error().ends_with(&expected), "{}", model.error());
    }
}

/// Older ones are, of operators that mean the same since then.
#[test]
fn operators_that_never_changed_are_known_in_older_versions() {
    let relu = |version| {
        let base = model(version).input("x", FLOAT, &[N(2)]);
        base.node("Relu", &["x"], &["y"], &[]).output("y")
    };
    assert!(relu(6).text().contains("nn.relu(%x)"), "{}", relu(6).text());
    assert!(relu(5).error().contains("version 5 of the operators"), "{}", relu(5).error());
    let not = model(1).input("x", BOOL, &[N(2)]).node("Not", &["x"], &["y"], &[]).output("y");
    assert!(not.text().contains("logical_not(%x)"), "{}", not.text());
}

#[test]
fn attributes_have_their_kind() {
    let model = model(13)
        .input("x", FLOAT, &[N(2)])
        .node("Softmax", &["x"], &["y"], &[float("axis", 1.0)])
        .output("y");
    assert!(
        model.error().ends_with(
            "the Softmax (ai.onnx 13) that makes `y`: its attribute `axis` is an int, not a float"
        ),
        "{}",
        model.error()
    );
}
