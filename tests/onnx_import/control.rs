//! Graphs inside of nodes.

use super::*;

/// A graph that stands in a node.
#[derive(Clone, Default)]
pub(super) struct Inner(Message);

pub(super) fn inner() -> Inner {
    Inner::default()
}

impl Inner {
    pub(super) fn node(
        self,
        op: &str,
        inputs: &[&str],
        outputs: &[&str],
        attributes: &[Message],
    ) -> Self {
        Self(self.0.message(1, node(op, inputs, outputs, attributes)))
    }

    pub(super) fn int(self, name: &str, value: i64) -> Self {
        Self(self.0.message(5, Message::new().bytes(8, name).int(2, INT64).ints(7, &[value])))
    }

    pub(super) fn ints(self, name: &str, values: &[i64]) -> Self {
        let tensor = Message::new().bytes(8, name).int(2, INT64);
        Self(self.0.message(5, tensor.ints(1, &[values.len() as i64]).ints(7, values)))
    }

    pub(super) fn input(self, name: &str) -> Self {
        Self(self.0.message(11, value(name, FLOAT, &[])))
    }

    /// An input of any type.
    pub(super) fn with_input(self, input: Message) -> Self {
        Self(self.0.message(11, input))
    }

    pub(super) fn output(self, name: &str) -> Self {
        Self(self.0.message(12, Message::new().bytes(1, name)))
    }

    pub(super) fn typed_output(self, name: &str, element: i64, dims: &[D]) -> Self {
        Self(self.0.message(12, value(name, element, dims)))
    }

    pub(super) fn named(self, name: &str) -> Message {
        Message::new().bytes(1, name).int(20, 5).message(6, self.0)
    }
}

/// The attributes of a choice.
pub(super) fn branches(then: Inner, otherwise: Inner) -> [Message; 2] {
    [then.named("then_branch"), otherwise.named("else_branch")]
}

fn base() -> Model {
    model(17).input("x", FLOAT, &[S("n"), N(3)]).input("c", BOOL, &[])
}

/// A choice between two graphs that makes `y`.
fn choice(then: Inner, otherwise: Inner) -> Model {
    base().node("If", &["c"], &["y"], &branches(then, otherwise)).output("y")
}

#[test]
fn a_branch_sees_what_is_defined_around_it() {
    let deeper = branches(
        inner().node("Tanh", &["a"], &["b"], &[]).output("b"),
        inner()
            .int("w", 7)
            .node("Cast", &["w"], &["f"], &[int("to", 1)])
            .node("Mul", &["a", "f"], &["b"], &[])
            .output("b"),
    );
    // Names of one branch are those of another as well, and that of a result is that of the node.
    let then = inner().node("Neg", &["x"], &["a"], &[]).node("If", &["c"], &["y"], &deeper);
    let model = choice(then.output("y"), inner().node("Abs", &["x"], &["a"], &[]).output("a"));
    assert_eq!(
        model.text(),
        "fn @main(%x: f32[n, 3], %c: bool[]) -> f32[n, 3]\n\
         %y_1 = if %c {\n\
         %a = negative(%x)\n\
         %y = if %c {\n\
         %b = tanh(%a)\n\
         ret %b\n\
         %b_1 = multiply(%a, const(f32[], 7))\n\
         ret %b_1\n\
         ret %y\n\
         %a_1 = abs(%x)\n\
         ret %a_1\n\
         ret %y_1"
    );
}

/// A node comes just before the first that reads it, and all others stay where they are.
#[test]
fn nodes_out_of_order_are_put_in_order() {
    let then =
        inner().node("Tanh", &["f"], &["t"], &[]).node("Mul", &["a", "e"], &["f"], &[]).output("t");
    let model = choice(then, inner().output("e"))
        .node("Exp", &["x"], &["z"], &[])
        .node("Neg", &["b"], &["e"], &[])
        .node("Sin", &["x"], &["a"], &[])
        .node("Cos", &["x"], &["b"], &[])
        .output("z");
    assert_eq!(
        model.text(),
        "fn @main(%x: f32[n, 3], %c: bool[]) -> (f32[n, 3], f32[n, 3])\n\
         %a = sin(%x)\n\
         %b = cos(%x)\n\
         %e = negative(%b)\n\
         %y = if %c {\n\
         %f = multiply(%a, %e)\n\
         %t = tanh(%f)\n\
         ret %t\n\
         ret %e\n\
         %z = exp(%x)\n\
         ret (%y, %z)"
    );
}

