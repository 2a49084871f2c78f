//! Inputs that are updated in place.

use super::run::{check_at, compile, module};
use crate::io::Outputs;
use crate::runtime::dlpack::{DataType, TensorBuffer};
use crate::runtime::model::Model;

use super::super::LinkForm;

/// A row is put into a cache, and what is read of it after that is the cache as it is then.
const PUT: &str = r#"fn @main(%x: f32[4], %cache: f32[8, 4], %at: i32[1]) {
  %before: f32[8, 4] = builtin.alloc_tensor() { ty = f32[8, 4] }
  %_0 = @twice(%cache, %before)
  %new: f32[8, 4] = builtin.alloc_tensor() { ty = f32[8, 4] }
  %_1 = memory.copy(%cache, %new)
  %_2 = @put(%x, %at, %new)
  %after: f32[8, 4] = builtin.alloc_tensor() { ty = f32[8, 4] }
  %_3 = @twice(%new, %after)
  ret (%before, %new, %after)
}

private prim @put(%x: f32[4], %at: i32[1], out %cache: f32[8, 4]) {
  for %j in 0..4 {
    %cache[min(max(i64(%at[0]), 0), 7), %j] = %x[%j]
  }
}

private prim @twice(%x: f32[8, 4], out %y: f32[8, 4]) {
  for %i in 0..8 {
    for %j in 0..4 {
      %y[%i, %j] = %x[%i, %j] + %x[%i, %j]
    }
  }
}
"#;

fn floats(shape: &[i64], values: &[f32]) -> TensorBuffer {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    TensorBuffer::from_bytes(&bytes, shape, DataType::F32).unwrap()
}

fn values(tensor: &TensorBuffer) -> Vec<f32> {
    tensor.bytes().as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect()
}

fn at(row: i32) -> TensorBuffer {
    TensorBuffer::from_bytes(&row.to_le_bytes(), &[1], DataType::I32).unwrap()
}

#[test]
fn one_buffer_is_input_and_output() {
    let executable = compile(&module(PUT));
    assert_eq!(executable.signature().in_place, [[1, 1]]);
    let model = executable.jit().unwrap();
    let cache = floats(&[8, 4], &[1.0; 32]);
    let mut expected = [1.0; 32];
    let mut state = [cache];
    let mut context = model.context().unwrap();
    for row in [0, 7, 3, 3] {
        let x = floats(&[4], &[row as f32 + 2.0; 4]);
        // Apart, the input stays what it is.
        let mut apart = model.context().unwrap();
        let given = state[0].clone();
        let outputs = apart.run(&[x.as_ref(), given.as_ref(), at(row).as_ref()], None).unwrap();
        let outputs: Vec<Vec<f32>> = outputs.iter().map(values).collect();
        assert_eq!(values(&given), expected);
        let place = state[0].bytes().as_ptr();
        let found = context.run_in_place(&[x.as_ref(), at(row).as_ref()], &mut state, None);
        let found = found.unwrap();
        assert_eq!(
            (values(&found[0]), values(&found[2])),
            (outputs[0].clone(), outputs[2].clone())
        );
        expected[4 * row as usize..][..4].fill(row as f32 + 2.0);
        assert_eq!((values(&state[0]), state[0].bytes().as_ptr()), (expected.to_vec(), place));
        assert_eq!(outputs[1], expected);
    }
    let x = floats(&[4], &[0.0; 4]);
    let error = context.run_in_place(&[x.as_ref()], &mut [], None).unwrap_err().to_string();
    let wanted = "updates 1 inputs in place (`cache`: f32[8, 4]), and 0 buffers are given";
    assert!(error.contains(wanted), "{error}");
    let mut wrong = [floats(&[4, 8], &[0.0; 32])];
    let error = context.run_in_place(&[x.as_ref(), at(0).as_ref()], &mut wrong, None);
    assert!(error.unwrap_err().to_string().contains("f32[8, 4] is expected"));
    assert_eq!(wrong[0].shape(), [4, 8]);
}

