//! Loops, and the memory of what they carry.

use super::run::{buffers, check_on, compile, module};
use crate::eval::{Evaluator, Tensor, Value};
use crate::executable::{CompileOptions, Executable};
use crate::ir::{Bytes, DType};
use crate::runtime::signature::TensorSpec;
use crate::target::Target;

/// `@double` doubles what it carries; `@steps` gives it too, with the number of the trip added; `@below` goes on while the
/// first element is below a hundred.
const BODIES: &str = r#"
private fn @double(%i: i64[], %x: f32[k]) -> (bool[], f32[k]) {
  %y: f32[k] = call_tir(@twice, %x) { out = f32[k] }
  ret (const(bool[], true), %y)
}

private fn @steps(%i: i64[], %x: f32[k], %s: f32[k]) -> (bool[], f32[k], f32[k]) {
  %y: f32[k] = call_tir(@plus, %x, %i) { out = f32[k] }
  %z: f32[k] = call_tir(@sum, %y, %s) { out = f32[k] }
  ret (const(bool[], true), %z, %y)
}

private fn @below(%i: i64[], %x: f32[k]) -> (bool[], f32[k]) {
  %y: f32[k] = call_tir(@twice, %x) { out = f32[k] }
  %b: bool[] = call_tir(@is_below, %y) { out = bool[] }
  ret (%b, %y)
}

prim @twice(%x: f32[n], out %y: f32[n]) {
  for %i in 0..dim(n) {
    %y[%i] = %x[%i] + %x[%i]
  }
}

prim @sum(%x: f32[n], %y: f32[n], out %z: f32[n]) {
  for %i in 0..dim(n) {
    %z[%i] = %x[%i] + %y[%i]
  }
}

prim @plus(%x: f32[n], %i: i64[], out %y: f32[n]) {
  for %j in 0..dim(n) {
    %y[%j] = %x[%j] + f32(%i[])
  }
}

prim @is_below(%x: f32[n], out %b: bool[]) {
  %b[] = %x[0] < 100.0
}
"#;

fn boolean(value: bool) -> Tensor {
    Tensor::new(DType::BOOL, Vec::new(), Bytes::new(vec![value.into()])).unwrap()
}

/// Vectors of `length` numbers, one boolean and one integer for all inputs of these types.
fn inputs(specs: &[TensorSpec], length: usize, go: bool, limit: i64) -> Vec<Tensor> {
    let input = |spec: &TensorSpec| match spec.dtype {
        DType::BOOL => boolean(go),
        DType::I64 => Tensor::scalar(limit),
        _ => Tensor::from_vec(vec![length], (0..length).map(|at| at as f32 + 1.0).collect()),
    };
    specs.iter().map(input).collect()
}

/// Compiles and runs it for several numbers of trips and lengths.
fn check(main: &str, limits: &[i64], lengths: &[usize]) -> Executable {
    check_on(&format!("{main}\n{BODIES}"), &|specs| {
        let runs = limits.iter().flat_map(|&limit| lengths.iter().map(move |&it| (limit, it)));
        runs.flat_map(|(limit, length)| [true, false].map(|go| inputs(specs, length, go, limit)))
            .collect()
    })
}

/// Zero trips, one, and numbers that end in either of two places.
#[test]
fn what_is_carried_comes_out_after_any_number_of_trips() {
    let text = r#"fn @main(%x: f32[n], %m: i64[], %go: bool[]) {
  %r: (f32[n],) = loop(@double, %m, %go, (%x,)) { out = (f32[n],) }
  %s: f32[n] = call_tir(@sum, %r.0, %x) { out = f32[n] }
  ret (%r.0, %s)
}"#;
    let executable = check(text, &[0, 1, 2, 3, 10, -2, i64::MIN], &[1, 4, 100, 0]);
    assert_eq!(executable.signature().workspace_size, None);
}

#[test]
fn a_loop_ends_when_its_body_says_so() {
    let text = r#"fn @main(%x: f32[4], %go: bool[]) {
  %r: (f32[4],) = loop(@below, const(i64[], 9223372036854775807), %go, (%x,)) { out = (f32[4],) }
  ret %r.0
}"#;
    let executable = check(text, &[0], &[4]);
    // The other place of what is carried, the number of the trip, and whether there is another one.
    assert_eq!(executable.signature().workspace_size, Some(192));
}

#[test]
fn each_trip_gives_a_row() {
    let text = r#"fn @main(%x: f32[n], %s: f32[n]) {
  %r: (f32[n], f32[7, n]) = loop(%f, dim(7), const(bool[], true), (%x,)) { out = (f32[n], f32[7, n]) }
  %q: (f32[n], f32[n, n]) = loop(%f, dim(n), const(bool[], true), (%r.0,)) { out = (f32[n], f32[n, n]) }
  ret (%r.1, %r.0, %q.1, %q.0)
}"#
    .replace(") {\n  %r: ", ") {\n  %f: fn(i64[], f32[n]) -> (bool[], f32[n], f32[n]) = make_closure(@steps, %s)\n  %r: ");
    check(&text, &[0], &[1, 3, 64, 0]);
}

