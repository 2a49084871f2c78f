//! Inputs whose elements are sizes.

use super::*;

fn base() -> Model {
    model(17).input("x", FLOAT, &[S("n"), N(6)]).input("s", INT64, &[N(2)]).input("m", INT64, &[])
}

#[test]
fn a_shape_that_is_an_input_is_a_parameter_that_is_a_shape() {
    let model =
        base().floats("one", &[1], &[1.0]).node("Expand", &["one", "s"], &["y"], &[]).output("y");
    let text = model.text();
    assert!(
        text.starts_with(
            "fn @main(%x: f32[n, 6], %s: shape[s_0, s_1], %m: i64[]) -> f32[s_0, s_1]\n"
        ),
        "{text}"
    );
}

/// A -1 among the sizes of a `Reshape` is what the others leave, and no symbol is below zero.
#[test]
fn a_shape_with_a_rest_may_be_an_input() {
    let model = base().node("Reshape", &["x", "s"], &["y"], &[int("allowzero", 1)]).output("y");
    let text = model.text();
    let shape = "max(floordiv(1, s_0_plus_1 + 1)*floordiv(6*n, \
                 max(s_0_plus_1 - 1, 1)*max(s_1_plus_1 - 1, 1)), s_0_plus_1 - 1)";
    assert!(text.contains("%s: shape[s_0_plus_1 - 1, s_1_plus_1 - 1]"), "{text}");
    assert!(text.contains("expect(") && text.contains(shape), "{text}");
}

/// A zero keeps the extent at its place, or is one.
#[test]
fn a_zero_among_sizes_means_what_it_means_in_a_constant() {
    let reshape =
        |given: &[Message]| base().node("Reshape", &["x", "s"], &["y"], given).output("y").text();
    let kept = reshape(&[]);
    let is_zero = "floormod(floordiv(2, s_0_plus_1 + 1), 2)*n";
    assert!(kept.contains(is_zero), "{kept}");
    let as_given = reshape(&[int("allowzero", 1)]);
    assert!(!as_given.contains("floormod("), "{as_given}");
}

/// What is computed of them is computed as dimensions, and what reads them as a tensor gets one.
#[test]
fn sizes_are_computed_with() {
    let model = base()
        .ints("one", &[1])
        .node("Add", &["s", "one"], &["t"], &[])
        .node("Concat", &["t", "one"], &["u"], &[int("axis", 0)])
        .node("Expand", &["x", "u"], &["y"], &[])
        .node("Abs", &["s"], &["z"], &[])
        .output("y")
        .output("z");
    let text = model.text();
    assert!(text.starts_with("fn @main(%x: f32[n, 6], %s: shape[s_0, s_1], %m: i64[])"), "{text}");
    assert!(text.contains("abs(%z_shape_to_tensor)"), "{text}");
}

/// Where there may be fewer elements than are asked for, the tensor is reshaped to itself, which says that there are enough.
#[test]
fn how_many_elements_are_wanted_may_be_an_input() {
    let base = base().input("k", INT64, &[N(1)]);
    let text = base.node("TopK", &["x", "k"], &["v", "y"], &[int("axis", 0)]).output("y").text();
    assert_eq!(
        text,
        "fn @main(%x: f32[n, 6], %s: i64[2], %m: i64[], %k: shape[k_0]) -> i64[k_0, 6]\n\
         %v_reshape = reshape(%x, shape(max(k_0, n), 6))\n\
         %v_topk = topk(%v_reshape, shape(k_0)) { axis = 0, largest = true }\n\
         %v = %v_topk.0\n\
         %y = %v_topk.1\n\
         ret %y"
    );
    let known = model(17).input("x", FLOAT, &[N(3)]).ints("k", &[4]);
    let error = known.node("TopK", &["x", "k"], &["v", "y"], &[]).output("y").error();
    assert!(error.contains("4 of 3 elements are asked for"), "{error}");
}

