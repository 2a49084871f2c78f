//! Inputs that become longer where they are, in rows that have room.

use super::run::{check_at, compile, module};
use crate::io::Outputs;
use crate::runtime::dlpack::{DataType, TensorBuffer};
use crate::runtime::model::{Model, ModelError};

use super::super::LinkForm;

/// Rows are put behind those that there are, of each of two heads, and all of them are read.
const APPEND: &str = r#"fn @main(%k: f32[2, n, 3], %past: f32[2, p, 3]) {
  %keys: f32[2, n + p, 3] = builtin.alloc_tensor() { ty = f32[2, n + p, 3] }
  %lying: f32[2, room, 3] = memory.room(%keys, %past) { ty = f32[2, room, 3] }
  %_0 = memory.copy(%past, %keys)
  %extents: u8[0, p, n + p] = builtin.alloc_tensor() { ty = u8[0, p, n + p] }
  %_1 = @put(%extents, %k, %lying)
  %sum: f32[2, 3] = builtin.alloc_tensor() { ty = f32[2, 3] }
  %_2 = @sum(%extents, %lying, %sum)
  ret (%sum, %keys)
}

private prim @put(%extents: u8[0, p, t], %k: f32[2, n, 3], out %keys: f32[2, room, 3]) {
  for %i in 0..2 {
    for %j in 0..dim(n) {
      for %l in 0..3 {
        %keys[%i * (3 * dim(room)) + ((%j + dim(p)) * 3 + %l)] = %k[%i * (3 * dim(n)) + (%j * 3 + %l)]
      }
    }
  }
}

private prim @sum(%extents: u8[0, p, t], %keys: f32[2, room, 3], out %sum: f32[2, 3]) {
  for %i in 0..2 {
    for %l in 0..3 {
      %sum[%i * 3 + %l] = 0.0
    }
    for %j in 0..dim(t) {
      for %l_1 in 0..3 {
        %sum[%i * 3 + %l_1] = %sum[%i * 3 + %l_1] + %keys[%i * (3 * dim(room)) + (%j * 3 + %l_1)]
      }
    }
  }
}
"#;

fn floats(shape: &[i64], values: &[f32]) -> TensorBuffer {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    TensorBuffer::from_bytes(&bytes, shape, DataType::F32).unwrap()
}

fn values(tensor: &TensorBuffer) -> Vec<f32> {
    let bytes = tensor.to_vec().unwrap();
    bytes.as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect()
}

#[test]
fn a_cache_becomes_longer_where_it_is() {
    // With buffers of their own, it is copied.
    let executable = check_at(APPEND, &[&[1, 0], &[2, 5], &[0, 3], &[0, 0]]);
    let signature = executable.signature();
    assert_eq!((&*signature.in_place, &*signature.grows), (&[[1, 1]][..], &[[1, 1, 1]][..]));
    let model = executable.jit().unwrap();
    let mut state = [TensorBuffer::with_room(&[2, 0, 3], 1, 9, DataType::F32).unwrap()];
    // What must never be read.
    state[0].bytes_mut().as_chunks_mut().0.fill(1e30f32.to_le_bytes());
    let place = state[0].bytes().as_ptr();
    let mut context = model.context().unwrap();
    let (mut rows, mut next) = ([Vec::new(), Vec::new()], 1.0f32);
    for count in [4, 1, 0, 3, 1] {
        let new: Vec<f32> = (0..6 * count).map(|at| next + at as f32).collect();
        next += new.len() as f32;
        let of_head = new.chunks(3 * count.max(1));
        rows.iter_mut().zip(of_head).for_each(|(rows, new)| rows.extend(new));
        let k = floats(&[2, count as i64, 3], &new);
        let outputs = context.run_in_place(&[k.as_ref()], &mut state, None).unwrap();
        let sum = |row: &Vec<f32>| -> Vec<f32> {
            (0..3).map(|l| row.iter().skip(l).step_by(3).sum()).collect()
        };
        assert_eq!(values(&outputs[0]), rows.iter().flat_map(sum).collect::<Vec<f32>>());
        assert_eq!(values(&state[0]), rows.concat());
        assert_eq!(state[0].bytes().as_ptr(), place);
    }
    assert_eq!(state[0].shape(), [2, 9, 3]);
    // No room is left; nothing has changed.
    let k = floats(&[2, 1, 3], &[0.0; 6]);
    let error = context.run_in_place(&[k.as_ref()], &mut state, None).unwrap_err();
    assert!(error.to_string().contains("room for 9 along axis 1"), "{error}");
    assert_eq!((state[0].shape(), values(&state[0])), (&[2, 9, 3][..], rows.concat()));
    let mut short = [floats(&[2, 1, 3], &[0.0; 6])];
    let error = context.run_in_place(&[k.as_ref()], &mut short, None).unwrap_err();
    assert!(matches!(error, ModelError::NoRoom { axis: 1, .. }), "{error}");
    // Rows with room are taken where there are two buffers as well.
    let outputs = model.run(&[k.as_ref(), short[0].as_ref()], None).unwrap();
    assert_eq!(outputs[1].shape(), [2, 2, 3]);
    let error = model.run(&[k.as_ref(), state[0].as_ref()], None);
    assert_eq!(error.unwrap()[1].shape(), [2, 10, 3], "there is no room in it, so it is dense");
}

