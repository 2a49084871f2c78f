//! Symbolic dimensions, and integers that are computed from them.

use super::*;

#[test]
fn a_shape_is_followed_through_arithmetic() {
    // x is split into heads: [batch, length, 12] to [batch, length, 3, 4].
    let model = model(13)
        .input("x", FLOAT, &[S("batch"), S("length"), N(12)])
        .int("0", 0)
        .int("1", 1)
        .ints("axes", &[0])
        .ints("tail", &[3, -1])
        .node("Shape", &["x"], &["s"], &[])
        .node("Gather", &["s", "0"], &["b"], &[])
        .node("Gather", &["s", "1"], &["l"], &[])
        .node("Mul", &["b", "l"], &["bl"], &[])
        .node("Div", &["bl", "l"], &["b2"], &[])
        .node("Unsqueeze", &["b2", "axes"], &["bu"], &[])
        .node("Unsqueeze", &["l", "axes"], &["lu"], &[])
        .node("Concat", &["bu", "lu", "tail"], &["to"], &[int("axis", 0)])
        .node("Reshape", &["x", "to"], &["y"], &[])
        .output("y");
    assert_eq!(
        model.text(),
        "fn @main(%x: f32[batch, length, 12]) -> f32[batch, length, 3, 4]\n\
         %y = reshape(%x, shape(batch, length, 3, 4))\n\
         ret %y"
    );
}

#[test]
fn a_computed_shape_becomes_a_tensor_where_it_is_read_as_one() {
    let model = model(13)
        .input("x", FLOAT, &[S("n"), N(4)])
        .node("Shape", &["x"], &["s"], &[])
        .node("Cast", &["s"], &["y"], &[int("to", FLOAT)])
        .output("y")
        .output("s");
    assert_eq!(
        model.text(),
        "fn @main(%x: f32[n, 4]) -> (f32[2], i64[2])\n\
         %y_shape_to_tensor = shape_to_tensor(shape(n, 4))\n\
         %y = cast(%y_shape_to_tensor) { dtype = \"f32\" }\n\
         ret (%y, %y_shape_to_tensor)"
    );
}

#[test]
fn slices_begin_and_end_at_computed_places() {
    // x without its first row, x without its last m rows, every second of the last m columns.
    let model = model(15)
        .input("x", FLOAT, &[S("n"), N(9)])
        .input("z", FLOAT, &[S("m")])
        .ints("0", &[0])
        .ints("1", &[1])
        .ints("2", &[2])
        .ints("far", &[i64::MAX])
        .node("Shape", &["x"], &["n"], &[int("end", 1)])
        .node("Shape", &["z"], &["m"], &[])
        .node("Neg", &["m"], &["last"], &[])
        .node("Slice", &["x", "1", "n"], &["a"], &[])
        .node("Slice", &["x", "0", "last"], &["b"], &[])
        .node("Slice", &["x", "last", "far", "1", "2"], &["c"], &[])
        .output("a")
        .output("b")
        .output("c");
    let begins_late = "shape(0, min(max(-1*m + 9*min(m, 1), 0), 9))";
    assert_eq!(
        model.text().split_once('\n').map(|(_, text)| text.to_owned()).unwrap_or_default(),
        format!(
            "%a = strided_slice(%x) {{ axes = [0], begin = [1], end = [9223372036854775807], strides = [1] }}\n\
             %b = dynamic_slice(%x, const(i64[2], [0, 0]), \
             shape(min(max(-1*m + min(m, 1)*n, 0), n), 9))\n\
             %c_shape_to_tensor = shape_to_tensor({begins_late})\n\
             %c_dynamic_slice = dynamic_slice(%x, %c_shape_to_tensor, \
             shape(n, -1*min(max(-1*m + 9*min(m, 1), 0), 9) + 9))\n\
             %c = strided_slice(%c_dynamic_slice) {{ axes = [1], begin = [0], end = [9223372036854775807], \
             strides = [2] }}\n\
             ret (%a, %b, %c)"
        )
    );
}