/// A tensor of dimensions is computed in each body that reads it.
#[test]
fn dimensions_are_computed_where_they_are_read() {
    let read = || inner().node("Cast", &["s"], &["t"], &[int("to", 1)]).output("t");
    let model = base()
        .node("Shape", &["x"], &["s"], &[])
        .node("If", &["c"], &["y"], &branches(read(), read()))
        .node("Cast", &["s"], &["t"], &[int("to", 1)])
        .output("y")
        .output("t");
    let text = model.text();
    assert_eq!(text.matches("= shape_to_tensor(shape(n, 3))").count(), 3, "{text}");
}

#[test]
fn a_known_condition_chooses_when_the_model_is_read() {
    let model = |value: i64| {
        let then = inner().node("Neg", &["x"], &["a"], &[]).output("a");
        // The branch that is not taken may hold anything.
        let otherwise = inner().node("ImageDecoder", &["x"], &["b"], &[]).output("b");
        base()
            .int("one", 1)
            .int("value", value)
            .node("Equal", &["one", "value"], &["d"], &[])
            .node("If", &["d"], &["y"], &branches(then, otherwise))
            .output("y")
    };
    assert_eq!(
        model(1).text(),
        "fn @main(%x: f32[n, 3], %c: bool[]) -> f32[n, 3]\n%a = negative(%x)\nret %a"
    );
    assert!(model(2).error().contains(
        "the ImageDecoder (ai.onnx 17) that makes `b`: the standard has `ImageDecoder` since"
    ));
}

#[test]
fn a_condition_may_have_dimensions_of_one() {
    let choose = |dims: &[D]| {
        model(17)
            .input("x", FLOAT, &[N(2)])
            .input("c", BOOL, dims)
            .node("If", &["c"], &["y"], &branches(inner().output("x"), inner().output("x")))
            .output("y")
    };
    assert!(choose(&[N(1), N(1)]).text().contains("%y_reshape = reshape(%c, shape())\n%y = if"));
    assert!(
        choose(&[N(2)])
            .error()
            .contains("If (ai.onnx 17): bool[2] where one element is expected — once")
    );
    let floats = model(17)
        .input("x", FLOAT, &[])
        .node("If", &["x"], &["y"], &branches(inner().output("x"), inner().output("x")))
        .output("y");
    assert!(
        floats.error().ends_with("the If (ai.onnx 17) that makes `y`: its input 1, `cond`, is f32, but bool is allowed; put a Cast before it")
    );
}

#[test]
fn several_results_are_a_tuple() {
    let two = branches(
        inner().node("Neg", &["x"], &["a"], &[]).output("a").output("c"),
        inner().output("x").output("c"),
    );
    let model = base().node("If", &["c"], &["y", "d"], &two).output("d").output("y");
    assert_eq!(
        model.text(),
        "fn @main(%x: f32[n, 3], %c: bool[]) -> (bool[], f32[n, 3])\n\
         %y_choice = if %c {\n\
         %a = negative(%x)\n\
         ret (%a, %c)\n\
         ret (%x, %c)\n\
         %y = %y_choice.0\n\
         %d = %y_choice.1\n\
         ret (%d, %y)"
    );
}

/// As PyTorch's exporter writes `x.squeeze(0)` of a length that it does not know.
#[test]
fn a_length_that_is_dropped_where_it_is_one_has_to_be_one() {
    let dropped = || {
        let axes = inner().ints("axes", &[0]);
        axes.node("Squeeze", &["x", "axes"], &["s"], &[]).output("s")
    };
    let squeezed = "fn @main(%x: f32[n, 3], %c: bool[]) -> f32[3]\n\
                    %s = squeeze(%x) { axis = [0] }\n\
                    ret %s";
    assert_eq!(choice(dropped(), inner().output("x")).text(), squeezed);
    let identity = inner().node("Identity", &["x"], &["i"], &[]).output("i");
    assert_eq!(choice(dropped(), identity).text(), squeezed);
    // Nothing is dropped of what the other branch gives.
    let other = inner().node("Relu", &["x"], &["i"], &[]).output("i");
    assert!(choice(dropped(), other).error().contains("branches whose results have different"));
}

