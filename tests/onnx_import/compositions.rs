//! Operators that the standard defines by others: how ours are put together, and what they do not take.

use super::*;

/// `Attention` in version 25, with queries of these dimensions and keys and values of others.
fn attention(queries: &[D], keys: &[D], inputs: &[&str], attributes: &[Message]) -> Model {
    let all: Vec<&str> = ["q", "k", "v"].iter().chain(inputs).copied().collect();
    model(25)
        .input("q", FLOAT, queries)
        .input("k", FLOAT, keys)
        .input("v", FLOAT, keys)
        .node("Attention", &all, &["y"], attributes)
        .output("y")
}

#[test]
fn attention_without_a_mask_is_two_products() {
    let model = attention(&[S("n"), N(4), S("s"), N(16)], &[S("n"), N(4), S("t"), N(16)], &[], &[]);
    assert_eq!(
        model.text(),
        "fn @main(%q: f32[n, 4, s, 16], %k: f32[n, 4, t, 16], %v: f32[n, 4, t, 16]) -> f32[n, 4, s, 16]\n\
         %y_multiply = multiply(%q, const(f32[], 0.25))\n\
         %y_matmul = matmul(%y_multiply, %k) { transpose_b = true }\n\
         %y_softmax = nn.softmax(%y_matmul) { axis = -1 }\n\
         %y = matmul(%y_softmax, %v)\n\
         ret %y"
    );
}

/// Keys and values are not repeated for the heads that share them.
#[test]
fn heads_that_share_keys_are_rows_of_one_product() {
    let model = attention(&[N(1), N(6), S("s"), N(16)], &[N(1), N(2), S("t"), N(16)], &[], &[]);
    let text = model.text();
    let products: Vec<&str> = text.lines().filter(|line| line.contains("= matmul(")).collect();
    assert_eq!(
        products,
        [
            "%y_matmul = matmul(%y_reshape, %k) { transpose_b = true }",
            "%y_matmul_1 = matmul(%y_reshape_2, %v)",
        ]
    );
    assert!(text.contains("%y_reshape = reshape(%y_multiply, shape(1, 2, 3*s, 16))"), "{text}");
}

/// Queries and keys of any number, and a past of any length: places are counted when they are known.
#[test]
fn attention_to_a_past_of_any_length_may_be_causal() {
    let dims = [S("n"), N(2), S("s"), N(4)];
    let past = [S("n"), N(2), S("p"), N(4)];
    let model = attention(&dims, &dims, &["", "past_k", "past_v"], &[int("is_causal", 1)])
        .input("past_k", FLOAT, &past)
        .input("past_v", FLOAT, &past);
    let text = model.text();
    let steps = ["arange(shape(s))", "shape_to_tensor(shape(p))", "arange(shape(p + s))"];
    assert!(steps.iter().all(|step| text.contains(step)), "{text}");
    assert!(text.contains("-> f32[n, 2, s, 4]\n"), "{text}");
}

#[test]
fn what_attention_does_not_take_is_named() {
    let dims = [N(1), N(2), N(3), N(4)];
    let refused = |model: Model, reason: &str| {
        let error = model.error();
        assert!(error.contains(&format!("Attention (ai.onnx 25): {reason} — once")), "{error}");
    };
    refused(
        attention(&dims, &dims, &["mask"], &[]).input("mask", INT64, &[N(3), N(3)]),
        "a mask of i64",
    );
    refused(attention(&[N(1), S("h"), N(3), N(4)], &dims, &[], &[]), "a symbolic number of heads");
    let old = Model { version: 24, ..attention(&dims, &dims, &[], &[int("left_window_size", 1)]) };
    let error = old.error();
    assert!(
        error.contains("it has an attribute `left_window_size`, but Attention has `is_causal`"),
        "{error}"
    );
}

#[test]
fn attention_that_is_not_in_order_is_no_valid_model() {
    let dims = [N(1), N(2), N(3), N(4)];
    let wrong = |model: Model, reason: &str| {
        let expected = "`m.onnx` is not a valid model: the Attention (ai.onnx 25) that makes `y`: ";
        let error = model.error();
        assert!(error.starts_with(&format!("{expected}{reason}; it is given f32[")), "{error}");
    };
    wrong(
        attention(&dims, &dims, &["", "past"], &[]).input("past", FLOAT, &dims),
        "past keys and past values go together",
    );
    wrong(
        attention(&[N(1), N(3), N(8)], &[N(1), N(3), N(8)], &[], &[]),
        "its attribute `q_num_heads` is missing",
    );
    wrong(
        attention(&dims, &[N(1), N(3), N(3), N(4)], &[], &[]),
        "2 heads of the query for 3 of keys",
    );
    wrong(
        attention(&dims, &dims, &[], &[int("qk_matmul_output_mode", 4)]),
        "its attribute `qk_matmul_output_mode` is 4; allowed is 0 to 3",
    );
    wrong(
        attention(&dims, &dims, &[], &[int("left_window_size", -2)]),
        "its attribute `left_window_size` is -2",
    );
}