#[test]
fn ranges_are_as_long_as_dimensions_say() {
    let model = model(15)
        .input("x", FLOAT, &[S("n"), S("m")])
        .int("0", 0)
        .int("1", 1)
        .int("-2", -2)
        .node("Shape", &["x"], &["s"], &[])
        .node("Gather", &["s", "0"], &["n"], &[])
        .node("Gather", &["s", "1"], &["m"], &[])
        .node("Sub", &["n", "m"], &["d"], &[])
        .node("Range", &["0", "n", "1"], &["a"], &[])
        .node("Range", &["n", "0", "-2"], &["b"], &[])
        .node("Range", &["d", "n", "1"], &["c"], &[])
        .output("a")
        .output("b")
        .output("c");
    assert_eq!(
        model.text(),
        "fn @main(%x: f32[n, m]) -> (i64[n], i64[floordiv(n + 1, 2)], i64[m])\n\
         %a = arange(shape(n)) { dtype = \"i64\" }\n\
         %b_arange = arange(shape(floordiv(n + 1, 2))) { dtype = \"i64\" }\n\
         %b_multiply = multiply(%b_arange, const(i64[], -2))\n\
         %b_shape_to_tensor = shape_to_tensor(shape(n))\n\
         %b_reshape = reshape(%b_shape_to_tensor, shape())\n\
         %b = add(%b_multiply, %b_reshape)\n\
         %c_arange = arange(shape(m)) { dtype = \"i64\" }\n\
         %c_shape_to_tensor = shape_to_tensor(shape(n))\n\
         %c_shape_to_tensor_1 = shape_to_tensor(shape(m))\n\
         %c_subtract = subtract(%c_shape_to_tensor, %c_shape_to_tensor_1)\n\
         %c_reshape = reshape(%c_subtract, shape())\n\
         %c = add(%c_arange, %c_reshape)\n\
         ret (%a, %b, %c)"
    );
}

#[test]
fn the_shape_of_a_static_tensor_is_a_constant() {
    let model = model(15)
        .input("x", FLOAT, &[N(3), N(4), N(5)])
        .node("Shape", &["x"], &["y"], &[int("start", 1), int("end", -1)])
        .output("y");
    assert_eq!(model.text(), "fn @main(%x: f32[3, 4, 5]) -> i64[1]\nret const(i64[1], 4)");
}

#[test]
fn choices_between_dimensions_are_made() {
    // Expand(x, Where(Equal(wanted, -1), 1, wanted)) as exporters write it.
    let model = model(13)
        .input("x", FLOAT, &[S("n"), N(1)])
        .ints("wanted", &[-1, 5])
        .ints("none", &[-1, -1])
        .ints("ones", &[1, 1])
        .node("Equal", &["wanted", "none"], &["is_none"], &[])
        .node("Where", &["is_none", "ones", "wanted"], &["to"], &[])
        .node("Expand", &["x", "to"], &["y"], &[])
        .output("y");
    assert!(
        model.text().ends_with("%y = broadcast_to(%x, shape(n, 5))\nret %y"),
        "{}",
        model.text()
    );
}

/// Widths of a padding as exporters compute them: up to the next multiple, for the last axis first, and turned around.
#[test]
fn widths_are_turned_around() {
    let model = model(17)
        .input("x", FLOAT, &[N(1), S("h"), S("w")])
        .ints("zero", &[0])
        .ints("pair", &[-1, 2])
        .ints("last", &[-1])
        .ints("first", &[i64::MIN + 1])
        .ints("seven", &[7])
        .node("Shape", &["x"], &["w"], &[int("start", 2)])
        .node("Mod", &["w", "seven"], &["past"], &[])
        .node("Sub", &["seven", "past"], &["left"], &[])
        .node("Mod", &["left", "seven"], &["width"], &[])
        .node(
            "Concat",
            &["zero", "width", "zero", "zero", "zero", "zero"],
            &["flat"],
            &[int("axis", 0)],
        )
        .node("Reshape", &["flat", "pair"], &["pairs"], &[])
        .node("Slice", &["pairs", "last", "first", "zero", "last"], &["turned"], &[])
        .node("Transpose", &["turned"], &["sides"], &[ints("perm", &[1, 0])])
        .node("Reshape", &["sides", "last"], &["pads"], &[])
        .node("Pad", &["x", "pads"], &["y"], &[])
        .output("y");
    let text = model.text();
    assert!(text.starts_with("fn @main(%x: f32[1, h, w]) -> f32[1, h, "), "{text}");
}

