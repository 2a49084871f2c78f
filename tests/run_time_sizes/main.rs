//! Compiled functions whose sizes only a call can tell, beside the reference evaluator.

#[path = "../support/compiled.rs"]
mod compiled;

mod taken;

use tenon_compiler::diagnostics::Source;
use tenon_compiler::eval::{Evaluator, Tensor, Value};
use tenon_compiler::infer::infer_module;
use tenon_compiler::ir::{Bytes, DType, Module};
use tenon_compiler::text::{NoWeights, parse_module};

fn module(text: &str) -> Module {
    let parsed = parse_module(&compiled::cx(), &Source::new("sizes", text), &mut NoWeights);
    let parsed = parsed.unwrap_or_else(|errors| panic!("{}", errors.render(false)));
    infer_module(&parsed).unwrap_or_else(|errors| panic!("{}", errors[0].1))
}

/// `shape` filled with numbers of which some are zero and some are equal.
fn floats(shape: &[usize]) -> Tensor {
    let count = shape.iter().product::<usize>();
    let number = |at: usize| ((at * 7 + 3) % 11) as f32 - 4.0;
    Tensor::from_vec(shape.to_vec(), (0..count).map(number).collect())
}

fn sizes(numbers: &[i64]) -> Tensor {
    Tensor::from_vec(vec![numbers.len()], numbers.to_vec())
}

fn evaluate(module: &Module, inputs: &[Tensor]) -> Result<Vec<Tensor>, String> {
    let inputs = inputs.iter().cloned().map(Value::Tensor).collect();
    let value = Evaluator::new(module).call("main", inputs).map_err(|error| error.to_string())?;
    let fields = match value {
        Value::Tuple(tuple) => tuple.fields().to_vec(),
        value => vec![value],
    };
    Ok(fields.iter().map(|field| field.to_tensor().expect("a tensor")).collect())
}

/// Compiles a function once, and compares what it gives for each of the inputs.
fn check(text: &str, calls: &[&[Tensor]]) {
    let module = module(text);
    let model = compiled::compile(&module).unwrap_or_else(|error| panic!("{error}"));
    for inputs in calls {
        let expected = evaluate(&module, inputs);
        let found = compiled::run(&model, inputs);
        match (&expected, &found) {
            (Ok(expected), Ok(found)) => {
                let told = |tensors: &[Tensor]| -> Vec<(Vec<usize>, Vec<u8>)> {
                    let parts = tensors.iter();
                    parts.map(|it| (it.shape().to_vec(), it.bytes().to_vec())).collect()
                };
                assert_eq!(told(expected), told(found), "of {inputs:?}");
            }
            _ => panic!("{expected:?} and {found:?} of {inputs:?}"),
        }
    }
}

/// Compiles a function, which refuses these inputs and says so.
fn refuses(text: &str, inputs: &[Tensor], says: &str) {
    let module = module(text);
    let model = compiled::compile(&module).unwrap_or_else(|error| panic!("{error}"));
    let error = compiled::run(&model, inputs).expect_err("it is refused");
    assert!(error.contains(says), "{error}");
}

/// The same as bf16, which holds these numbers.
fn short_floats(shape: &[usize]) -> Tensor {
    let floats = floats(shape);
    let upper = floats.bytes().chunks_exact(4).flat_map(|float| [float[2], float[3]]);
    let bytes = Bytes::new(upper.collect::<Vec<_>>());
    Tensor::new(DType::BF16, shape.to_vec(), bytes).expect("as many bytes as the shape says")
}

/// Each of the pieces that rows of unknown number are cut into has some of them, and none.
#[test]
fn packed_products_take_any_number_of_rows() {
    for (rule, depth) in [("byte_dots", 8), ("tile_dots", 64)] {
        let path = format!("plugins/schedule-cpu/tests/{rule}/rows_of_unknown_number.ir");
        let text = std::fs::read_to_string(path).expect("a fixture");
        let (before, scheduled) = text.split_once("//! expect").expect("two modules");
        let [before, scheduled] = [before, scheduled].map(module);
        for rows in [1, 3, 4, 16, 63, 64, 85, 148] {
            let weights = short_floats(&[2, depth / 2, 16, 2]);
            let inputs = [short_floats(&[rows, depth]), weights];
            let [expected, found] = [&before, &scheduled].map(|module| {
                let results = evaluate(module, &inputs).unwrap_or_else(|error| panic!("{error}"));
                results[0].elements::<f32>().to_vec()
            });
            assert_eq!(expected, found, "{rows} rows by {rule}");
        }
    }
}