#[test]
fn loops_and_choices_stand_in_each_other() {
    let text = r#"fn @main(%x: f32[n], %m: i64[], %go: bool[]) {
  %y: f32[n] = if %go {
    %f: fn(i64[], f32[n]) -> (bool[], f32[n]) = make_closure(@outer, %m, %go, shape(n))
    %r: (f32[n],) = loop(%f, %m, %go, (%x,)) { out = (f32[n],) }
    ret %r.0
  } else {
    ret %x
  }
  ret %y
}

private fn @outer(%i: i64[], %x: f32[k], %m: i64[], %go: bool[], %dims: shape[l]) -> (bool[], f32[k]) {
  %y: f32[k] = if %go {
    %r: (f32[k],) = loop(@double, %i, %go, (%x,)) { out = (f32[k],) }
    %t: i64[1] = vm.shape_to_tensor(%dims)
    %v: i64[] = memory.view(%t) { ty = i64[] }
    %q: f32[k] = call_tir(@plus, %r.0, %v) { out = f32[k] }
    ret %q
  } else {
    ret %x
  }
  ret (%go, %y)
}"#;
    check(text, &[0, 1, 4], &[1, 20]);
}

#[test]
fn many_trips_take_no_memory_of_their_own() {
    let text = r#"fn @main(%x: f32[2], %m: i64[]) {
  %f: fn(i64[], f32[2]) -> (bool[], f32[2], f32[2]) = make_closure(@steps, %x)
  %g: fn(i64[], f32[2]) -> (bool[], f32[2]) = make_closure(@only, %x)
  %r: (f32[2],) = loop(%g, %m, const(bool[], true), (%x,)) { out = (f32[2],) }
  ret %r.0
}

private fn @only(%i: i64[], %x: f32[2], %s: f32[2]) -> (bool[], f32[2]) {
  %r: (bool[], f32[2], f32[2]) = @steps(%i, %x, %s)
  ret (%r.0, %r.1)
}"#;
    check(text, &[10_000], &[2]);
}

/// What it gives stays what it was given, where a body gives its own parameters in another order.
#[test]
fn a_body_may_exchange_what_it_carries() {
    let text = r#"fn @main(%x: f32[n], %y: f32[n], %m: i64[], %go: bool[]) {
  %d: f32[n] = call_tir(@twice, %y) { out = f32[n] }
  %r: (f32[n], f32[n]) = loop(@swap, %m, %go, (%x, %d)) { out = (f32[n], f32[n]) }
  ret %r
}

private fn @swap(%i: i64[], %a: f32[k], %b: f32[k]) -> (bool[], f32[k], f32[k]) {
  ret (const(bool[], true), %b, %a)
}"#;
    check(text, &[0, 1, 2, 5], &[3, 0]);
}

const SHORT: &str = r#"fn @main(%x: f32[4], %m: i64[]) {
  %r: (f32[4], f32[9, 4]) = loop(@short, dim(9), const(bool[], true), (%x,)) { out = (f32[4], f32[9, 4]) }
  ret %r.1
}

private fn @short(%i: i64[], %x: f32[4]) -> (bool[], f32[4], f32[4]) {
  %r: (bool[], f32[4]) = @below(%i, %x)
  ret (%r.0, %r.1, %x)
}"#;

#[test]
fn a_loop_that_ends_before_its_rows_are_made_is_an_error() {
    let module = module(&format!("{SHORT}\n{BODIES}"));
    let model = compile(&module).jit().unwrap();
    let given = inputs(model.inputs(), 4, true, 1);
    let buffers = buffers(&model, &given);
    let inputs: Vec<_> = buffers.iter().map(|buffer| buffer.as_ref()).collect();
    let error = model.run(&inputs, None).unwrap_err().to_string();
    assert!(error.contains("a loop has ended before each trip gave its row"), "{error}");
    let values = given.into_iter().map(Value::Tensor).collect();
    let error = Evaluator::new(&module).call("main", values).unwrap_err().to_string();
    assert!(error.contains("the result of the loop is (f32[4], f32[7, 4])"), "{error}");
}

#[test]
fn loops_that_cannot_be_compiled_are_named() {
    let refuse = |main: &str, words: &[&str]| {
        let module = module(&format!("{main}\n{BODIES}"));
        let options = CompileOptions { threads: 1, ..CompileOptions::default() };
        let target = Target::native().unwrap();
        let error = Executable::compile(&module, &target, &options).unwrap_err().to_string();
        assert!(words.iter().all(|word| error.contains(word)), "{error}");
    };
    refuse(
        "fn @main(%x: f32[4], %m: i64[]) {\n  %f: fn(i64[], f32[4]) -> (bool[], f32[4], f32[4]) = make_closure(@steps, %x)\n  \
         %r: (f32[4], f32[9, 4]) = loop(%f, %m, const(bool[], true), (%x,)) { out = (f32[4], f32[9, 4]) }\n  ret %r\n}",
        &["binding `r`", "a loop that gives a row for each trip", "must follow from the shapes"],
    );
    refuse(
        "fn @main(%x: f32[4], %c: bool[]) {\n  %f: fn(i64[], f32[4]) -> (bool[], f32[4]) = if %c {\n    ret @double\n  } else {\n    ret @below\n  }\n  \
         %r: (f32[4],) = loop(%f, dim(3), const(bool[], true), (%x,)) { out = (f32[4],) }\n  ret %r\n}",
        &["binding `f`", "fn(i64[], f32[4]) -> (bool[], f32[4])"],
    );
}
