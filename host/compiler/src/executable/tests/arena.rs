//! Functions that take memory while they run.

use super::run::{compile, module};
use crate::eval::Tensor;
use crate::executable::{Executable, LinkForm};
use crate::io::Outputs;
use crate::runtime::dlpack::{TensorBuffer, TensorRef};
use crate::runtime::functions::Library;
use crate::runtime::model::{Model, ModelError};
use crate::target::Target;

/// As many numbers as an element says, and twice these, in memory that a function takes of its own.
const COUNT: &str = "fn @main(%count: i64[1], %c: bool[]) {
  %s: shape[k] = bind_dims(%count) { ty = shape[k] }
  %a: f32[k] = builtin.alloc_tensor() { ty = f32[k] }
  %d: () = @count(%a)
  %b: f32[k] = if %c {
    %t: f32[k] = call_tir(@twice, %a) { out = f32[k] }
    %u: f32[k] = @inner(%t)
    ret %u
  } else {
    ret %a
  }
  ret (%a, %b)
}

private fn @inner(%x: f32[n]) -> f32[n] {
  %t: f32[n] = call_tir(@twice, %x) { out = f32[n] }
  %y: f32[n] = call_tir(@twice, %t) { out = f32[n] }
  ret %y
}

prim @count(out %y: f32[n]) {
  for %i in 0..dim(n) {
    %y[%i] = f32(%i)
  }
}

prim @twice(%x: f32[n], out %y: f32[n]) {
  for %i in 0..dim(n) parallel {
    %y[%i] = %x[%i] + %x[%i]
  }
}
";

fn run(model: &Model, count: i64, flag: bool) -> Result<Vec<Vec<f32>>, ModelError> {
    let count = Tensor::from_vec(vec![1], vec![count]);
    let flag = Tensor::from_vec_as(crate::ir::DType::BOOL, vec![], vec![u8::from(flag)]);
    let buffers = super::run::buffers(model, &[count, flag]);
    let given: Vec<TensorRef<'_>> = buffers.iter().map(TensorBuffer::as_ref).collect();
    let numbers = |output: &TensorBuffer| {
        let parts = output.bytes().chunks_exact(4);
        parts.map(|it| f32::from_le_bytes(it.try_into().unwrap())).collect()
    };
    Ok(model.run(&given, None)?.iter().map(numbers).collect())
}

#[test]
fn outputs_are_as_large_as_a_call_finds() {
    let executable = compile(&module(COUNT));
    let signature = executable.signature();
    assert!(signature.arena);
    assert_eq!((&signature.taken[..], &signature.found[..]), (&[0, 1][..], &[[0, 0], [1, 0]][..]));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("count.so");
    executable.export(&path, LinkForm::Library, None, Outputs::default()).unwrap();
    for library in [executable.load().unwrap(), Library::open(&path).unwrap()] {
        let model = library.main().unwrap();
        for (count, flag, factor) in [(3, true, 8.0), (1000, false, 1.0), (0, true, 8.0)] {
            let numbers = |factor| (0..count).map(|at| at as f32 * factor).collect::<Vec<f32>>();
            let found = run(&model, count, flag).unwrap();
            assert_eq!(found, [numbers(1.0), numbers(factor)]);
        }
        let error = run(&model, -1, true).unwrap_err().to_string();
        assert!(error.contains("no size"), "{error}");
    }
}

#[test]
fn code_for_several_processors_takes_memory() {
    let target = |cpu: &str| Target::parse(&format!("x86_64-unknown-linux-gnu,cpu={cpu}")).unwrap();
    let compiled = ["x86-64-v2", "x86-64"].map(|cpu| {
        let options = super::super::CompileOptions::default();
        Executable::compile(&module(COUNT), &target(cpu), &options).unwrap()
    });
    let executable = Executable::joined(compiled.into()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("count.so");
    executable.export(&path, LinkForm::Library, None, Outputs::default()).unwrap();
    if !cfg!(target_arch = "x86_64") {
        return;
    }
    let libraries = [Library::open(&path), Library::open_for(&path, "x86-64")];
    for library in libraries.map(Result::unwrap) {
        let found = run(&library.main().unwrap(), 2, true).unwrap();
        assert_eq!(found, [vec![0.0, 1.0], vec![0.0, 8.0]]);
    }
}

/// However a call ends, it gives back all that it has taken, but for outputs of one that ends well.
#[test]
fn a_c_program_brings_its_own_memory() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("count.so");
    let executable = compile(&module(COUNT));
    executable.export(&path, LinkForm::Library, None, Outputs::default()).unwrap();
    let code = r#"#include "count.h"
#include <stdio.h>
#define CHECK(cond) do { if (!(cond)) { printf("%s\n", #cond); return 1; } } while (0)
static int held, left;
static void *take(void *context, uint64_t bytes) {
  (void)context;
  if (left-- <= 0) return NULL;
  held++;
  return aligned_alloc(64, (bytes + 63) / 64 * 64);
}
static void give_back(void *context, void *memory) {
  (void)context;
  held--;
  free(memory);
}
int main(void) {
  struct tenon_arena arena = {NULL, take, give_back};
  int64_t count = 5, one[] = {1}, none[] = {0}, first[1], second[1], extents[2];
  uint8_t flag = 1;
  uint64_t bytes = 1;
  DLTensor in[] = {{&count, {kDLCPU, 0}, 1, COUNT_INPUT0_DTYPE, one, NULL, 0},
                   {&flag, {kDLCPU, 0}, 0, COUNT_INPUT1_DTYPE, none, NULL, 0}};
  DLTensor out[] = {{NULL, {kDLCPU, 0}, 1, COUNT_OUTPUT0_DTYPE, first, NULL, 0},
                    {NULL, {kDLCPU, 0}, 1, COUNT_OUTPUT1_DTYPE, second, NULL, 0}};
  CHECK(count_sizes(in, extents, &bytes) == TENON_OK && extents[0] == -1 && extents[1] == -1);
  _Alignas(64) char workspace[4096];
  CHECK(bytes <= sizeof workspace);
  CHECK(count_run(in, out, workspace, NULL) == TENON_ERROR_LIMIT);
  CHECK(count_run_in(in, out, workspace, NULL, NULL, NULL) == TENON_ERROR_LIMIT);
  CHECK(tenon_library_info()->version == 6 && tenon_library_info()->run_in[0] == count_run_in);
  int needed = 0;
  for (;; needed++) {
    left = needed;
    int status = count_run_in(in, out, workspace, NULL, NULL, &arena);
    if (status == TENON_OK) break;
    CHECK(status == TENON_ERROR_LIMIT && held == 0 && !out[0].data);
  }
  CHECK(needed > 2 && held == 2 && first[0] == 5 && second[0] == 5);
  CHECK(((float *)out[0].data)[4] == 4 && ((float *)out[1].data)[4] == 32);
  give_back(NULL, out[0].data);
  give_back(NULL, out[1].data);
  const volatile uint8_t cancelled = 1;
  left = 9;
  CHECK(count_run_in(in, out, workspace, NULL, &cancelled, &arena) == TENON_ERROR_CANCELLED && held == 0);
  return 0;
}
"#;
    super::library::run_c(folder.path(), &path, code, "cc", &["-x", "c", "-std=c11"]);
}