#[test]
fn the_least_and_the_largest_of_dimensions_are_dimensions() {
    let model = model(18)
        .input("x", FLOAT, &[S("n"), N(4)])
        .ints("300", &[300])
        .node("Shape", &["x"], &["n"], &[int("end", 1)])
        .node("Concat", &["300", "n"], &["both"], &[int("axis", 0)])
        .node("ReduceMin", &["both"], &["least"], &[int("keepdims", 1)])
        .node("ReduceMax", &["both"], &["most"], &[int("keepdims", 1)])
        .node("Concat", &["least", "most"], &["s"], &[int("axis", 0)])
        .node("ConstantOfShape", &["s"], &["y"], &[])
        .output("y");
    let text = model.text();
    assert!(text.starts_with("fn @main(%x: f32[n, 4]) -> f32[min(n, 300), max(n, 300)]"), "{text}");
}

#[test]
fn a_size_times_a_scale_is_a_size() {
    // As exporters write it: Cast(Floor(Cast(Shape(x)) * scale)).
    let model = model(13)
        .input("x", FLOAT, &[N(1), N(3)])
        .floats("scale", &[2], &[4.0, 1.0])
        .node("Shape", &["x"], &["s"], &[])
        .node("Cast", &["s"], &["f"], &[int("to", FLOAT)])
        .node("Mul", &["f", "scale"], &["scaled"], &[])
        .node("Floor", &["scaled"], &["floor"], &[])
        .node("Cast", &["floor"], &["to"], &[int("to", INT64)])
        .node("Expand", &["x", "to"], &["y"], &[])
        .output("y");
    let end = "%y = broadcast_to(%x, shape(4, 3))\nret %y";
    assert!(model.text().ends_with(end), "{}", model.text());
}

/// As detectors scale what they are given: each extent apart, and both put together as floats.
#[test]
fn sizes_are_put_together_of_numbers_that_are_known() {
    let model = model(17)
        .input("x", FLOAT, &[N(1), N(3), N(8), N(6)])
        .floats("height", &[1], &[20.5])
        .floats("width", &[1], &[15.0])
        .ints("kept", &[1, 3])
        .node("Floor", &["height"], &["floor"], &[])
        .node("Concat", &["floor", "width"], &["both"], &[int("axis", 0)])
        .node("Cast", &["both"], &["sizes"], &[int("to", INT64)])
        .node("Concat", &["kept", "sizes"], &["all"], &[int("axis", 0)])
        .node("Resize", &["x", "", "", "all"], &["y"], &[])
        .output("y");
    let text = model.text();
    assert!(text.starts_with("fn @main(%x: f32[1, 3, 8, 6]) -> f32[1, 3, 20, 15]"), "{text}");
}

#[test]
fn dimensions_get_values_and_anonymous_ones_get_names() {
    let model = model(13)
        .input("x", FLOAT, &[S("batch size"), Unknown, N(2)])
        .node("Relu", &["x"], &["y"], &[])
        .output("y");
    let head = |dims: &[(&str, i64)]| {
        let module = model.import(dims).map_err(|error| error.to_string())?;
        let text = short(&print_module(&module, &mut WeightsPolicy::elided(4)));
        Ok::<_, String>(text.lines().next().unwrap().to_owned())
    };
    assert_eq!(
        head(&[]).unwrap(),
        "fn @main(%x: f32[batch_size, unk_0, 2]) -> f32[batch_size, unk_0, 2]"
    );
    assert_eq!(
        head(&[("batch size", 4), ("unk_0", 3)]).unwrap(),
        "fn @main(%x: f32[4, 3, 2]) -> f32[4, 3, 2]"
    );
    assert_eq!(
        head(&[("n", 4)]).unwrap_err(),
        "`m.onnx`: there is no dimension n; the dimensions are `batch size`, `unk_0`"
    );
    assert_eq!(
        head(&[("unk_0", 0)]).unwrap(),
        "fn @main(%x: f32[batch_size, 0, 2]) -> f32[batch_size, 0, 2]"
    );
    assert_eq!(
        head(&[("unk_0", -1)]).unwrap_err(),
        "`m.onnx`: dimension unk_0 cannot be -1: it must not be negative"
    );
}