#[test]
fn choices_that_are_not_supported_are_named() {
    let other =
        inner().node("Shape", &["x"], &["s"], &[]).node("Cast", &["s"], &["f"], &[int("to", 1)]);
    assert!(choice(inner().output("x"), other.output("f")).error().ends_with(
        "If (ai.onnx 17): branches whose results have different shapes, f32[n, 3] and f32[2] — once: the one that makes `y`"
    ));
    let strange = |name: &str| {
        let strange = node("Strange", &["x"], &[name], &[]).bytes(7, "own");
        Inner(inner().0.message(1, strange)).output(name)
    };
    let error = choice(strange("a"), strange("b")).error();
    assert!(
        error.contains("Strange (own 1) — 2 times: the one that makes `a`, the one that makes `b`"),
        "{error}"
    );
}

#[test]
fn choices_that_are_wrong_say_so() {
    let wrong = |model: Model, reason: &str| {
        let error = model.error();
        assert_eq!(error.strip_prefix("`m.onnx` is not a valid model: "), Some(reason), "{error}");
    };
    let x = || inner().output("x");
    wrong(choice(x().input("i"), x()), "the If (ai.onnx 17) that makes `y`: a branch has inputs");
    wrong(
        choice(x(), x().output("x")),
        "the If (ai.onnx 17) that makes `y`: a branch has 2 outputs, the node 1",
    );
    wrong(
        base().node("If", &["c"], &["y"], &[x().named("then_branch")]).output("y"),
        "the If (ai.onnx 17) that makes `y`: its attribute `else_branch`, a graph, is missing",
    );
    wrong(
        base().node("If", &["c", "c"], &["y"], &branches(x(), x())).output("y"),
        "the If (ai.onnx 17) that makes `y`: it has 2 inputs, but 1 is allowed: `cond`",
    );
    let hides = inner().node("Neg", &["x"], &["c"], &[]).output("c");
    let error = choice(hides, x()).error();
    let twice = "`c` is defined twice, as an input and as an output of the Neg that makes `c`";
    assert!(error.contains(twice), "{error}");
    let local = inner().node("Neg", &["x"], &["a"], &[]).output("a");
    wrong(
        choice(local, x()).node("Neg", &["a"], &["z"], &[]).output("z"),
        "the Neg (ai.onnx 17) that makes `z` reads `a`, which is not defined before it",
    );
    wrong(choice(x(), inner().output("b")), "the output `b` is not defined");
    wrong(
        choice(x(), inner().output("c")),
        "the If (ai.onnx 17) that makes `y`: its branches give f32[n, 3] and bool[]",
    );
    wrong(
        choice(inner().typed_output("x", BOOL, &[S("n"), N(3)]), x()),
        "the output `x` is declared as bool[n, 3], but it is f32[n, 3]",
    );
}

/// A choice in a choice in a choice, and so on; the messages of a model nest a hundred deep at most.
#[test]
fn choices_nest_deeply() {
    let x = || inner().output("x");
    let mut deepest = inner().node("Neg", &["x"], &["a"], &[]).output("a");
    for level in 0..30 {
        let name = format!("y_{level}");
        deepest = inner().node("If", &["c"], &[&name], &branches(deepest, x())).output(&name);
    }
    let text = choice(deepest, x()).text();
    assert_eq!(text.matches("= if %c").count(), 31, "{text}");
}

/// A body that declares its inputs and outputs, without their types.
pub(super) fn body(inputs: &[&str], inner: Inner, outputs: &[&str]) -> Message {
    let inner = inputs.iter().fold(inner, |inner, input| inner.input(input));
    outputs.iter().fold(inner, |inner, output| inner.output(output)).named("body")
}

fn repeated(inputs: &[&str], body: Message, outputs: &[&str]) -> Model {
    let model = model(17)
        .input("x", FLOAT, &[S("n"), N(3)])
        .input("m", INT64, &[])
        .input("c", BOOL, &[])
        .int("five", 5)
        .node("Loop", inputs, outputs, &[body]);
    outputs.iter().fold(model, |model, output| model.output(output))
}