#[test]
fn a_c_program_lends_room_by_strides() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("append.so");
    let executable = compile(&module(APPEND));
    executable.export(&path, LinkForm::Library, None, Outputs::default()).unwrap();
    let header = std::fs::read_to_string(path.with_extension("h")).unwrap();
    assert!(header.contains("It becomes longer along axis 1"), "{header}");
    assert_eq!(Model::open(&path).unwrap().signature().grows, [[1, 1, 1]]);
    let code = r#"#include "append.h"
#include <stdio.h>
#define CHECK(cond) do { if (!(cond)) { printf("%s\n", #cond); return 1; } } while (0)
int main(void) {
  static float k[6] = {1, 2, 3, 4, 5, 6}, cache[2 * 4 * 3], other[2 * 4 * 3], sum[6], work[4096];
  int64_t of_k[] = {2, 1, 3}, before[] = {2, 0, 3}, after[] = {2, 1, 3}, of_sum[] = {2, 3}, strides[] = {12, 3, 1};
  DLDataType f32 = APPEND_INPUT0_DTYPE;
  DLTensor in[] = {{k, {kDLCPU, 0}, 3, f32, of_k, NULL, 0}, {cache, {kDLCPU, 0}, 3, f32, before, strides, 0}};
  DLTensor out[] = {{sum, {kDLCPU, 0}, 2, f32, of_sum, NULL, 0}, {cache, {kDLCPU, 0}, 3, f32, after, strides, 0}};
  void *space = (void *)(((uintptr_t)work + 63) / 64 * 64);
  for (int token = 0; token < 4; token++) {
    before[1] = token, after[1] = token + 1;
    CHECK(append_run(in, out, space, NULL) == TENON_OK);
    CHECK(sum[0] == token + 1 && sum[5] == 6 * (token + 1));
    CHECK(cache[3 * token] == 1 && cache[12 + 3 * token] == 4);
  }
  /* Five do not fit: rows of four would be read as rows of five. */
  before[1] = 4, after[1] = 5;
  CHECK(append_run(in, out, space, NULL) == (TENON_ERROR_STRIDES | 4 << 8));
  out[1].strides = NULL;
  CHECK(append_run(in, out, space, NULL) == (TENON_ERROR_ALIAS | 4 << 8));
  /* Another buffer with the same room takes a copy. */
  before[1] = 2, after[1] = 3, out[1].data = other, out[1].strides = strides;
  CHECK(append_run(in, out, space, NULL) == TENON_OK && other[3] == 1 && other[6] == 1 && other[9] == 0 && other[12] == 4);
  /* As much room as the input has, and no other. */
  int64_t wide[] = {15, 3, 1}, odd[] = {13, 3, 1}, small[] = {3, 3, 1}, inner[] = {12, 4, 1};
  out[1].strides = wide;
  CHECK(append_run(in, out, space, NULL) == (TENON_ERROR_STRIDES | 4 << 8));
  out[1].strides = NULL;
  CHECK(append_run(in, out, space, NULL) == (TENON_ERROR_STRIDES | 4 << 8));
  int64_t *wrong[] = {odd, small, inner};
  for (int at = 0; at < 3; at++) {
    in[1].strides = wrong[at];
    CHECK(append_run(in, out, space, NULL) == (TENON_ERROR_STRIDES | 2 << 8));
  }
  /* A part of the input, in its room. */
  in[1].strides = out[1].strides = strides, out[1].data = cache + 9;
  CHECK(append_run(in, out, space, NULL) == (TENON_ERROR_ALIAS | 4 << 8));
  in[1].ndim = 2;
  CHECK(append_run(in, out, space, NULL) == (TENON_ERROR_RANK | 2 << 8));
  return 0;
}
"#;
    super::library::run_c(directory.path(), &path, code, "cc", &["-x", "c", "-std=c11"]);
}

/// What is said of a function that asks for room where there is none to be had.
fn refused(from: &str, to: &str) -> String {
    let text = APPEND.replacen(from, to, 1);
    assert_ne!(text, APPEND);
    let target = crate::target::Target::native().unwrap();
    let error = super::super::Executable::compile(&module(&text), &target, &Default::default());
    error.unwrap_err().to_string()
}

#[test]
fn there_is_room_in_results_that_begin_with_inputs() {
    let behind =
        refused("ret (%sum, %keys)", "%_3 = @sum(%extents, %past, %sum)\n  ret (%sum, %keys)");
    assert!(behind.contains("read behind what it is put into"), "{behind}");
    let own = refused("ret (%sum, %keys)", "ret %sum");
    assert!(own.contains("room in what is no result"), "{own}");
}