fn linear_attention(length: D, attributes: &[Message]) -> Model {
    let dims = [S("n"), length, N(8)];
    let heads = [int("q_num_heads", 2), int("kv_num_heads", 2)];
    let attributes: Vec<Message> = heads.iter().chain(attributes).cloned().collect();
    model(27)
        .input("q", FLOAT, &dims)
        .node("LinearAttention", &["q", "q", "q"], &["y"], &attributes)
        .output("y")
}

#[test]
fn linear_attention_is_written_out_step_by_step() {
    let rule = string("update_rule", "linear");
    let text = linear_attention(N(3), std::slice::from_ref(&rule)).text();
    assert_eq!(text.matches("= matmul(").count(), 3, "{text}");
    let refused = |length, reason: &str| {
        let error = linear_attention(length, std::slice::from_ref(&rule)).error();
        assert!(error.contains(&format!("LinearAttention (ai.onnx 27): {reason}")), "{error}");
    };
    refused(N(65), "a sequence of 65 steps; 1 to 64 are");
    refused(S("t"), "a symbolic sequence length");
    assert_eq!(
        linear_attention(N(3), &[]).error(),
        "`m.onnx` is not a valid model: the LinearAttention (ai.onnx 27) that makes `y`: its `update_rule` \
         and the input `decay` do not fit; it is given f32[n, 3, 8], f32[n, 3, 8], f32[n, 3, 8]"
    );
}

#[test]
fn the_others_name_what_they_do_not_take() {
    let error = |op: &str, dims: &[D], inputs: &[&str], attributes: &[Message]| {
        let mut model = model(28).input("x", FLOAT, dims).int("n", 3).ints("shape", &[2, 2]);
        model = model.int("long", 1 << 40).input("i", INT64, &[S("a")]);
        model = model.node(op, inputs, &["y"], attributes).output("y");
        let error = model.error();
        let text = error.rsplit_once(&format!("{op} (ai.onnx 28): "));
        text.and_then(|(_, text)| text.split_once(" — ")).map_or(error.clone(), |(it, _)| it.into())
    };
    let matrix = [S("a"), S("b")];
    assert_eq!(error("HannWindow", &matrix, &["i"], &[]), "input 1 must be a constant here");
    assert_eq!(error("HannWindow", &matrix, &["long"], &[]), "a window of 1099511627776 numbers");
    let volumes = [N(1), N(1), S("a"), S("b"), S("c")];
    assert_eq!(error("Conv", &volumes, &["x", "x"], &[]), "a symbolic extent of a kernel");
    assert_eq!(
        error("RotaryEmbedding", &[N(1), N(2), N(3), S("d")], &["x", "x", "x"], &[]),
        "a symbolic size of a head"
    );
    assert_eq!(
        error("CausalConvWithState", &[N(1), S("c"), N(3)], &["x", "x"], &[]),
        "a symbolic number of channels"
    );
    let heads = error("AffineGrid", &[N(1), N(2), N(3)], &["x", "i"], &[]);
    assert!(heads.ends_with("input 2 must be a constant here"), "{heads}");
}

