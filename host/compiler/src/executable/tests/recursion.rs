//! Functions that call themselves.

use crate::eval::Tensor;
use crate::executable::{CompileOptions, Executable};
use crate::runtime::dlpack::{TensorBuffer, TensorRef};
use crate::runtime::model::Model;
use crate::runtime::signature::TensorSpec;
use crate::target::Target;

use super::run::{buffers, check_on, compile, module};

const PROGRAMS: &str = r#"
prim @twice(%x: f32[n], out %y: f32[n]) {
  for %i in 0..dim(n) {
    %y[%i] = %x[%i] + %x[%i]
  }
}

prim @less(%x: i32[], out %y: i32[]) {
  %y[] = %x[] - i32(1)
}

prim @is_left(%x: i32[], out %y: bool[]) {
  %y[] = %x[] > i32(0)
}
"#;

/// It doubles as often as it is told, and keeps a tensor of its own over each call of itself.
const DOUBLED: &str = r#"fn @main(%x: f32[n], %left: i32[]) -> f32[n] {
  %y: f32[n] = @doubled(%x, %left)
  ret %y
}

private fn @doubled(%x: f32[m], %left: i32[]) -> f32[m] { max_depth = 20 } {
  %goes_on: bool[] = call_tir(@is_left, %left) { out = bool[] }
  %y: f32[m] = if %goes_on {
    %less: i32[] = call_tir(@less, %left) { out = i32[] }
    %a: f32[m] = @doubled(%x, %less)
    %b: f32[m] = call_tir(@twice, %a) { out = f32[m] }
    ret %b
  } else {
    ret %x
  }
  ret %y
}
"#;

/// Inputs of some lengths, for each number of calls.
fn given(lengths: &[usize], calls: &[i32]) -> Vec<Vec<Tensor>> {
    let one = |&length: &usize, left: i32| {
        let x = (0..length).map(|at| at as f32 + 1.0).collect();
        vec![Tensor::from_vec(vec![length], x), Tensor::from_vec(vec![], vec![left])]
    };
    lengths.iter().flat_map(|length| calls.iter().map(move |&left| one(length, left))).collect()
}

fn check(functions: &str, lengths: &[usize], calls: &[i32]) -> Executable {
    let runs = |_: &[TensorSpec]| given(lengths, calls);
    check_on(&format!("{functions}\n{PROGRAMS}"), &runs)
}

/// Why a call fails.
fn error(model: &Model, calls: i32) -> String {
    let buffers = buffers(model, &given(&[3], &[calls])[0]);
    let inputs: Vec<TensorRef<'_>> = buffers.iter().map(TensorBuffer::as_ref).collect();
    model.run(&inputs, None).unwrap_err().to_string()
}

#[test]
fn a_function_calls_itself_as_deep_as_it_says() {
    let executable = check(DOUBLED, &[0, 1, 1000], &[-1, 0, 1, 2, 7, 19]);
    let model = executable.jit().unwrap();
    let text = error(&model, 20);
    assert!(text.contains("gone deeper than it may"), "{text}");
    assert!(error(&model, i32::MAX).contains("gone deeper than it may"));
    // The next call is like any other.
    let buffers = buffers(&model, &given(&[3], &[19])[0]);
    let inputs: Vec<TensorRef<'_>> = buffers.iter().map(TensorBuffer::as_ref).collect();
    let outputs = model.run(&inputs, None).unwrap();
    assert_eq!(outputs[0].bytes()[..4], (1f32 * f32::powi(2.0, 19)).to_le_bytes());
}

#[test]
fn a_public_function_calls_itself() {
    let executable = check(&DOUBLED.replace("private fn", "fn"), &[5], &[0, 3]);
    let doubled = executable.load().unwrap().function("doubled").unwrap();
    // The door of the function is a call of its own.
    let buffers = buffers(&doubled, &given(&[1], &[20])[0]);
    let inputs: Vec<TensorRef<'_>> = buffers.iter().map(TensorBuffer::as_ref).collect();
    let outputs = doubled.run(&inputs, None).unwrap();
    assert_eq!(outputs[0].bytes()[..4], f32::powi(2.0, 20).to_le_bytes());
    assert!(error(&doubled, 21).contains("gone deeper than it may"));
}

/// Two that call each other, one of them with a function between; the depth of one is that of both.
const PING: &str = r#"fn @main(%x: f32[n], %left: i32[]) -> f32[n] {
  %y: f32[n] = @ping(%x, %left)
  ret %y
}

private fn @ping(%x: f32[n], %left: i32[]) -> f32[n] {
  %goes_on: bool[] = call_tir(@is_left, %left) { out = bool[] }
  %y: f32[n] = if %goes_on {
    %less: i32[] = call_tir(@less, %left) { out = i32[] }
    %a: f32[n] = @pong(%x, %less)
    ret %a
  } else {
    ret %x
  }
  ret %y
}

private fn @pong(%x: f32[n], %left: i32[]) -> f32[n] { max_depth = 8 } {
  %a: f32[n] = @between(%x)
  %b: f32[n] = @ping(%a, %left)
  %c: f32[n] = @between(%b)
  ret %c
}

private fn @between(%x: f32[n]) -> f32[n] {
  %a: f32[n] = call_tir(@twice, %x) { out = f32[n] }
  %b: f32[n] = call_tir(@twice, %a) { out = f32[n] }
  ret %b
}
"#;

#[test]
fn functions_call_each_other_in_a_circle() {
    let executable = check(PING, &[1, 33], &[0, 1, 2, 3]);
    // The fourth call of each is the eighth in work, and the fifth of the first one more.
    assert!(error(&executable.jit().unwrap(), 4).contains("gone deeper than it may"));
}

#[test]
fn a_depth_is_a_number_of_calls() {
    for depth in ["0", "1025", "\"deep\""] {
        let text = DOUBLED.replace("max_depth = 20", &format!("max_depth = {depth}"));
        let module = module(&format!("{text}\n{PROGRAMS}"));
        let options = CompileOptions { threads: 1, ..CompileOptions::default() };
        let error = Executable::compile(&module, &Target::native().unwrap(), &options);
        let error = error.unwrap_err().to_string();
        assert!(error.contains("`doubled`, its attributes"), "{error}");
        assert!(error.contains("no number from 1 to 1024"), "{error}");
    }
    // Without one there is a depth for most.
    let text = DOUBLED.replace("{ max_depth = 20 } ", "");
    let model = compile(&module(&format!("{text}\n{PROGRAMS}"))).jit().unwrap();
    assert!(error(&model, 64).contains("gone deeper than it may"));
}