/// Bytes of which some are zero and some are large.
fn bytes(dtype: DType, shape: &[usize]) -> Tensor {
    let count = shape.iter().product::<usize>();
    let bytes: Vec<u8> = (0..count).map(|at| (at * 37 % 251) as u8).collect();
    Tensor::new(dtype, shape.to_vec(), Bytes::new(bytes)).expect("as many bytes as the shape says")
}

/// Rows of pixels fill no tile, one and some more, and several.
#[test]
fn convolutions_of_bytes_take_images_of_any_size() {
    let cases = [
        ("images_of_unknown_size", [1, 16], [4, 4, 3, 3, 16, 4]),
        ("groups_in_planes_of_unknown_size", [3, 4], [2, 3, 3, 3, 16, 4]),
    ];
    for (fixture, [blocks, within], weights) in cases {
        let path = format!("plugins/schedule-cpu/tests/byte_conv/{fixture}.ir");
        let text = std::fs::read_to_string(path).expect("a fixture");
        let (before, scheduled) = text.split_once("//! expect").expect("two modules");
        let [before, scheduled] = [before, scheduled].map(module);
        for [height, width] in [[3, 3], [4, 5], [3, 6], [5, 10]] {
            let image = bytes(DType::U8, &[1, blocks, height, width, within]);
            let zero = bytes(DType::U8, &[]);
            let inputs = [image, bytes(DType::I8, &weights), zero];
            let [expected, found] = [&before, &scheduled].map(|module| {
                let results = evaluate(module, &inputs).unwrap_or_else(|error| panic!("{error}"));
                results[0].elements::<i32>().to_vec()
            });
            assert_eq!(expected, found, "{height} by {width} of {fixture}");
        }
    }
}

const TOPK: &str = "fn @main(%x: f32[n, 6], %k: shape[k]) {
  %e = reshape(%x, shape(max(k, n), 6))
  %t = topk(%e, shape(k)) { axis = 0 }
  ret %t
}";

#[test]
fn as_many_of_the_largest_elements_as_a_call_says() {
    let call = |rows, count| [floats(&[rows, 6]), sizes(&[count])];
    let calls = [call(9, 3), call(9, 9), call(4, 0), call(1, 1), call(0, 0), call(700, 90)];
    check(TOPK, &calls.each_ref().map(|call| &call[..]));
    refuses(TOPK, &[floats(&[2, 6]), sizes(&[3])], "do not fit together");
}

#[test]
fn of_fewer_elements_all_are_the_largest() {
    let text = "fn @main(%x: f32[n, 6]) {
  %t = topk(%x, shape(3)) { axis = 0, largest = false }
  ret %t
}";
    check(text, &[&[floats(&[9, 6])], &[floats(&[2, 6])], &[floats(&[0, 6])]]);
}

const NONZERO: &str = "fn @main(%x: f32[n, 6]) {
  %t = nonzero(%x)
  %s: shape[k] = bind_dims(%t.1) { ty = shape[k], most = shape[6*n] }
  %y = dynamic_slice(%t.0, const(i64[2], [0, 0]), shape(2, k))
  %z = add(%y, const(i64[], 2))
  %w = reshape(%z, shape(2*k))
  %v = concatenate((%w, %w))
  ret (%y, %v, %w)
}";

/// What is found decides how much there is; memory for all of it is there before.
#[test]
fn as_many_places_as_elements_are_not_zero() {
    let none = Tensor::from_vec(vec![3, 6], vec![0f32; 18]);
    let all = Tensor::from_vec(vec![2, 6], vec![1f32; 12]);
    check(NONZERO, &[&[floats(&[9, 6])], &[none], &[all], &[floats(&[0, 6])], &[floats(&[40, 6])]]);
}

