//! Functions whose shapes each call may choose.

use super::run::{buffers, check_at, check_on, compile, module};
use crate::eval::Tensor;
use crate::runtime::{
    dlpack::{DataType, TensorBuffer, TensorRef},
    model::Model,
};

/// A program that reads rows, and one that makes them.
const ROWS: &str = r#"
prim @twice(%x: f32[n, m], out %y: f32[n, m]) {
  for %i in 0..dim(n) parallel {
    for %j in 0..dim(m) {
      %y[%i * dim(m) + %j] = %x[%i * dim(m) + %j] + %x[%i * dim(m) + %j]
    }
  }
}

prim @spread(%x: f32[n], out %y: f32[n, 2*n + 1]) {
  for %i in 0..dim(n) parallel {
    for %j in 0..dim(2*n + 1) {
      %y[%i * dim(2*n + 1) + %j] = %x[%i]
    }
  }
}"#;

#[test]
fn one_function_serves_all_extents() {
    let text = format!(
        r#"fn @main(%x: f32[n, 3]) {{
  %a: f32[n, 3] = call_tir(@twice, %x) {{ out = f32[n, 3] }}
  %b: f32[n, 3] = call_tir(@twice, %a) {{ out = f32[n, 3] }}
  %c: f32[3*n] = memory.view(%b) {{ ty = f32[3*n] }}
  %d: f32[3*n, 6*n + 1] = call_tir(@spread, %c) {{ out = f32[3*n, 6*n + 1] }}
  ret (%d, %a, %x, %a)
}}{ROWS}"#
    );
    let executable = check_at(&text, &[&[1], &[7], &[197], &[0], &[1]]);
    let signature = executable.signature();
    assert_eq!(signature.workspace_size, None);
    assert_eq!(signature.outputs[0].to_string(), "`output0`: f32[3*n, 6*n + 1]");
}

#[test]
fn shapes_are_tensors_where_programs_read_them() {
    let text = r#"fn @main(%x: f32[n, m]) {
  %s: shape[n, m] = shape(n, m)
  %t: i64[2] = vm.shape_to_tensor(%s)
  %u: i64[1] = vm.shape_to_tensor(shape(2*n + 1))
  %v: i64[2] = call_tir(@plus, %t, %u) { out = i64[2] }
  ret (%v, %t, %u)
}

prim @plus(%x: i64[2], %y: i64[1], out %z: i64[2]) {
  for %i in 0..2 {
    %z[%i] = %x[%i] + %y[0]
  }
}"#;
    check_at(text, &[&[1, 2], &[70, 0], &[0, 3]]);
}

#[test]
fn symbols_are_found_in_expressions() {
    let text = format!(
        r#"fn @main(%x: f32[2*n + 1, m], %y: f32[n, m]) {{
  %a: f32[2*n + 1, m] = call_tir(@twice, %x) {{ out = f32[2*n + 1, m] }}
  %b: f32[n, m] = call_tir(@twice, %y) {{ out = f32[n, m] }}
  ret (%a, %b)
}}{ROWS}"#
    );
    check_at(&text, &[&[3, 4, 1, 4], &[11, 1, 5, 1], &[1, 5, 0, 5]]);
}

#[test]
fn programs_find_their_symbols_in_expressions() {
    check_at(
        r#"fn @main(%x: f32[4*n]) {
  %a: f32[2*n] = call_tir(@halve, %x) { out = f32[2*n] }
  ret %a
}

prim @halve(%x: f32[2*k], out %y: f32[k]) {
  for %i in 0..dim(k) {
    %y[%i] = %x[2 * %i] + %x[2 * %i + 1]
  }
}"#,
        &[&[4], &[40], &[0]],
    );
}

#[test]
fn buffers_of_programs_have_the_size_that_a_call_needs() {
    check_at(
        r#"fn @main(%x: f32[n, m]) {
  %y: f32[n, m] = call_tir(@turn, %x) { out = f32[n, m] }
  ret %y
}

prim @turn(%x: f32[n, m], out %y: f32[n, m]) {
  alloc %t: f32[m, n]
  alloc %fixed: f32[30000]
  alloc %u: f32[n]
  for %i in 0..dim(n) parallel {
    alloc %row: f32[m]
    for %j in 0..dim(m) {
      %row[%j] = %x[%i * dim(m) + %j] + 1.0
    }
    for %j_1 in 0..dim(m) {
      %t[%j_1 * dim(n) + %i] = %row[dim(m - 1) - %j_1]
    }
    %u[%i] = %row[0]
  }
  for %k in 0..30000 {
    %fixed[%k] = 1.0
  }
  for %i_1 in 0..dim(n) parallel {
    for %j_2 in 0..dim(m) {
      %y[%i_1 * dim(m) + %j_2] = %t[%j_2 * dim(n) + %i_1] + %u[%i_1] + %fixed[%i_1]
    }
  }
}"#,
        &[&[1, 1], &[5, 7], &[64, 3], &[2, 1000], &[0, 4]],
    );
}

