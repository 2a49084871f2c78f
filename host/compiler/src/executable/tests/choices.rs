//! Choices, and the memory of their branches.

use super::run::check_on;
use crate::eval::{Evaluator, Tensor, Value};
use crate::executable::Executable;
use crate::ir::{Bytes, DType};
use crate::runtime::signature::TensorSpec;

/// Programs for tensors of any length.
const PROGRAMS: &str = r#"
prim @twice(%x: f32[n], out %y: f32[n]) {
  for %i in 0..dim(n) {
    %y[%i] = %x[%i] + %x[%i]
  }
}

prim @less(%x: f32[n], out %y: f32[n]) {
  for %i in 0..dim(n) {
    %y[%i] = %x[%i] - 1.0
  }
}

prim @is_positive(%x: f32[n], out %y: bool[]) {
  %y[] = false
  for %i in 0..dim(n) {
    if %x[%i] > 0.0 {
      %y[] = true
    }
  }
}
"#;

fn boolean(value: bool) -> Tensor {
    Tensor::new(DType::BOOL, Vec::new(), Bytes::new(vec![value.into()])).unwrap()
}

/// Compiles and runs it with each combination of the booleans among the inputs, on vectors of `length` numbers.
fn check(main: &str, length: usize) -> Executable {
    check_with(&format!("{main}\n{PROGRAMS}"), length)
}

/// The same with programs in the text.
pub(super) fn check_with(text: &str, length: usize) -> Executable {
    let runs = |specs: &[TensorSpec]| {
        let booleans = specs.iter().filter(|spec| spec.dtype.is_bool()).count();
        (0..1usize << booleans)
            .map(|number| {
                let mut bits = (0..booleans).map(|bit| number >> bit & 1 == 1);
                let input = |spec: &TensorSpec| match spec.dtype.is_bool() {
                    true => boolean(bits.next().unwrap()),
                    false => {
                        let values = (0..length).map(|at| at as f32 - 3.5).collect();
                        Tensor::from_vec(vec![length], values)
                    }
                };
                specs.iter().map(input).collect()
            })
            .collect()
    };
    check_on(text, &runs)
}

#[test]
fn one_branch_runs() {
    let executable = check(
        r#"fn @main(%c: bool[], %x: f32[8]) {
  %y: f32[8] = if %c {
    %a: f32[8] = call_tir(@twice, %x) { out = f32[8] }
    %b: f32[8] = call_tir(@less, %a) { out = f32[8] }
    ret %b
  } else {
    ret %x
  }
  ret %y
}"#,
        8,
    );
    // `%b` is made where the caller wants it; `%a` alone has memory.
    assert_eq!(executable.signature().workspace_size, Some(64));
}

#[test]
fn branches_share_memory() {
    let executable = check(
        r#"fn @main(%c: bool[], %d: bool[], %x: f32[1000]) {
  %y: (f32[1000], f32[1000]) = if %c {
    %a: f32[1000] = call_tir(@twice, %x) { out = f32[1000] }
    %z: (f32[1000], f32[1000]) = if %d {
      %b: f32[1000] = call_tir(@less, %a) { out = f32[1000] }
      %e: f32[1000] = call_tir(@less, %b) { out = f32[1000] }
      ret (%e, %a)
    } else {
      %b_1: f32[1000] = call_tir(@twice, %a) { out = f32[1000] }
      ret (%x, %b_1)
    }
    ret %z
  } else {
    %a_1: f32[1000] = call_tir(@less, %x) { out = f32[1000] }
    %b_2: f32[1000] = call_tir(@less, %a_1) { out = f32[1000] }
    ret (%a_1, %b_2)
  }
  %r: f32[1000] = call_tir(@twice, %y.0) { out = f32[1000] }
  ret (%r, %y.1, const(f32[8], 1))
}"#,
        1000,
    );
    // What both give, and of the longer branch what it and the one in it make.
    let bytes = executable.signature().workspace_size.unwrap();
    assert_eq!(bytes, 3 * 4032, "{bytes}");
}