#[test]
fn a_context_serves_calls_that_find_different_sizes() {
    let model = compiled::compile(&module(NONZERO)).expect("it is compiled");
    let mut context = model.context().expect("there is memory");
    for zeros in [0, 5, 12, 3] {
        let data: Vec<u8> =
            (0..12).flat_map(|at| f32::from(u8::from(at >= zeros)).to_le_bytes()).collect();
        let shape = [2, 6];
        let dtype = model.inputs()[0].dtype;
        let dtype = tenon_compiler::runtime::signature::data_type(dtype).expect("f32 is a type");
        let input = tenon_compiler::runtime::dlpack::TensorBuffer::from_bytes(&data, &shape, dtype);
        let outputs = context.run(&[input.expect("it fits").as_ref()], None).expect("it runs");
        assert_eq!(outputs[0].shape(), [2, 12 - zeros]);
        assert_eq!(outputs[1].shape(), [4 * (12 - zeros)]);
    }
}

/// A function of which a choice asks for what is found in a branch alone, and one within a loop.
#[test]
fn sizes_are_found_in_branches_and_functions() {
    let text = "fn @main(%x: f32[n, 6], %c: bool[]) -> f32[] {
  %y = if %c {
    %t = nonzero(%x)
    %s: shape[k] = bind_dims(%t.1) { ty = shape[k], most = shape[6*n] }
    %p = dynamic_slice(%t.0, const(i64[2], [0, 0]), shape(2, k))
    %i = cast(%p) { dtype = \"f32\" }
    %m = sum(%i)
    ret %m
  } else {
    %z = @half(%x)
    ret %z
  }
  ret %y
}

fn @half(%x: f32[m, 6]) -> f32[] {
  %t = nonzero(%x)
  %s: shape[j] = bind_dims(%t.1) { ty = shape[j], most = shape[6*m] }
  %p = dynamic_slice(%t.0, const(i64[2], [0, 0]), shape(2, j))
  %i = cast(%p) { dtype = \"f32\" }
  %m = mean(%i)
  ret %m
}";
    let flag = |value: bool| Tensor::from_vec_as(DType::BOOL, vec![], vec![u8::from(value)]);
    for rows in [2, 7] {
        check(text, &[&[floats(&[rows, 6]), flag(true)], &[floats(&[rows, 6]), flag(false)]]);
    }
}

#[test]
fn what_was_found_is_carried_by_a_loop() {
    let text = "fn @main(%x: f32[n], %count: i64[1], %trips: i64[]) {
  %dims: shape[k] = bind_dims(%count) { ty = shape[k], most = shape[n] }
  %y: f32[k] = dynamic_slice(%x, const(i64[1], [0]), shape(k))
  %body = fn (%i: i64[], %v: f32[k]) -> (bool[], f32[k]) {
    %w = add(%v, %y)
    ret (const(bool[], true), %w)
  }
  %l: (f32[k],) = loop(%body, %trips, const(bool[], true), (%y,)) { out = (f32[k],) }
  %z = negative(%l.0)
  ret %z
}
";
    let trips = |count: i64| Tensor::from_vec(vec![], vec![count]);
    check(
        text,
        &[
            &[floats(&[5]), sizes(&[3]), trips(2)],
            &[floats(&[9]), sizes(&[9]), trips(0)],
            &[floats(&[4]), sizes(&[0]), trips(3)],
        ],
    );
}

#[test]
fn more_than_was_said_to_be_the_most_is_refused() {
    let text = "fn @main(%x: i64[1]) {
  %s: shape[k] = bind_dims(%x) { ty = shape[k], most = shape[3] }
  %y = arange(shape(k))
  ret %y
}";
    let number = |value: i64| [Tensor::from_vec(vec![1], vec![value])];
    check(text, &[&number(3), &number(0), &number(1)]);
    refuses(text, &number(4), "no size");
    refuses(text, &number(-1), "no size");
}

/// What is known before of either need not say that both are as large: 3 * floordiv(n, 3) of n = 8 is 6, in room for 8.
#[test]
fn a_view_of_what_is_found_is_as_large_as_that() {
    let text = "fn @main(%x: f32[n], %count: i64[1], %like: f32[m]) {
  %s: shape[k] = bind_dims(%count) { most = shape[n], ty = shape[k] }
  %y = dynamic_slice(%x, const(i64[1], [0]), shape(k))
  %z = negative(%y)
  %r = reshape(%z, shape(floordiv(k, m), m))
  %u = abs(%y)
  %v = reshape(%u, shape(floordiv(k, m), m))
  %w = add(%r, %v)
  ret (%r, %w)
}";
    let call = |n, k, m| [floats(&[n]), sizes(&[k]), floats(&[m])];
    let calls = [call(8, 6, 3), call(8, 3, 3), call(8, 0, 3), call(9, 9, 3), call(8, 8, 1)];
    check(text, &calls.each_ref().map(|call| &call[..]));
    refuses(text, &call(8, 7, 3), "must have the elements of");
}