/// What the planner finds of a function, as a list of pairs.
fn pairs(from: &str, to: &str) -> Vec<[usize; 2]> {
    let text = PUT.replacen(from, to, 1);
    assert_ne!(text, PUT);
    let executable = check_at(&text, &[&[]]);
    executable.signature().in_place.clone()
}

#[test]
fn what_reads_or_writes_at_the_wrong_time_keeps_buffers_apart() {
    // The input is read behind the copy.
    assert!(pairs("@twice(%new, %after)", "@twice(%cache, %after)").is_empty());
    // The output is written before it.
    let before = "%_1 = memory.copy(%cache, %new)";
    let written = format!("%_4 = @twice(%cache, %new)\n  {before}");
    assert!(pairs(before, &written).is_empty());
    // It is a branch that copies.
    let branch = "%b: f32[8, 4] = if const(bool[], true) {\n    %_1 = memory.copy(%cache, %new)\n    ret %cache\n  } else {\n    ret %cache\n  }";
    assert!(pairs(before, branch).is_empty());
    // A result that is an input as it was given need not be copied either, the last time.
    assert_eq!(pairs("ret (%before, %new, %after)", "ret (%cache, %before, %cache)"), [[1, 2]]);
    assert_eq!(pairs("ret (%before, %new, %after)", "ret (%x, %new)"), [[0, 0], [1, 1]]);
}

#[test]
fn a_c_program_gives_one_buffer_and_others_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("put.so");
    let executable = compile(&module(PUT));
    executable.export(&path, LinkForm::Library, None, Outputs::default()).unwrap();
    let header = std::fs::read_to_string(path.with_extension("h")).unwrap();
    let wanted = "One buffer may be inputs[1], cache, and outputs[1]: it is updated in place.";
    assert!(header.contains(wanted), "{header}");
    assert_eq!(Model::open(&path).unwrap().signature().in_place, [[1, 1]]);
    let code = r#"#include "put.h"
#include <stdio.h>
#define CHECK(cond) do { if (!(cond)) { printf("%s\n", #cond); return 1; } } while (0)
int main(void) {
  static float x[4] = {5, 6, 7, 8}, memory[96], before[32], after[32];
  float *cache = memory;
  int32_t at[1] = {2};
  int64_t of_x[] = {4}, of_cache[] = {8, 4}, one[] = {1};
  DLDataType f32 = PUT_INPUT0_DTYPE, i32 = PUT_INPUT2_DTYPE;
  DLTensor in[] = {{x, {kDLCPU, 0}, 1, f32, of_x, NULL, 0}, {cache, {kDLCPU, 0}, 2, f32, of_cache, NULL, 0},
                   {at, {kDLCPU, 0}, 1, i32, one, NULL, 0}};
  DLTensor out[] = {{before, {kDLCPU, 0}, 2, f32, of_cache, NULL, 0}, {cache, {kDLCPU, 0}, 2, f32, of_cache, NULL, 0},
                    {after, {kDLCPU, 0}, 2, f32, of_cache, NULL, 0}};
  CHECK(put_run(in, out, NULL, NULL) == TENON_OK);
  CHECK(cache[7] == 0 && cache[8] == 5 && cache[11] == 8 && cache[12] == 0 && after[8] == 10 && before[8] == 0);
  out[1].data = memory + 4; /* a part of the input */
  CHECK(put_run(in, out, NULL, NULL) == (TENON_ERROR_ALIAS | 5 << 8));
  out[1].data = memory + 32;
  CHECK(put_run(in, out, NULL, NULL) == TENON_OK && memory[40] == 5);
  out[0].data = cache; /* another output */
  CHECK(put_run(in, out, NULL, NULL) == (TENON_ERROR_ALIAS | 4 << 8));
  out[0].data = memory + 36; /* a part of an output */
  CHECK(put_run(in, out, NULL, NULL) == (TENON_ERROR_ALIAS | 5 << 8));
  out[0].data = memory + 64;
  CHECK(put_run(in, out, NULL, NULL) == TENON_OK);
  return 0;
}
"#;
    super::library::run_c(directory.path(), &path, code, "cc", &["-x", "c", "-std=c11"]);
}