#[test]
fn a_loop_calls_its_body() {
    let inner = inner()
        .node("Mul", &["v", "x"], &["w"], &[])
        .node("Cast", &["i"], &["f"], &[int("to", 1)])
        .node("Add", &["w", "f"], &["u"], &[])
        .node("Less", &["i", "five"], &["more"], &[])
        .node("And", &["more", "c"], &["again"], &[]);
    let model = repeated(&["m", "c", "x"], body(&["i", "d", "v"], inner, &["again", "u"]), &["y"]);
    assert_eq!(
        model.text(),
        "fn @main(%x: f32[n, 3], %m: i64[], %c: bool[]) -> f32[n, 3]\n\
         %y_body = fn (%i: i64[], %v: f32[n, 3]) -> (bool[], f32[n, 3]) {\n\
         %w = multiply(%v, %x)\n\
         %f = cast(%i) { dtype = \"f32\" }\n\
         %u = add(%w, %f)\n\
         %more = less(%i, const(i64[], 5, \"five\"))\n\
         %again = logical_and(%more, %c)\n\
         ret (%again, %u)\n\
         %y_loop = loop(%y_body, %m, %c, (%x,)) { out = (f32[n, 3],) }\n\
         %y = %y_loop.0\n\
         ret %y"
    );
}

/// The condition that a body is given is true while it runs.
#[test]
fn rows_of_all_trips_have_their_number() {
    let same = || inner().node("Identity", &["d"], &["again"], &[]);
    let graph =
        body(&["i", "d", "v"], same().node("Neg", &["v"], &["w"], &[]), &["again", "w", "v"]);
    let model = repeated(&["five", "", "x"], graph, &["y", "all"]);
    let text = model.text();
    assert!(
        text.contains("ret (const(bool[], true), %w, %v)")
            && text.contains(
                "loop(%y_body, dim(5), const(bool[], true), (%x,)) { out = (f32[n, 3], f32[5, n, 3]) }"
            ),
        "{text}"
    );
    // The number of rows is that of an input, and then the loop makes as many trips.
    let graph =
        body(&["i", "d", "v"], same().node("Neg", &["v"], &["w"], &[]), &["again", "w", "v"]);
    let model = model_of_rows(graph);
    assert!(model.text().contains("loop(%y_body, dim(n), const(bool[], true), (%x,))"));
}

/// As Paddle's exporter names the inputs of a body.
#[test]
fn an_input_of_a_body_hides_what_is_around_it() {
    let inner = inner().node("Neg", &["x"], &["u"], &[]);
    let graph = body(&["i", "d", "x"], inner, &["d", "u"]);
    let model = repeated(&["m", "c", "x"], graph, &["y"]).node("Neg", &["x"], &["z"], &[]);
    let text = model.output("z").text();
    assert!(text.contains("%u = negative(%x_1)"), "{text}");
    assert!(text.contains("(%x,)) { out = (f32[n, 3],) }"), "{text}");
    assert!(text.contains("%z = negative(%x)\n"), "{text}");
}

/// As TensorFlow carries the weights of a cell.
#[test]
fn what_no_trip_changes_is_not_carried() {
    let inner = inner()
        .node("Identity", &["w"], &["w1"], &[])
        .node("Mul", &["v", "w1"], &["u"], &[])
        .node("Identity", &["w1"], &["w2"], &[])
        .node("Identity", &["d"], &["again"], &[]);
    let graph = body(&["i", "d", "w", "v", "k"], inner, &["again", "w2", "u", "k"]);
    let model = repeated(&["m", "c", "x", "x", "five"], graph, &["y", "z", "n"]);
    assert_eq!(
        model.text(),
        "fn @main(%x: f32[n, 3], %m: i64[], %c: bool[]) -> (f32[n, 3], f32[n, 3], i64[])\n\
         %y_body = fn (%i: i64[], %v: f32[n, 3]) -> (bool[], f32[n, 3]) {\n\
         %u = multiply(%v, %x)\n\
         ret (const(bool[], true), %u)\n\
         %y_loop = loop(%y_body, %m, %c, (%x,)) { out = (f32[n, 3],) }\n\
         %z = %y_loop.0\n\
         ret (%x, %z, const(i64[], 5, \"five\"))"
    );
}

fn model_of_rows(graph: Message) -> Model {
    model(17)
        .input("x", FLOAT, &[S("n"), N(3)])
        .int("zero", 0)
        .node("Shape", &["x"], &["s"], &[])
        .node("Gather", &["s", "zero"], &["rows"], &[])
        .node("Loop", &["rows", "", "x"], &["y", "all"], &[graph])
        .output("y")
        .output("all")
}