#[test]
fn a_bound_below_zero_lets_no_number_pass() {
    let text = "fn @main(%rows: f32[n, 3], %x: i64[1]) {
  %s: shape[k] = bind_dims(%x) { ty = shape[k], most = shape[n - 1] }
  %t = shape_to_tensor(shape(k))
  %y = add(%t, const(i64[1], [1]))
  ret %y
}";
    let call = |rows: usize, value: i64| [floats(&[rows, 3]), sizes(&[value])];
    check(text, &[&call(3, 2), &call(3, 0), &call(1, 0)]);
    refuses(text, &call(3, 3), "no size");
    refuses(text, &call(0, 0), "no size");
    refuses(text, &call(0, -1), "no size");
}

#[test]
fn nothing_is_written_into_a_tensor_without_elements() {
    // What lies in front of the result is another one, which a place before the first would be in.
    let text = |write: &str| {
        format!(
            "fn @main(%x: f32[n, 5], %first: i64[k, 1], %new: f32[k, 5]) {{
  %at = broadcast_to(%first, shape(k, 5))
  %behind = add(%new, const(f32[], 1))
  %y = {write}
  %z = exp(%y)
  %sum = sum(%y)
  ret (%behind, %z, %sum)
}}"
        )
    };
    let writes = [
        "scatter_elements(%x, %at, %new)",
        "scatter_elements(%x, %at, %new) { reduction = \"add\" }",
        "scatter_nd(%x, %first, %new)",
        "index_add(%x, reshape(%first, shape(k)), %new)",
    ];
    for write in writes {
        let module = module(&text(write));
        let model = compiled::compile(&module).unwrap_or_else(|error| panic!("{error}"));
        for count in [0, 1, 40] {
            let new = floats(&[count, 5]);
            let at = Tensor::from_vec(vec![count, 1], vec![0i64; count]);
            let found = compiled::run(&model, &[floats(&[0, 5]), at, new.clone()]).unwrap();
            let moved: Vec<f32> = new.elements::<f32>().iter().map(|it| it + 1.0).collect();
            assert_eq!(found[0].elements::<f32>().to_vec(), moved, "{write}");
            assert_eq!(found[1].shape(), [0, 5]);
            assert_eq!(found[2].elements::<f32>()[0], 0.0);
        }
    }
}

#[test]
fn nothing_is_taken_from_where_there_is_nothing() {
    let rows = "fn @main(%x: f32[n, 3], %at: i64[k]) {
  %y = take(%x, %at) { axis = 0 }
  ret %y
}";
    let call = |rows: usize, at: &[i64]| [floats(&[rows, 3]), sizes(at)];
    check(rows, &[&call(2, &[1, 0, -2]), &call(2, &[]), &call(0, &[])]);
    refuses(rows, &call(0, &[0]), "do not fit together");
    let columns = "fn @main(%x: f32[n, m]) {
  %y = take(%x, const(i64[], -1)) { axis = 1 }
  ret %y
}";
    check(columns, &[&[floats(&[2, 3])], &[floats(&[0, 3])]]);
    refuses(columns, &[floats(&[2, 0])], "do not fit together");
    let vectors = "fn @main(%x: f32[n, m], %at: i64[k, 2]) {
  %y = gather_nd(%x, %at)
  ret %y
}";
    let at = |count: usize| Tensor::from_vec(vec![count, 2], vec![0i64; 2 * count]);
    check(vectors, &[&[floats(&[2, 3]), at(4)], &[floats(&[0, 3]), at(0)]]);
    refuses(vectors, &[floats(&[2, 0]), at(1)], "do not fit together");
}