#[test]
fn large_buffers_in_parallel_loops_are_lent_too() {
    check_at(
        r#"fn @main(%x: f32[5, 20000]) {
  %y: f32[5, 20000] = call_tir(@turn, %x) { out = f32[5, 20000] }
  ret %y
}

prim @turn(%x: f32[5, 20000], out %y: f32[5, 20000]) {
  for %i in 0..5 parallel {
    alloc %row: f32[20000]
    for %j in 0..20000 {
      %row[19999 - %j] = %x[%i * 20000 + %j]
    }
    for %j_1 in 0..20000 {
      %y[%i * 20000 + %j_1] = %row[%j_1]
    }
  }
}"#,
        &[&[]],
    );
}

/// What a run on zeros of these shapes says.
fn refusal(model: &Model, shapes: &[&[i64]]) -> String {
    let buffers: Vec<TensorBuffer> =
        shapes.iter().map(|shape| TensorBuffer::zeros(shape, DataType::F32).unwrap()).collect();
    let inputs: Vec<TensorRef<'_>> = buffers.iter().map(TensorBuffer::as_ref).collect();
    model.run(&inputs, None).map(drop).unwrap_err().to_string()
}

#[test]
fn shapes_that_do_not_fit_are_named() {
    let text = "fn @main(%x: f32[n], %y: f32[n, 2*n], %z: f32[m]) {\n  ret (%x, %z)\n}";
    let model = compile(&module(text)).jit().unwrap();
    let cases: [(&[&[i64]], &[&str]); 4] = [
        (&[&[2], &[3, 6], &[1]], &["`n` is 3 by input `y`: f32[n, 2*n], but 2 by input `x`"]),
        (&[&[3], &[3, 7], &[1]], &["`y`: f32[n, 2*n], and [3, 7] is given"]),
        (&[&[3], &[3], &[1]], &["`y`: f32[n, 2*n] is expected, but f32[3] is given"]),
        (&[&[3], &[3, 6]], &["3 inputs", "2 are given"]),
    ];
    for (shapes, parts) in cases {
        let error = refusal(&model, shapes);
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
    }
}

#[test]
fn what_is_too_large_for_any_memory_is_an_error() {
    let text = "fn @main(%x: f32[n, 0]) {
  %a: f32[n, n, n, n] = builtin.alloc_tensor() { ty = f32[n, n, n, n] }
  ret %a
}";
    let model = compile(&module(text)).jit().unwrap();
    for extent in [1 << 20, 1 << 46] {
        let error = refusal(&model, &[&[extent, 0]]);
        assert!(
            error.contains("more memory than there can be") || error.contains("cannot be"),
            "{error}"
        );
    }
    assert_eq!(
        model.run(&[TensorBuffer::zeros(&[2, 0], DataType::F32).unwrap().as_ref()], None).unwrap()
            [0]
        .shape(),
        [2; 4]
    );
}

#[test]
fn a_context_takes_memory_for_its_largest_run() {
    let text = format!(
        r#"fn @main(%x: f32[n, 4]) {{
  %a: f32[n, 4] = call_tir(@twice, %x) {{ out = f32[n, 4] }}
  %b: f32[n, 4] = call_tir(@twice, %a) {{ out = f32[n, 4] }}
  ret %b
}}{ROWS}"#
    );
    let model = compile(&module(&text)).jit().unwrap();
    let mut context = model.context().unwrap();
    let mut run = |extent: i64| {
        let input = TensorBuffer::zeros(&[extent, 4], DataType::F32).unwrap();
        let outputs = context.run(&[input.as_ref()], None).unwrap();
        assert_eq!(outputs[0].shape(), [extent, 4]);
        outputs[0].bytes().as_ptr()
    };
    let largest = run(400);
    assert!((0..400).all(|extent| run(extent) == largest), "the memory of the largest is kept");
}