/// Only what says sizes is sizes: few integers that are moved stay a tensor, which may have any elements.
#[test]
fn integers_that_are_reshaped_are_no_sizes() {
    let base = model(17).input("x", INT64, &[N(4)]).input("s", INT64, &[N(2)]);
    let text = base.node("Reshape", &["x", "s"], &["y"], &[int("allowzero", 1)]).output("y").text();
    assert!(text.starts_with("fn @main(%x: i64[4], %s: shape["), "{text}");
    let base = model(17).input("x", INT64, &[N(1)]).input("s", INT64, &[N(1)]);
    let text = base.node("Expand", &["x", "s"], &["y"], &[]).output("y").text();
    assert!(text.starts_with("fn @main(%x: i64[1], %s: shape["), "{text}");
}

#[test]
fn a_number_is_a_shape_of_one() {
    let body = Message::new()
        .message(11, value("i", INT64, &[]))
        .message(11, value("d", BOOL, &[]))
        .message(1, node("Cast", &["i"], &["f"], &[int("to", 1)]))
        .message(12, value("d", BOOL, &[]))
        .message(12, value("f", FLOAT, &[]));
    let body = Message::new().bytes(1, "body").int(20, 5).message(6, body);
    let model = base().node("Loop", &["m", ""], &["y"], &[body]).output("y");
    let text = model.text();
    assert!(
        text.starts_with(
            "fn @main(%x: f32[n, 6], %s: i64[2], %m: shape[m]) -> f32[m] { scalars = [\"m\"] }\n"
        ),
        "{text}"
    );
    assert!(text.contains("loop(%y_body, dim(m), const(bool[], true), ())"), "{text}");
}

/// Where it does not help, the model has the problem that it had.
#[test]
fn what_must_be_a_constant_is_still_said() {
    let error = |model: Model| model.output("y").error();
    let long = base().input("r", INT64, &[N(17)]).node("Reshape", &["x", "r"], &["y"], &[]);
    assert!(error(long).contains("Reshape (ai.onnx 17): input 2 must be a constant here"));
    let computed = base().node("Cast", &["x"], &["r"], &[int("to", 7)]).node(
        "Reshape",
        &["x", "r"],
        &["y"],
        &[],
    );
    assert!(error(computed).contains("Reshape (ai.onnx 17): input 2 must be a constant here"));
}

/// Which axis is reduced says an input: the model declares what can be, and each of these is a branch.
#[test]
fn an_axis_that_is_an_input_chooses() {
    let base = model(18).input("x", FLOAT, &[N(2), N(3)]).input("a", INT64, &[N(1)]);
    let one =
        base.node("ReduceSum", &["x", "a"], &["y"], &[]).typed_output("y", FLOAT, &[N(2), N(1)]);
    let text = one.text();
    assert!(text.starts_with("fn @main(%x: f32[2, 3], %a: i64[1]) -> f32[2, 1]"), "{text}");
    assert!(text.contains("expect("), "{text}");
    assert!(text.contains("sum(%x) { axis = [1], keepdims = true }"), "{text}");
    assert!(!text.contains("if "), "{text}");

    let base = model(18).input("x", FLOAT, &[N(3), N(3)]).input("a", INT64, &[N(1)]);
    let attrs = [int("keepdims", 0)];
    let two = base.node("ReduceSum", &["x", "a"], &["y"], &attrs).typed_output("y", FLOAT, &[N(3)]);
    let text = two.text();
    assert!(text.contains("if ") && text.contains("axis = [0]"), "{text}");
    assert!(text.contains("axis = [1]"), "{text}");
}

#[test]
fn an_extent_of_a_result_may_be_an_input() {
    let base = model(17).input("x", INT64, &[N(6)]).input("depth", INT64, &[N(1)]);
    let base = base.input("values", FLOAT, &[N(2)]);
    let model = base.node("OneHot", &["x", "depth", "values"], &["y"], &[]);
    let text = model.typed_output("y", FLOAT, &[N(6), N(4)]).text();
    assert!(text.contains("f32[6, 4]") && text.contains("expect("), "{text}");
}