#[test]
fn a_scan_goes_over_rows() {
    let inner = inner().node("Add", &["state", "row"], &["next"], &[]).node(
        "Mul",
        &["row", "other"],
        &["product"],
        &[],
    );
    let graph = body(&["state", "row", "other"], inner, &["next", "product"]);
    let scan = |attributes: &[Message]| {
        let attributes: Vec<Message> =
            [&[graph.clone(), int("num_scan_inputs", 2)], attributes].concat();
        model(17)
            .input("x", FLOAT, &[S("n"), N(3)])
            .input("z", FLOAT, &[N(3)])
            .node("Scan", &["z", "x", "x"], &["y", "all"], &attributes)
            .output("y")
            .output("all")
    };
    assert_eq!(
        scan(&[]).text(),
        "fn @main(%x: f32[n, 3], %z: f32[3]) -> (f32[3], f32[n, 3])\n\
         %y_body = fn (%trip: i64[], %state: f32[3]) -> (bool[], f32[3], f32[3]) {\n\
         %row = take(%x, %trip) { axis = 0 }\n\
         %other = take(%x, %trip) { axis = 0 }\n\
         %next = add(%state, %row)\n\
         %product = multiply(%row, %other)\n\
         ret (const(bool[], true), %next, %product)\n\
         %y_loop = loop(%y_body, dim(n), const(bool[], true), (%z,)) { out = (f32[3], f32[n, 3]) }\n\
         %y = %y_loop.0\n\
         %all = %y_loop.1\n\
         ret (%y, %all)"
    );
    let text = scan(&[
        ints("scan_input_directions", &[0, 1]),
        ints("scan_output_axes", &[-1]),
        ints("scan_output_directions", &[1]),
    ])
    .text();
    for part in ["take(%x, %y_subtract_1)", "arange(shape(n))", "take(%y_item, ", "transpose("] {
        assert!(text.contains(part), "{text}");
    }
    let error = scan(&[ints("scan_input_axes", &[0, 1])]).error();
    assert!(error.contains("Scan (ai.onnx 17): rows of n and of 3 — once"), "{error}");
    let error = scan(&[ints("scan_output_axes", &[0, 1])]).error();
    assert!(
        error.ends_with("its attribute `scan_output_axes` is no list of 1 integers"),
        "{error}"
    );
}

#[test]
fn loops_that_are_not_supported_are_named() {
    let refused = |inputs: &[&str], graph: Message, outputs: &[&str], reason: &str| {
        let error = repeated(inputs, graph, outputs).error();
        assert!(error.contains(&format!("Loop (ai.onnx 17): {reason} — once")), "{error}");
    };
    let flat = inner().int("s", -1).node("Reshape", &["v", "s"], &["w"], &[]);
    refused(
        &["m", "", "x"],
        body(&["i", "d", "v"], flat, &["d", "w"]),
        &["y"],
        "a value that it carries and that changes from f32[n, 3] to f32[3*n]",
    );
    let error = repeated(
        &["m", "", "x"],
        body(&["i", "d", "v"], inner().node("RegexFullMatch", &["v"], &["w"], &[]), &["d", "w"]),
        &["y"],
    )
    .error();
    assert!(error.contains("the RegexFullMatch (ai.onnx 17) that makes `w`"), "{error}");
}

#[test]
fn loops_that_are_wrong_say_so() {
    let wrong = |inputs: &[&str], graph: Message, outputs: &[&str], reason: &str| {
        let error = repeated(inputs, graph, outputs).error();
        let name = outputs.first().unwrap_or(&"");
        let expected = format!(
            "`m.onnx` is not a valid model: the Loop (ai.onnx 17) that makes `{name}`: {reason}"
        );
        assert_eq!(error, expected);
    };
    wrong(
        &["m", "c", "x"],
        body(&["i", "d"], inner(), &["d"]),
        &["y"],
        "its body has 2 inputs, and 3 are expected",
    );
    wrong(
        &["m", "c", "x"],
        body(&["i", "d", "v"], inner(), &["d"]),
        &["y"],
        "its body has 1 outputs, and 2 are expected",
    );
    wrong(
        &["m", "c", "x"],
        body(&["i", "d", "v"], inner(), &["v", "v"]),
        &["y"],
        "one bool is expected, and f32[n, 3] is given",
    );
    wrong(
        &["c", "c", "x"],
        body(&["i", "d", "v"], inner(), &["d", "v"]),
        &["y"],
        "its input 1, `M`, is bool, but i64 is allowed; put a Cast before it",
    );
    wrong(
        &["m", "c", "x"],
        body(&["i", "d", "v"], inner(), &["d", "v"]),
        &["y", "z"],
        "its body makes 1 of 2 outputs",
    );
    wrong(&["m", "c", "x"], int("body", 1), &["y"], "its attribute `body` is a graph, not an int");
}