/// The right class is found among as many as there are.
#[test]
fn a_loss_is_taken_of_any_number_of_classes() {
    let model = model(22)
        .input("x", FLOAT, &[S("a"), S("b")])
        .input("i", INT64, &[S("a")])
        .node("SoftmaxCrossEntropyLoss", &["x", "i"], &["y"], &[])
        .output("y");
    let text = model.text();
    for part in ["arange(shape(b))", "sum(%y_where) { axis = [1] }"] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

/// A picture in a file is what nothing can be made of.
#[test]
fn pictures_in_files_have_no_rule() {
    let model =
        model(22).input("x", FLOAT, &[N(2)]).node("ImageDecoder", &["x"], &["y"], &[]).output("y");
    let expected = "ImageDecoder (ai.onnx 22) — once: the one that makes `y`";
    assert!(model.error().ends_with(expected), "{}", model.error());
}

/// One product for the steps of all sequences, whose number and length are known when it runs.
#[test]
fn a_recurrent_network_is_a_product_and_its_steps() {
    let text = model(22)
        .input("x", FLOAT, &[S("t"), S("n"), N(3)])
        .input("w", FLOAT, &[N(1), N(8), N(3)])
        .input("r", FLOAT, &[N(1), N(8), N(2)])
        .node("LSTM", &["x", "w", "r"], &["y", "", "c"], &[int("hidden_size", 2)])
        .output("y")
        .output("c")
        .text();
    assert_eq!(
        text,
        "fn @main(%x: f32[t, n, 3], %w: f32[1, 8, 3], %r: f32[1, 8, 2]) -> (f32[t, 1, n, 2], f32[1, n, 2])\n\
         %y_reshape = reshape(%w, shape(8, 3))\n\
         %y_dense = nn.dense(%x, %y_reshape)\n\
         %y_reshape_1 = reshape(%y_dense, shape(t, n, 1, 8))\n\
         %y_transpose = transpose(%r) { axes = [0, 2, 1] }\n\
         %y_full = full(shape(1, n, 2)) { dtype = \"f32\", value = 0.0 }\n\
         %y_full_1 = full(shape(1, n, 2)) { dtype = \"f32\", value = 0.0 }\n\
         %y_lstm_steps = nn.lstm_steps(%y_reshape_1, %y_transpose, %y_full, %y_full_1) { direction = \"forward\", \
         input_forget = false }\n\
         %y = %y_lstm_steps.0\n\
         %c = %y_lstm_steps.2\n\
         ret (%y, %c)"
    );
}

/// A symbolic dimension becomes a dimension, or what a call computes of it: no more than a share that is no smaller.
#[test]
fn what_a_scale_makes_of_a_symbol_is_a_dimension_or_found() {
    let resize = |scale: f32| {
        model(19)
            .input("x", FLOAT, &[N(1), N(1), N(1), S("w")])
            .floats("s", &[4], &[1.0, 1.0, 1.0, scale])
            .node("Resize", &["x", "", "s"], &["y"], &[])
            .output("y")
    };
    assert!(resize(2.0).text().contains("-> f32[1, 1, 1, 2*w]"));
    assert!(resize(0.5).text().contains("-> f32[1, 1, 1, floordiv(w, 2)]"));
    let found = resize(1.5).text();
    assert!(found.contains("most = shape[floordiv(1537*w, 1024) + 1]"), "{found}");
    assert!(found.contains("axis = 3") && found.contains("scale = 1.5"), "{found}");
}

/// The ratio of the axes is kept in whole numbers, of symbols too; the scale that they have in common is a number of the call.
#[test]
fn a_ratio_that_is_kept_makes_dimensions() {
    let resize = |policy: &str| {
        let attrs = [string("keep_aspect_ratio_policy", policy), ints("axes", &[0, 1])];
        model(19)
            .input("x", FLOAT, &[S("h"), N(6)])
            .input("s", INT64, &[N(2)])
            .node("Resize", &["x", "", "", "s"], &["y"], &attrs)
            .output("y")
            .text()
    };
    let smaller = resize("not_larger");
    assert!(smaller.contains("min(") && smaller.contains("minimum("), "{smaller}");
    let larger = resize("not_smaller");
    assert!(larger.contains("max(") && larger.contains("maximum("), "{larger}");
}

/// What is cropped is said by an input that no size follows from.
#[test]
fn a_part_that_is_resized_is_an_argument() {
    let attrs = [string("coordinate_transformation_mode", "tf_crop_and_resize")];
    let text = model(19)
        .input("x", FLOAT, &[N(8)])
        .input("roi", FLOAT, &[N(2)])
        .ints("s", &[4])
        .node("Resize", &["x", "roi", "", "s"], &["y"], &attrs)
        .output("y")
        .text();
    assert!(text.contains("image.resize1d(%x, shape(4), %y_concatenate)"), "{text}");
}

#[test]
fn einsum_is_a_product_of_matrices() {
    let einsum = |equation: &str| {
        model(12)
            .input("a", FLOAT, &[S("n"), N(3), N(4)])
            .input("b", FLOAT, &[S("n"), N(4), N(5)])
            .node("Einsum", &["a", "b"], &["y"], &[string("equation", equation)])
            .output("y")
    };
    assert_eq!(
        einsum("bij, bjk -> bik").text(),
        "fn @main(%a: f32[n, 3, 4], %b: f32[n, 4, 5]) -> f32[n, 3, 5]\n\
         %y = matmul(%a, %b)\n\
         ret %y"
    );
    assert!(einsum("bij,bjk,k").error().contains("has 3 operands, the node 2"));
    assert!(einsum("bij,bjk->bii").error().contains("names an axis of its result twice"));
    assert!(einsum("bij,bjk->bq").error().contains("its result has a label of no operand"));
}