#[test]
fn an_empty_input_is_read_as_zeros_and_an_empty_output_is_not_written() {
    // Rows of %x at %y, moved to the nearest that is there; and 1 added to those of %z.
    let text = r#"fn @main(%x: f32[n, 5000], %y: i64[m], %z: f32[k, 3]) {
  %a: f32[m, 5000] = call_tir(@take, %x, %y) { out = f32[m, 5000] }
  %b: f32[k, 3] = call_tir(@mark, %z, %y) { out = f32[k, 3] }
  ret (%a, %b)
}

prim @take(%x: f32[n, 5000], %at: i64[m], out %y: f32[m, 5000]) {
  for %i in 0..dim(m) parallel {
    for %j in 0..5000 {
      %y[%i, %j] = %x[min(max(%at[%i], 0), dim(n - 1)), %j]
    }
  }
}

prim @mark(%z: f32[k, 3], %at: i64[m], out %y: f32[k, 3]) {
  for %i in 0..dim(k) {
    for %j in 0..3 {
      %y[%i, %j] = %z[%i, %j]
    }
  }
  for %i_1 in 0..dim(m) {
    %y[max(min(%at[%i_1], dim(k - 1)), 0), 1] = 1.0
  }
}"#;
    let model = compile(&module(text)).jit().unwrap();
    let run = |shapes: [&[i64]; 3]| {
        let dtypes = [DataType::F32, DataType::I64, DataType::F32];
        let inputs: Vec<TensorBuffer> = shapes
            .iter()
            .zip(dtypes)
            .map(|(shape, dtype)| TensorBuffer::zeros(shape, dtype).unwrap())
            .collect();
        let inputs: Vec<TensorRef<'_>> = inputs.iter().map(TensorBuffer::as_ref).collect();
        model.run(&inputs, None).unwrap()
    };
    for (n, k) in [(0, 0), (0, 2), (3, 0), (3, 2)] {
        let outputs = run([&[n, 5000], &[7], &[k, 3]]);
        assert!(outputs[0].bytes().iter().all(|&byte| byte == 0), "{n}, {k}");
        assert_eq!(outputs[0].shape(), [7, 5000]);
        assert_eq!(outputs[1].shape(), [k, 3]);
    }
}

/// Elements of an input are sizes where the parameter is a shape; a number is one where the function says so.
#[test]
fn sizes_are_elements_of_inputs() {
    let text = r#"fn @main(%x: f32[n], %s: shape[m, k], %t: shape[l]) -> (f32[n, m], i64[k, l], i64[2]) { scalars = ["t"] } {
  %a: f32[n, m] = call_tir(@repeat, %x) { out = f32[n, m] }
  %b: i64[k, l] = call_tir(@count) { out = i64[k, l] }
  %c: i64[2] = vm.shape_to_tensor(%s)
  ret (%a, %b, %c)
}

prim @repeat(%x: f32[n], out %y: f32[n, m]) {
  for %i in 0..dim(n) {
    for %j in 0..dim(m) {
      %y[%i * dim(m) + %j] = %x[%i]
    }
  }
}

prim @count(out %y: i64[a, b]) {
  for %i in 0..dim(a) {
    for %j in 0..dim(b) {
      %y[%i * dim(b) + %j] = %i * 100 + %j
    }
  }
}"#;
    let inputs = |length: usize, [m, k, l]: [i64; 3]| {
        let x = Tensor::from_vec(vec![length], (0..length).map(|at| at as f32).collect());
        vec![x, Tensor::from_vec(vec![2], vec![m, k]), Tensor::scalar(l)]
    };
    let executable = check_on(text, &|_| {
        let sizes = [[1, 1, 1], [3, 2, 7], [0, 5, 1], [64, 0, 0]];
        [1usize, 9, 0].iter().flat_map(|&n| sizes.map(|sizes| inputs(n, sizes))).collect()
    });
    let texts = executable.signature().inputs.iter().map(ToString::to_string);
    assert_eq!(texts.collect::<Vec<_>>(), ["`x`: f32[n]", "`s`: i64[2]", "`t`: i64[]"]);
    let model = executable.jit().unwrap();
    for (sizes, argument) in
        [([-1, 1, 1], "`s`"), ([1, 1, i64::MIN], "`t`"), ([1, 1 << 50, 1], "`s`")]
    {
        let buffers = buffers(&model, &inputs(2, sizes));
        let given: Vec<TensorRef<'_>> = buffers.iter().map(TensorBuffer::as_ref).collect();
        let error = model.run(&given, None).unwrap_err().to_string();
        assert!(error.contains("no size") && error.contains(argument), "{error}");
    }
}