const BOXES: &str = "fn @main(%boxes: f32[n, b, 4], %scores: f32[n, 3, b], %most: shape[m]) {
  %sorted = topk(%scores, shape(b))
  %t = vision.suppress(%boxes, %sorted.0, %sorted.1, const(f32[1], 0.5), const(f32[1], 0.25), shape(m))
  %s: shape[k] = bind_dims(%t.1) { ty = shape[k], most = shape[3*n*min(b, m)] }
  %kept = dynamic_slice(%t.0, const(i64[2], [0, 0]), shape(k, 3))
  ret %kept
}";

#[test]
fn boxes_that_overlap_better_ones_are_dropped() {
    let call = |images: usize, count: usize, most: i64| {
        let random = |at: usize| ((at * 2654435761) >> 7) % 1000;
        let numbers = |shape: Vec<usize>| {
            let total = shape.iter().product::<usize>();
            let data = (0..total).map(|at| random(at + 17 * count) as f32 / 1000.0).collect();
            Tensor::from_vec(shape, data)
        };
        [numbers(vec![images, count, 4]), numbers(vec![images, 3, count]), sizes(&[most])]
    };
    let calls = [call(1, 50, 10), call(2, 7, 3), call(1, 1, 1), call(2, 0, 4), call(1, 9, 0)];
    check(BOXES, &calls.each_ref().map(|call| &call[..]));
}

#[test]
fn rows_are_brought_into_order() {
    let text = "fn @main(%x: f32[n, m]) {
  %t = row_order(%x)
  ret %t
}";
    let nan = Tensor::from_vec(vec![5, 1], vec![f32::NAN, 1.0, f32::NAN, -1.0, 1.0]);
    let calls =
        [[floats(&[9, 2])], [floats(&[33, 1])], [floats(&[0, 3])], [floats(&[4, 0])], [nan]];
    check(text, &calls.each_ref().map(|call| &call[..]));
}

fn zeros(shape: &[usize]) -> Tensor {
    Tensor::from_vec(shape.to_vec(), vec![0f32; shape.iter().product()])
}

/// What types leave open is compared when a call tells, before anything is read.
#[test]
fn dimensions_that_only_a_call_can_compare_must_fit() {
    let two = |op: &str, a: &str, b: &str| {
        format!("fn @main(%a: f32[{a}], %b: f32[{b}]) {{\n  ret {op}\n}}")
    };
    type Shapes = [&'static [usize]; 2];
    let cases: [(String, Shapes, Shapes); 6] = [
        (two("matmul(%a, %b)", "m, k", "j, n"), [&[2, 3], &[3, 5]], [&[2, 3], &[4, 5]]),
        (
            two("matmul(%a, %b)", "c, 2, 3", "d, 3, 2"),
            [&[1, 2, 3], &[4, 3, 2]],
            [&[2, 2, 3], &[4, 3, 2]],
        ),
        (two("nn.dense(%a, %b)", "m, k", "n, j"), [&[2, 3], &[5, 3]], [&[2, 4], &[5, 3]]),
        (
            two("concatenate((%a, %b)) { axis = 0 }", "m, k", "n, j"),
            [&[2, 3], &[1, 3]],
            [&[2, 3], &[2, 4]],
        ),
        (
            two("broadcast_to(%a, shape(m, n, 3))", "n, 3", "m, k"),
            [&[4, 3], &[2, 9]],
            [&[0, 3], &[2, 9]],
        ),
        (two("nn.bias_add(%a, %b) { axis = 1 }", "m, n", "k"), [&[2, 3], &[3]], [&[2, 3], &[2]]),
    ];
    for (text, [a, b], [c, d]) in &cases {
        check(text, &[&[floats(a), floats(b)]]);
        if text.contains("broadcast_to") {
            continue;
        }
        let wrong = [zeros(c), zeros(d)];
        refuses(text, &wrong, "do not fit together");
        assert!(evaluate(&module(text), &wrong).is_err(), "{text}");
    }
}

/// Whether a dimension is 1, and then repeated, a call tells as well.
#[test]
fn dimensions_that_may_be_one_are_repeated() {
    let text = "fn @main(%a: f32[m, k], %b: f32[j, n], %c: bool[n]) {
  dataflow {
    %s = add(%a, %b)
    %t = where(%c, %s, %b)
    %u = nn.relu(%t)
  }
  ret (%s, %u)
}";
    let truths = |count: usize| Tensor::from_vec_as(DType::BOOL, vec![count], vec![1u8; count]);
    let call = |a: &[usize], b: &[usize]| [floats(a), floats(b), truths(b[1])];
    let calls = [
        call(&[2, 3], &[2, 3]),
        call(&[1, 3], &[4, 3]),
        call(&[4, 1], &[1, 33]),
        call(&[2, 17], &[2, 1]),
        call(&[1, 1], &[1, 1]),
        call(&[0, 3], &[0, 1]),
    ];
    check(text, &calls.each_ref().map(|call| &call[..]));
    for (a, b) in [([2, 3], [3, 3]), ([2, 3], [2, 2]), ([2, 0], [2, 3])] {
        refuses(text, &call(&a, &b), "do not fit together");
    }
}