#[test]
fn a_condition_is_computed() {
    let text = r#"fn @main(%x: f32[n]) {
  %c: bool[] = call_tir(@is_positive, %x) { out = bool[] }
  %y: f32[n] = if %c {
    ret %x
  } else {
    %a: f32[n] = call_tir(@twice, %x) { out = f32[n] }
    ret %a
  }
  %d: bool[] = call_tir(@is_positive, %y) { out = bool[] }
  %z: (f32[n], f32[n]) = if %d {
    %b: f32[n] = call_tir(@less, %y) { out = f32[n] }
    ret (%b, %y)
  } else {
    ret (%y, %b)
  }
  ret (%z.0, %z.1, %y)
}"#
    .replace("ret (%y, %b)", "ret (%y, %x)");
    for length in [0, 1, 3, 200] {
        check(&text, length);
    }
}

/// A choice in a choice in a choice, and so on.
#[test]
fn choices_nest_deeply() {
    const DEPTH: usize = 3000;
    let mut text = String::from("fn @main(%c: bool[], %x: f32[4]) {\n");
    for level in 0..DEPTH {
        text.push_str(&format!("  %y_{level}: f32[4] = if %c {{\n"));
    }
    text.push_str("  %a: f32[4] = call_tir(@twice, %x) { out = f32[4] }\n  ret %a\n");
    for level in (0..DEPTH).rev() {
        text.push_str(&format!("  }} else {{\n  ret %x\n  }}\n  ret %y_{level}\n"));
    }
    text.push('}');
    let executable = check(&text, 4);
    assert_eq!(executable.signature().workspace_size, Some(0));
}

/// The call ends where something is not as it is expected, in a branch too.
#[test]
fn what_is_not_expected_is_an_error() {
    let text = r#"fn @main(%c: bool[], %d: bool[], %x: f32[4]) {
  %z: f32[4] = if %c {
    %e: () = expect(%d)
    %a: f32[4] = call_tir(@twice, %x) { out = f32[4] }
    ret %a
  } else {
    ret %x
  }
  ret %z
}"#;
    let module = super::run::module(&format!("{text}\n{PROGRAMS}"));
    let model = super::run::compile(&module).jit().unwrap();
    let result = |c: bool, d: bool| {
        let x = Tensor::from_vec(vec![4], vec![1f32; 4]);
        let values = [boolean(c), boolean(d), x];
        let buffers = super::run::buffers(&model, &values);
        let inputs: Vec<_> = buffers.iter().map(|buffer| buffer.as_ref()).collect();
        let compiled = model.run(&inputs, None).map(drop).map_err(|error| error.to_string());
        let values = values.into_iter().map(Value::Tensor).collect();
        let evaluated = Evaluator::new(&module).call("main", values);
        assert_eq!(compiled.is_ok(), evaluated.is_ok());
        compiled
    };
    assert!(result(false, false).is_ok() && result(true, true).is_ok());
    let error = result(true, false).unwrap_err();
    assert!(error.contains("none that it is made for"), "{error}");
}

/// What a branch needs of the extents is looked at when it runs.
#[test]
fn a_branch_that_does_not_run_asks_for_nothing() {
    let text = r#"fn @main(%c: bool[], %x: f32[n], %y: f32[m]) {
  %z: f32[n] = if %c {
    %a: f32[n] = call_tir(@twice, %y) { out = f32[n] }
    ret %a
  } else {
    ret %x
  }
  ret %z
}"#;
    let module = super::run::module(&format!("{text}\n{PROGRAMS}"));
    let model = super::run::compile(&module).jit().unwrap();
    let result = |cond: bool| {
        let [x, y] = [3usize, 4].map(|length| Tensor::from_vec(vec![length], vec![1f32; length]));
        let buffers = super::run::buffers(&model, &[boolean(cond), x, y]);
        let inputs: Vec<_> = buffers.iter().map(|buffer| buffer.as_ref()).collect();
        model.run(&inputs, None).map(|outputs| outputs[0].shape().to_vec())
    };
    assert_eq!(result(false).unwrap(), [3]);
    let error = result(true).unwrap_err().to_string();
    assert!(error.contains("the shapes of the inputs do not fit together"), "{error}");
}
