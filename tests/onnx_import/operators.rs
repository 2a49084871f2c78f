//! What operators become.

use super::*;

fn image() -> Model {
    model(17).input("x", FLOAT, &[N(1), N(2), N(7), N(7)])
}

#[test]
fn a_convolution_adds_its_bias_per_channel() {
    let model = image()
        .floats("w", &[2, 1, 3, 3], &[0.0; 18])
        .floats("b", &[2], &[1.0, 2.0])
        .node(
            "Conv",
            &["x", "w", "b"],
            &["y"],
            &[int("group", 2), ints("strides", &[2, 2]), string("auto_pad", "SAME_UPPER")],
        )
        .output("y");
    assert_eq!(
        model.text(),
        "fn @main(%x: f32[1, 2, 7, 7]) -> f32[1, 2, 4, 4]\n\
         %y_conv2d = nn.conv2d(%x, const(f32[2, 1, 3, 3], 0, \"w\")) { dilation = [1, 1], groups = 2, padding = [1, 1, 1, 1], strides = [2, 2] }\n\
         %y = add(%y_conv2d, const(f32[1, 2, 1, 1], [1, 2], \"b\"))\n\
         ret %y"
    );
}

/// A window of 3 that steps by 2 wants one zero on each side of an odd number of elements, and one behind an even number.
#[test]
fn padding_that_depends_on_an_open_extent_is_computed() {
    let model = model(13)
        .input("x", FLOAT, &[N(1), N(2), S("h"), N(8)])
        .input("w", FLOAT, &[N(4), N(2), N(3), N(3)])
        .node(
            "Conv",
            &["x", "w"],
            &["y"],
            &[ints("strides", &[2, 2]), string("auto_pad", "SAME_UPPER")],
        )
        .output("y");
    let text = model.text();
    for part in [
        "f32[1, 4, floordiv(h + 1, 2), 4]",
        "arange(shape(2*floordiv(h + 1, 2) + 1))",
        "shape(floordiv(floormod(h, 2) + 1, 2))",
        "padding = [0, 0, 0, 1], strides = [2, 2]",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

/// The largest of windows meet what is no larger than anything around an open axis, and means are divided by the part of a window
/// that is not around it.
#[test]
fn poolings_pad_open_extents() {
    let pooled = |op: &str, more: &[Message]| {
        let mut attributes = vec![
            ints("kernel_shape", &[3, 3]),
            ints("strides", &[2, 2]),
            string("auto_pad", "SAME_UPPER"),
        ];
        attributes.extend(more.iter().cloned());
        let model = model(13).input("x", FLOAT, &[N(1), N(2), S("h"), N(8)]);
        model.node(op, &["x"], &["y"], &attributes).output("y").text()
    };
    let text = pooled("MaxPool", &[]);
    for part in ["f32[1, 2, floordiv(h + 1, 2), 4]", "const(f32[], -inf)", "padding = [0, 0, 0, 1]"]
    {
        assert!(text.contains(part), "{part} in {text}");
    }
    let text = pooled("AveragePool", &[]);
    assert_eq!(text.matches("nn.avg_pool2d").count(), 2, "{text}");
    assert!(text.contains("count_include_pad = true") && text.contains("divide"), "{text}");
    let text = pooled("AveragePool", &[int("count_include_pad", 1)]);
    assert_eq!(text.matches("nn.avg_pool2d").count(), 1, "{text}");
}

#[test]
fn automatic_padding_puts_the_odd_one_last_or_first() {
    let pooled = |auto_pad| {
        let attributes = [ints("kernel_shape", &[2, 2]), string("auto_pad", auto_pad)];
        image().node("MaxPool", &["x"], &["y"], &attributes).output("y").text()
    };
    assert!(pooled("SAME_UPPER").contains("padding = [0, 0, 1, 1]"), "{}", pooled("SAME_UPPER"));
    assert!(pooled("SAME_LOWER").contains("padding = [1, 1, 0, 0]"), "{}", pooled("SAME_LOWER"));
    assert!(pooled("VALID").contains("padding = [0, 0, 0, 0]"), "{}", pooled("VALID"));
}

#[test]
fn one_spatial_dimension_is_two() {
    let model = model(17)
        .input("x", FLOAT, &[N(1), N(1), N(8)])
        .floats("w", &[1, 1, 3], &[0.0; 3])
        .node("Conv", &["x", "w"], &["y"], &[ints("pads", &[1, 0])])
        .output("y");
    assert_eq!(
        model.text(),
        "fn @main(%x: f32[1, 1, 8]) -> f32[1, 1, 7]\n\
         %y_reshape = reshape(%x, shape(1, 1, 1, 8))\n\
         %y_conv2d = nn.conv2d(%y_reshape, const(f32[1, 1, 1, 3], [0, 0, 0], \"w\")) { dilation = [1, 1], groups = 1, padding = [0, 1, 0, 0], strides = [1, 1] }\n\
         %y = squeeze(%y_conv2d) { axis = [2] }\n\
         ret %y"
    );
}

#[test]
fn indices_into_a_symbolic_dimension_may_be_negative() {
    let model = model(13)
        .input("x", FLOAT, &[S("n"), N(4)])
        .ints("i", &[0, -1])
        .node("Gather", &["x", "i"], &["y"], &[])
        .output("y");
    assert_eq!(
        model.text(),
        "fn @main(%x: f32[n, 4]) -> f32[2, 4]\n\
         %y = take(%x, const(i64[2], [0, -1], \"i\")) { axis = 0 }\n\
         ret %y"
    );
}

#[test]
fn axes_are_attributes_before_version_13_and_inputs_after() {
    let old = model(11)
        .input("x", FLOAT, &[N(3)])
        .node("Unsqueeze", &["x"], &["y"], &[ints("axes", &[0, 2])])
        .output("y");
    let new = model(13)
        .input("x", FLOAT, &[N(3)])
        .ints("axes", &[0, 2])
        .node("Unsqueeze", &["x", "axes"], &["y"], &[])
        .output("y");
    let text =
        "fn @main(%x: f32[3]) -> f32[1, 3, 1]\n%y = expand_dims(%x) { axis = [0, 2] }\nret %y";
    assert_eq!(old.text(), text);
    assert_eq!(new.text(), text);
}

#[test]
fn softmax_was_over_a_matrix() {
    let softmax = |version, dims: &[D]| {
        let axis = int("axis", 1);
        model(version)
            .input("x", FLOAT, dims)
            .node("Softmax", &["x"], &["y"], &[axis])
            .output("y")
            .text()
    };
    assert_eq!(
        softmax(11, &[S("n"), N(3), N(4)]),
        "fn @main(%x: f32[n, 3, 4]) -> f32[n, 3, 4]\n\
         %y_reshape = reshape(%x, shape(n, 12))\n\
         %y_softmax = nn.softmax(%y_reshape) { axis = -1 }\n\
         %y = reshape(%y_softmax, shape(n, 3, 4))\n\
         ret %y"
    );
    let plain = "%y = nn.softmax(%x) { axis = 1 }\nret %y";
    assert!(softmax(11, &[S("n"), N(3), N(1)]).ends_with(plain));
    assert!(softmax(13, &[S("n"), N(3), N(4)]).ends_with(plain));
}

#[test]
fn a_weight_of_gemm_is_turned_for_dense() {
    let gemm = |attributes: &[Message]| {
        let weight: Vec<f32> = (0..100).map(|x| x as f32).collect();
        model(13)
            .input("x", FLOAT, &[N(1), N(10)])
            .floats("w", &[10, 10], &weight)
            .node("Gemm", &["x", "w"], &["y"], attributes)
            .output("y")
            .text()
    };
    let straight = gemm(&[int("transB", 1)]);
    assert!(straight.contains("%y = nn.dense(%x, const(f32[10, 10], ...))"), "{straight}");
    let turned = gemm(&[float("alpha", 0.5)]);
    let transpose = "%y_transpose = transpose(const(f32[10, 10], ...)) { axes = [1, 0] }";
    assert!(turned.contains(transpose), "{turned}");
    assert!(turned.contains("%y_dense = nn.dense(%x, %y_transpose)"), "{turned}");
    assert!(turned.contains("%y = multiply(%y_dense, const(f32[], 0.5))"), "{turned}");
}

#[test]
fn clip_takes_constants_or_anything() {
    let clip = |model: Model| model.node("Clip", &["x", "", "max"], &["y"], &[]).output("y").text();
    let base = model(13).input("x", FLOAT, &[N(2)]);
    let fixed = clip(base.clone().floats("max", &[], &[6.0]));
    // What is left out bounds what is infinite.
    let least = "min = -3.4028234663852886e38 }";
    assert!(fixed.contains(&format!("%y = clip(%x) {{ max = 6.0, {least}")), "{fixed}");
    let open = clip(base.input("max", FLOAT, &[]));
    assert!(open.contains(&format!("%y_clip = clip(%x) {{ {least}")), "{open}");
    assert!(open.contains("%y = minimum(%y_clip, %max)"), "{open}");
}

#[test]
fn large_constants_of_a_shape_are_not_made() {
    let model = model(9)
        .ints("s", &[1 << 20, 1 << 20])
        .node("ConstantOfShape", &["s"], &["y"], &[])
        .output("y");
    assert_eq!(
        model.text(),
        "fn @main() -> f32[1048576, 1048576]\n\
         %y = full(shape(1048576, 1048576)) { dtype = \"f32\", value = 0.0 }\n\
         ret %y"
    );
}

#[test]
fn split_names_its_parts() {
    let model = model(18)
        .input("x", FLOAT, &[N(7)])
        .node("Split", &["x"], &["a", "b"], &[int("num_outputs", 2)])
        .output("b")
        .output("a");
    assert_eq!(
        model.text(),
        "fn @main(%x: f32[7]) -> (f32[3], f32[4])\n\
         %a_split = split(%x) { axis = 0, indices = [4] }\n\
         %a = %a_split.0\n\
         %b = %a_split.1\n\
         ret (%b, %a)"
    );
}

#[test]
fn the_last_part_of_an_open_extent_may_be_shorter() {
    let model = model(18)
        .input("x", FLOAT, &[S("n")])
        .node("Split", &["x"], &["a", "b"], &[int("num_outputs", 2)])
        .output("a")
        .output("b");
    let text = model.text();
    let first = text.lines().next().unwrap_or_default();
    assert_eq!(
        first,
        "fn @main(%x: f32[n]) -> (f32[floordiv(n + 1, 2)], f32[-1*floordiv(n + 1, 2) + n])"
    );
}

/// No call has an extent that is not what its parts make together.
#[test]
fn equal_parts_of_an_open_extent_make_the_whole() {
    let model = model(13)
        .input("x", FLOAT, &[S("n")])
        .node("Split", &["x"], &["a", "b"], &[])
        .output("a")
        .output("b");
    let text = model.text();
    let whole = "%a_reshape = reshape(%x, shape(2*floordiv(n, 2)))";
    assert_eq!(text.lines().nth(1), Some(whole), "{text}");
}

#[test]
fn a_weight_that_is_also_an_input_is_no_parameter() {
    let model = model(9)
        .input("x", FLOAT, &[N(1)])
        .input("w", FLOAT, &[N(1)])
        .floats("w", &[1], &[2.0])
        .node("Mul", &["x", "w"], &["y"], &[])
        .output("y");
    assert_eq!(
        model.text(),
        "fn @main(%x: f32[1]) -> f32[1]\n%y = multiply(%x, const(f32[1], 2, \"w\"))\nret %y"
    );
}

#[test]
fn names_in_the_model_are_kept_beside() {
    let module = model(13)
        .input("in/0", FLOAT, &[N(1)])
        .node("Relu", &["in/0"], &["out:0"], &[])
        .output("out:0")
        .import(&[])
        .unwrap();
    let text = print_module(&module, &mut WeightsPolicy::elided(4));
    assert!(text.contains("onnx.inputs = [\"in/0\"], onnx.outputs = [\"out:0\"]"), "{text}");
    assert!(text.contains("%out_0: f32[1] = nn.relu(%in_0)"), "{text}");
}

#[test]
fn a_triangle_is_a_mask() {
    let model = model(14)
        .input("x", FLOAT, &[S("n"), N(2), N(2)])
        .node("Trilu", &["x"], &["y"], &[int("upper", 0)])
        .output("y");
    assert_eq!(
        model.text(),
        "fn @main(%x: f32[n, 2, 2]) -> f32[n, 2, 2]\n\
         %y = where(const(bool[2, 2], [true, false, true, true]), %x, const(f32[], 0))\n\
         ret %y"
    );
}

/// Of a matrix of any size places are counted.
#[test]
fn a_triangle_of_an_open_matrix_is_found_by_its_places() {
    let model = model(14)
        .input("x", FLOAT, &[S("n"), S("n")])
        .node("Trilu", &["x"], &["y"], &[int("upper", 0)])
        .output("y");
    assert_eq!(
        model.text(),
        "fn @main(%x: f32[n, n]) -> f32[n, n]\n\
         %y_arange = arange(shape(n))\n\
         %y_arange_1 = arange(shape(n))\n\
         %y_expand_dims = expand_dims(%y_arange) { axis = [1] }\n\
         %y_subtract = subtract(%y_arange_1, %y_expand_dims)\n\
         %y_less_equal = less_equal(%y_subtract, const(i64[], 0))\n\
         %y = where(%y_less_equal, %x, const(f32[], 0))\n\
         ret %y"
    );
}

#[test]
fn a_scale_per_channel_stands_before_the_axes_behind_it() {
    let model = model(13)
        .input("x", FLOAT, &[N(1), N(2), N(4)])
        .floats("scale", &[2], &[0.5, 2.0])
        .node("QuantizeLinear", &["x", "scale"], &["y"], &[])
        .output("y");
    assert_eq!(
        model.text(),
        "fn @main(%x: f32[1, 2, 4]) -> u8[1, 2, 4]\n\
         %y_divide = divide(%x, const(f32[2, 1], [0.5, 2], \"scale\"))\n\
         %y_round = round(%y_divide)\n\
         %y_clip = clip(%y_round) { max = 255.0, min = 0.0 }\n\
         %y = cast(%y_clip) { dtype = \"u8\" }\n\
         ret %y"
    );
}

#[test]
fn a_layer_normalization_without_a_shift_gets_zeros() {
    let model = model(17)
        .input("x", FLOAT, &[S("n"), N(2)])
        .floats("scale", &[2], &[0.5, 2.0])
        .node("LayerNormalization", &["x", "scale"], &["y"], &[])
        .output("y");
    assert_eq!(
        model.text(),
        "fn @main(%x: f32[n, 2]) -> f32[n, 2]\n\
         %y = nn.layer_norm(%x, const(f32[2], [0.5, 2], \"scale\"), const(f32[2], [0, 0])) \
         { axes = [1], epsilon = 9.999999747378752e-6 }\n\
         ret %y"
    );
}

#[test]
fn a_layer_normalization_whose_mean_is_asked_for_is_written_out() {
    let model = model(17)
        .input("x", FLOAT, &[N(3), N(2)])
        .floats("scale", &[2], &[0.5, 2.0])
        .node("LayerNormalization", &["x", "scale"], &["y", "mean"], &[])
        .output("y")
        .output("mean");
    let text = model.text();
    assert!(text.contains("= mean(%x)") && !text.contains("nn.layer_norm"), "{text}");
}

#[test]
fn the_logarithm_of_a_sum_of_exponentials_does_not_overflow() {
    use tenon_compiler::eval::{Evaluator, Tensor, Value};
    let module = model(18)
        .input("x", FLOAT, &[N(4), N(2)])
        .ints("axes", &[1])
        .node("ReduceLogSumExp", &["x", "axes"], &["y"], &[int("keepdims", 0)])
        .output("y")
        .import(&[])
        .unwrap();
    const INF: f32 = f32::INFINITY;
    let x = Tensor::from_vec(vec![4, 2], vec![80.0, 89.0, INF, 1.0, -INF, -INF, -1000.0, -1000.0]);
    let result = Evaluator::new(&module).call("main", vec![Value::Tensor(x)]).unwrap();
    let result = result.to_tensor().unwrap();
    assert_eq!(result.shape(), [4]);
    assert_eq!(result.elements::<f32>()[..], [89.000_12, INF, -INF, -999.306_8]);
}

#[test]
fn powers_are_computed_in_a_type_that_has_all_exponents() {
    let text = |base, exponent| {
        let model = model(15).input("x", base, &[N(2)]).input("y", exponent, &[N(2)]);
        model.node("Pow", &["x", "y"], &["z"], &[]).output("z").text()
    };
    // INT32 is 6, INT64 7.
    assert!(text(6, 7).contains("cast(%x) { dtype = \"i64\" }"), "{}", text(6, 7));
    assert!(text(7, 6).contains("cast(%y) { dtype = \"i64\" }"), "{}", text(7, 6));
    assert!(!text(6, 6).contains("cast"), "{}", text(6, 6));
}

/// The last of the smallest elements along an axis of any size.
#[test]
fn the_last_place_along_an_open_axis_is_counted_from_its_end() {
    let model = model(13)
        .input("x", FLOAT, &[S("n"), N(2)])
        .node("ArgMin", &["x"], &["y"], &[int("select_last_index", 1), int("keepdims", 0)])
        .output("y");
    assert_eq!(
        model.text(),
        "fn @main(%x: f32[n, 2]) -> i64[2]\n\
         %y_strided_slice = strided_slice(%x) { axes = [0], begin = [-1], end = [-9223372036854775808], strides = [-1] }\n\
         %y_shape_to_tensor = shape_to_tensor(shape(n))\n\
         %y_shape_to_tensor_1 = shape_to_tensor(shape(1))\n\
         %y_subtract = subtract(%y_shape_to_tensor, %y_shape_to_tensor_1)\n\
         %y_reshape = reshape(%y_subtract, shape())\n\
         %y_argmin = argmin(%y_strided_slice) { axis = 0, keepdims = false }\n\
         %y = subtract(%y_reshape, %y_argmin)\n\
         ret %y"
    );
}

/// The standard wants an axis of one part; ONNX Runtime takes real signals without it, and exporters write them so.
#[test]
fn a_signal_without_parts_is_real() {
    let of_frames = |dims: &[D]| {
        let model = model(17)
            .input("x", FLOAT, dims)
            .int("step", 5)
            .int("length", 20)
            .node("STFT", &["x", "step", "", "length"], &["y"], &[])
            .output("y");
        let text = model.text();
        text.lines().next().map(|line| line.rsplit("->").next().unwrap_or_default().to_owned())
    };
    assert_eq!(of_frames(&[N(2), N(40)]), of_frames(&[N(2), N(40), N(1)]));
}

/// As numpy has it, whatever the elements are.
#[test]
fn vectors_of_integers_are_rows_and_columns() {
    let (uint8, int8) = (2, 3);
    let of = |a: &[D], b: &[D]| {
        let model = model(17).input("a", uint8, a).input("b", int8, b);
        let text = model.node("MatMulInteger", &["a", "b"], &["y"], &[]).output("y").text();
        let head = text.lines().next().unwrap_or_default().to_owned();
        head.split_once("-> ").map_or(head.clone(), |(_, result)| result.to_owned())
    };
    assert_eq!(of(&[N(4)], &[N(4), N(3)]), "i32[3]");
    assert_eq!(of(&[N(2), N(4)], &[N(4)]), "i32[2]");
    assert_eq!(of(&[N(4)], &[N(4)]), "i32[]");
}