/// In a function that is called, in a branch and in a loop, where it depends on what was found there.
#[test]
fn what_must_fit_is_checked_where_it_is_needed() {
    let text = "fn @main(%x: f32[n, 3], %y: f32[k, 3], %c: bool[]) {
  dataflow {
    %r: f32[n, 3] = @both(%x, %y)
  }
  %t = if %c {
    dataflow { %s = add(%x, %y) }
    %t = sum(%s)
    ret %t
  } else {
    %t = sum(%y)
    ret %t
  }
  ret (%r, %t)
}
private fn @both(%x: f32[n, 3], %y: f32[k, 3]) -> f32[n, 3] {
  dataflow {
    %a = sum(%y) { axis = [0] }
    %b = add(%x, %a)
  }
  ret %b
}";
    let truth = |is_true: bool| Tensor::from_vec_as(DType::BOOL, vec![], vec![u8::from(is_true)]);
    let call = |n, k, is_true| [floats(&[n, 3]), floats(&[k, 3]), truth(is_true)];
    let calls = [call(2, 2, true), call(2, 1, true), call(2, 5, false), call(0, 4, false)];
    check(text, &calls.each_ref().map(|call| &call[..]));
    refuses(text, &call(2, 5, true), "do not fit together");
}

/// Numbers are small integers, so no sum is rounded, in whatever order it is made.
#[test]
fn images_of_any_size_are_convolved_in_tiles() {
    let attrs = r#"padding = [1, 1, 1, 1], data_layout = "NCHW16c", kernel_layout = "HWOI16i16o""#;
    let of_two = format!(
        "fn @main(%x: f32[n, 2, h, w, 16], %u: f32[4, 4, 3, 2, 16, 16]) {{
  %c = nn.conv2d_winograd(%x, %u) {{ tile = 2, {attrs} }}
  ret %c
}}"
    );
    let of_four = format!(
        "fn @main(%x: f32[n, 1, h, w, 16]) {{
  %c = nn.conv2d_winograd(%x, const(f32[6, 6, 2, 1, 16, 16], 1.0)) {{ tile = 4, {attrs} }}
  %r = nn.relu(%c)
  ret %r
}}"
    );
    let images = [[1, 1, 1], [1, 7, 7], [2, 16, 16], [3, 5, 33], [0, 4, 4], [1, 70, 9]];
    let image = |[n, h, w]: [usize; 3], blocks| floats(&[n, blocks, h, w, 16]);
    let calls = images.map(|size| [image(size, 2), floats(&[4, 4, 3, 2, 16, 16])]);
    check(&of_two, &calls.each_ref().map(|call| &call[..]));
    let calls = images.map(|size| [image(size, 1)]);
    check(&of_four, &calls.each_ref().map(|call| &call[..]));
}

/// Each begins behind all before it, at a sum of as many sizes: compiled so that this takes no time in powers of them.
#[test]
fn a_hundred_tensors_of_any_sizes_are_put_together() {
    let list = |of: &dyn Fn(usize) -> String| (0..100).map(of).collect::<Vec<_>>().join(", ");
    let params = list(&|number| format!("%x{number}: f32[n{number}]"));
    let parts = list(&|number| format!("%x{number}"));
    let text = format!("fn @main({params}) {{\n  %y = concatenate(({parts}))\n  ret %y\n}}");
    let inputs: Vec<Tensor> = (0..100).map(|number| floats(&[number % 4])).collect();
    check(&text, &[&inputs]);
}
