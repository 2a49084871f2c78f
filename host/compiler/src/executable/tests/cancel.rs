//! Calls that are cancelled.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::super::LinkForm;
use super::entry::PROGRAMS;
use super::run::{compile, module, numbers, run};
use crate::eval::Tensor;
use crate::io::Outputs;
use crate::runtime::dlpack::{DataType, TensorBuffer, TensorRef};
use crate::runtime::functions::Library;
use crate::runtime::model::ModelError;

fn text(main: &str) -> String {
    format!("{main}\n{PROGRAMS}")
}

/// Two programs, one of them in a function that is called.
const TWO: &str = "fn @main(%x: f32[6, 4]) {
  %a: f32[6, 4] = call_tir(@add, %x, %x) { out = f32[6, 4] }
  %b: f32[6, 4] = @inner(%a)
  ret (%a, %b)
}

private fn @inner(%x: f32[6, 4]) -> f32[6, 4] {
  %y: f32[6, 4] = call_tir(@twice, %x) { out = f32[6, 4] }
  ret %y
}
";

#[test]
fn a_call_that_is_cancelled_writes_nothing_more_and_the_next_one_runs() {
    let executable = compile(&module(&text(TWO)));
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("two.so");
    executable.export(&path, LinkForm::Library, None, Outputs::default()).unwrap();
    for library in [executable.load().unwrap(), Library::open(&path).unwrap()] {
        let model = library.main().unwrap();
        let inputs: Vec<Tensor> = model.inputs().iter().map(numbers).collect();
        let expected = run(&model, &inputs, 0);
        let buffers = super::run::buffers(&model, &inputs);
        let given: Vec<TensorRef<'_>> = buffers.iter().map(TensorBuffer::as_ref).collect();
        let (set, unset) = (AtomicBool::new(true), AtomicBool::new(false));
        let mut context = model.context().unwrap();
        let error = context.run_until(&given, None, &set).unwrap_err();
        assert!(matches!(error, ModelError::Cancelled), "{error}");
        assert!(context.outputs().iter().all(|it| it.bytes().iter().all(|&byte| byte == 0)));
        let found = context.run_until(&given, None, &unset).unwrap();
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!(found.bytes(), &expected.bytes()[..]);
        }
    }
}

/// A loop that goes on for ever.
const FOREVER: &str = "fn @main(%x: f32[2], %go: bool[]) {
  %r: (f32[2]) = loop(@body, const(i64[], 9223372036854775807), %go, (%x)) { out = (f32[2]) }
  ret %r.0
}

private fn @body(%i: i64[], %x: f32[2]) -> (bool[], f32[2]) {
  ret (const(bool[], true), %x)
}
";

#[test]
fn a_loop_that_never_ends_is_ended() {
    let executable = compile(&module(FOREVER));
    let model = executable.jit().unwrap();
    let x = TensorBuffer::zeros(&[2], DataType::F32).unwrap();
    let mut go = TensorBuffer::zeros(&[], DataType::new(DataType::BOOL, 8)).unwrap();
    go.bytes_mut().fill(1);
    let cancelled = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let running = scope.spawn(|| {
            let mut context = model.context().unwrap();
            context.run_until(&[x.as_ref(), go.as_ref()], None, &cancelled).map(drop)
        });
        std::thread::sleep(Duration::from_millis(30));
        assert!(!running.is_finished());
        cancelled.store(true, Ordering::Relaxed);
        let error = running.join().unwrap().unwrap_err();
        assert!(matches!(error, ModelError::Cancelled), "{error}");
    });
}

/// What is set while a program runs is seen before the next one.
#[test]
fn a_c_program_cancels_a_call_from_within() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("two.so");
    let executable = compile(&module(&text(TWO)));
    executable.export(&path, LinkForm::Library, None, Outputs::default()).unwrap();
    let code = r#"#include "two.h"
#include <stdio.h>
#define CHECK(cond) do { if (!(cond)) { printf("%s\n", #cond); return 1; } } while (0)
static volatile uint8_t cancelled;
static int serial(void *pool, tenon_task task, void *data, int64_t begin, int64_t end) {
  cancelled = *(uint8_t *)pool;
  return task(data, begin, end);
}
int main(void) {
  float x[24], a[24] = {0}, b[24] = {0};
  for (int i = 0; i < 24; i++) x[i] = 1;
  int64_t shape[] = TWO_INPUT0_SHAPE;
  DLDataType f32 = TWO_INPUT0_DTYPE;
  DLTensor in[] = {{x, {kDLCPU, 0}, 2, f32, shape, NULL, 0}};
  DLTensor out[] = {{a, {kDLCPU, 0}, 2, f32, shape, NULL, 0}, {b, {kDLCPU, 0}, 2, f32, shape, NULL, 0}};
  uint8_t value = 1;
  struct tenon_parallel threads = {&value, 2, serial};
  _Alignas(64) char workspace[4096];
  CHECK(two_workspace_size() <= sizeof workspace);
  CHECK(two_run_until(in, out, workspace, &threads, &cancelled) == TENON_ERROR_CANCELLED);
  CHECK(a[23] == 2 && b[23] == 0);
  value = 0;
  cancelled = 0;
  CHECK(two_run_until(in, out, workspace, &threads, &cancelled) == TENON_OK && b[23] == 4);
  CHECK(tenon_library_info()->functions[0].run_until == two_run_until);
  return 0;
}
"#;
    super::library::run_c(directory.path(), &path, code, "cc", &["-x", "c", "-std=c11"]);
}