#[test]
fn inputs_can_be_given_as_constants() {
    let model = model(13)
        .input("x", FLOAT, &[S("n"), N(6)])
        .input("to", INT64, &[N(3)])
        .node("Reshape", &["x", "to"], &["y"], &[])
        .output("y");
    let text = model.text();
    assert!(
        text.starts_with("fn @main(%x: f32[n, 6], %to: shape[to_0_plus_1 - 1, to_1_plus_1 - 1, "),
        "{text}"
    );
    let file = Mapping::in_memory(Path::new("m.onnx"), model.bytes());
    let tensor =
        |values: Vec<i64>| tenon_compiler::eval::Tensor::from_vec(vec![values.len()], values);
    let import = |name: &str, tensor| {
        let inputs = [(name.to_owned(), tensor)].into();
        import_mapping(
            &tenon_compiler::testing::cx(),
            &file,
            &ImportOptions { inputs, ..ImportOptions::default() },
        )
    };
    let module = import("to", tensor(vec![0, 2, -1])).unwrap().module;
    let text = short(&print_module(&module, &mut WeightsPolicy::elided(4)));
    assert_eq!(text.lines().next().unwrap(), "fn @main(%x: f32[n, 6]) -> f32[n, 2, 3]");
    assert_eq!(
        import("to", tensor(vec![0, 2])).unwrap_err().to_string(),
        "`m.onnx`: the input `to` is declared as i64[3], but its value is i64[2]"
    );
    assert_eq!(
        import("z", tensor(vec![0, 2])).unwrap_err().to_string(),
        "`m.onnx`: there is no input z; the inputs are `x`, `to`"
    );
}

/// Where it begins at the last element or at a place from the beginning; another place from the end may lie before the first element.
#[test]
fn a_slice_may_go_backwards_along_a_symbol() {
    let slice = |start: i64| {
        model(17)
            .input("x", FLOAT, &[S("n")])
            .ints("a", &[start])
            .ints("b", &[i64::MIN])
            .ints("c", &[0])
            .ints("d", &[-1])
            .node("Slice", &["x", "a", "b", "c", "d"], &["y"], &[])
            .output("y")
    };
    assert!(slice(-1).text().contains("-> f32[n]"));
    assert!(slice(5).text().contains("-> f32[min(n, 6)]"), "{}", slice(5).text());
    let error = slice(-2).error();
    assert!(error.contains("a slice backwards from place -2 of the extent `n`"), "{error}");
}

/// What a size leaves of a tensor that may be divided by anything is an extent, and so no -1.
#[test]
fn an_extent_that_is_left_over_is_not_below_zero() {
    let model = model(18)
        .input("x", FLOAT, &[S("b"), S("s"), N(64)])
        .ints("eight", &[8])
        .ints("rest", &[-1])
        .node("Shape", &["x"], &["b"], &[int("end", 1)])
        .node("Shape", &["x"], &["s"], &[int("start", 1), int("end", 2)])
        .node("Div", &["s", "eight"], &["eighth"], &[])
        .node("Concat", &["b", "eighth", "eight", "rest"], &["to"], &[int("axis", 0)])
        .node("Reshape", &["x", "to"], &["y"], &[])
        .node("Shape", &["y"], &["left"], &[int("start", 3)])
        .node("Equal", &["left", "rest"], &["q"], &[])
        .output("q");
    assert!(model.text().ends_with("ret const(bool[1], false)"), "{}", model.text());
}

/// Places that take much to compute are bound to symbols.
#[test]
fn slices_between_long_expressions_have_names() {
    let mut model = model(18)
        .input("x", FLOAT, &[S("n"), N(4)])
        .input("z", FLOAT, &[S("m"), N(4)])
        .ints("one", &[1])
        .ints("two", &[2])
        .ints("three", &[3])
        .ints("zero", &[0])
        .node("Shape", &["x"], &["n0"], &[int("end", 1)])
        .node("Shape", &["z"], &["m0"], &[int("end", 1)]);
    const STEPS: usize = 7;
    for (dim, step) in ["n", "m"].iter().flat_map(|dim| (0..STEPS).map(move |step| (dim, step))) {
        let [a, b, c, next] = [
            format!("{dim}{step}"),
            format!("{dim}_b{step}"),
            format!("{dim}_c{step}"),
            format!("{dim}{}", step + 1),
        ];
        model = model
            .node("Div", &[&a, "three"], &[&b], &[])
            .node("Mul", &[&b, "two"], &[&c], &[])
            .node("Add", &[&c, "one"], &[&next], &[]);
    }
    let [first, last] = [format!("n{STEPS}"), format!("m{STEPS}")];
    let text = model.node("Slice", &["x", &first, &last, "zero"], &["y"], &[]).output("y").text();
    assert!(text.contains("bind_dims"), "{text}");
}