/// What becomes longer is memory of a size that is found, and beside it stand its extents.
#[test]
fn what_a_loop_carries_may_change_its_shape() {
    let grows = inner().node("Concat", &["v", "v"], &["w"], &[int("axis", 0)]);
    let model = repeated(&["m", "", "x"], body(&["i", "d", "v"], grows, &["d", "w"]), &["y"]);
    assert_eq!(
        model.text(),
        "fn @main(%x: f32[n, 3], %m: i64[], %c: bool[]) -> f32[y_size_2, 3]\n\
         %y_body = fn (%i: i64[], %v: f32[*], %extents: i64[2]) -> (bool[], f32[*], i64[2]) {\n\
         %y_reshape = reshape(%extents, shape(2))\n\
         %y_bind_dims = bind_dims(%y_reshape) { ty = shape[y_size, y_size_1] }\n\
         %carried = reshape(%v, shape(y_size, 3))\n\
         %w = concatenate((%carried, %carried)) { axis = 0 }\n\
         %y_shape_to_tensor = shape_to_tensor(shape(2*y_size, 3))\n\
         ret (const(bool[], true), %w, %y_shape_to_tensor)\n\
         %y_shape_to_tensor_1 = shape_to_tensor(shape(n, 3))\n\
         %y_loop = loop(%y_body, %m, const(bool[], true), (%x, %y_shape_to_tensor_1)) { out = (f32[*], i64[2]) }\n\
         %y_item = %y_loop.1\n\
         %y_reshape_1 = reshape(%y_item, shape(2))\n\
         %y_bind_dims_1 = bind_dims(%y_reshape_1) { ty = shape[y_size_2, y_size_3] }\n\
         %y_item_1 = %y_loop.0\n\
         %y = reshape(%y_item_1, shape(y_size_2, 3))\n\
         ret %y"
    );
}

/// The body may be left before, so how many rows there are is counted.
#[test]
fn rows_of_a_loop_that_may_be_left_are_counted() {
    let graph = body(&["i", "d", "v"], inner().node("Neg", &["v"], &["w"], &[]), &["d", "w", "v"]);
    let model = repeated(&["five", "c", "x"], graph, &["y", "z"]);
    assert_eq!(
        model.text(),
        "fn @main(%x: f32[n, 3], %m: i64[], %c: bool[]) -> (f32[n, 3], f32[y_size, n, 3])\n\
         %y_body = fn (%i: i64[], %v: f32[n, 3], %trips: i64[]) -> (bool[], f32[n, 3], i64[], f32[n, 3]) {\n\
         %w = negative(%v)\n\
         %y_add = add(%i, const(i64[], 1))\n\
         ret (const(bool[], true), %w, %y_add, %v)\n\
         %y_loop = loop(%y_body, dim(5), %c, (%x, const(i64[], 0))) { out = (f32[n, 3], i64[], f32[*]) }\n\
         %y_item = %y_loop.1\n\
         %y_reshape = reshape(%y_item, shape(1))\n\
         %y_bind_dims = bind_dims(%y_reshape) { ty = shape[y_size] }\n\
         %y_item_1 = %y_loop.2\n\
         %y = %y_loop.0\n\
         %z = reshape(%y_item_1, shape(y_size, n, 3))\n\
         ret (%y, %z)"
    );
}

#[test]
fn branches_may_give_different_shapes() {
    let two = inner().node("Concat", &["x", "x"], &["w"], &[int("axis", 0)]).output("w");
    assert_eq!(
        choice(inner().output("x"), two).text(),
        "fn @main(%x: f32[n, 3], %c: bool[]) -> f32[y_size, 3]\n\
         %y_choice = if %c {\n\
         %y_shape_to_tensor = shape_to_tensor(shape(n, 3))\n\
         ret (%x, %y_shape_to_tensor)\n\
         %w = concatenate((%x, %x)) { axis = 0 }\n\
         %w_shape_to_tensor = shape_to_tensor(shape(2*n, 3))\n\
         ret (%w, %w_shape_to_tensor)\n\
         %y_item = %y_choice.1\n\
         %y_reshape = reshape(%y_item, shape(2))\n\
         %y_bind_dims = bind_dims(%y_reshape) { ty = shape[y_size, y_size_1] }\n\
         %y_item_1 = %y_choice.0\n\
         %y = reshape(%y_item_1, shape(y_size, 3))\n\
         ret %y"
    );
}