/// What follows from no input is found in what is computed, however far from where it is read.
#[test]
fn sizes_that_are_computed_are_found() {
    let model = model(17)
        .input("x", FLOAT, &[S("n"), N(6)])
        .node("ReduceMax", &["x"], &["m"], &[int("keepdims", 0)])
        .node("Cast", &["m"], &["k"], &[int("to", 7)])
        .ints("axis", &[0])
        .node("Unsqueeze", &["k", "axis"], &["k1"], &[])
        .ints("rest", &[-1])
        .node("Concat", &["k1", "rest"], &["s"], &[int("axis", 0)])
        .node("Reshape", &["x", "s"], &["y"], &[])
        .output("y");
    let text = model.text();
    assert!(text.contains("%k_bind_dims = bind_dims(%k_reshape) { ty = shape[k_size] }"), "{text}");
    // A zero keeps the extent at its place.
    assert!(
        text.contains("reshape(%x, shape(floordiv(1, k_size + 1)*n + k_size, floordiv("),
        "{text}"
    );
}

/// Numbers that may be below zero are none: what a maximum leaves of them is a size.
#[test]
fn a_size_is_found_behind_what_makes_it_one() {
    let model = model(17)
        .input("x", FLOAT, &[N(1), N(1), N(4), N(6)])
        .input("box", FLOAT, &[N(2)])
        .node("Cast", &["box"], &["b"], &[int("to", 7)])
        .ints("first", &[0])
        .ints("second", &[1])
        .node("Gather", &["b", "first"], &["low"], &[])
        .node("Gather", &["b", "second"], &["high"], &[])
        .node("Sub", &["high", "low"], &["w"], &[])
        .node("Concat", &["w", "second"], &["least"], &[int("axis", 0)])
        .node("ReduceMax", &["least"], &["size"], &[])
        .ints("before", &[1, 1, 8])
        .node("Concat", &["before", "size"], &["sizes"], &[int("axis", 0)])
        .node("Resize", &["x", "", "", "sizes"], &["y"], &[string("mode", "linear")])
        .output("y");
    let text = model.text();
    assert!(text.contains("%size_bind_dims = bind_dims(%size_reshape)"), "{text}");
    assert!(text.contains("-> f32[1, 1, 8, size_size]"), "{text}");
}

/// An input of other integers than shapes are made of is found as well.
#[test]
fn sizes_are_found_in_an_input_of_short_integers() {
    let model = base().input("r", 6, &[N(2)]).node("Cast", &["r"], &["long"], &[int("to", 7)]);
    let model = model.node("Reshape", &["x", "long"], &["y"], &[]).output("y");
    let text = model.text();
    assert!(text.contains("%r: i32[2]") && text.contains("= bind_dims("), "{text}");
}

/// Scales that are computed make extents that are found.
#[test]
fn scales_may_be_computed() {
    let model = model(19)
        .input("x", FLOAT, &[N(4), N(6)])
        .input("s", FLOAT, &[N(2)])
        .node("Resize", &["x", "", "s"], &["y"], &[])
        .output("y");
    let text = model.text();
    assert_eq!(text.matches("bind_dims(").count(), 2, "{text}");
    assert_eq!(text.matches("image.resize1d(").count(), 2, "{text}");
    assert!(text.contains("floor("), "{text}");
}

/// Each axis is sliced by what a list says of it, where axes and steps are computed.
#[test]
fn axes_and_steps_of_a_slice_may_be_computed() {
    let slice = |axes: &str| {
        model(17)
            .input("x", FLOAT, &[N(4), S("n")])
            .input("start", INT64, &[N(1)])
            .input("step", INT64, &[N(1)])
            .input("any", INT64, &[N(1)])
            .ints("end", &[i64::MAX])
            .ints("known", &[1])
            .node("Slice", &["x", "start", "end", axes, "step"], &["y"], &[])
            .output("y")
            .text()
    };
    assert_eq!(slice("known").matches("take(%x").count(), 1);
    let both = slice("any");
    assert_eq!(both.matches("bind_dims(").count(), 2, "{both}");
}
