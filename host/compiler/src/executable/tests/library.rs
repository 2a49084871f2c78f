//! Libraries: exported, opened again, and called from C.

use std::path::Path;
use std::process::Command;

use crate::eval::Tensor;
use crate::io::{Array, NpyType, Outputs};
use crate::runtime::{
    dlpack::{DataType, TensorBuffer},
    functions::Library,
    model::{Model, ModelError},
    signature::Signature,
    status::Failure,
};

use super::super::{Executable, LinkForm, prefix_of};
use super::run::{compile, module, numbers, reference, run};

/// Two inputs, one of them with a name that C does not like; a constant; two outputs.
const MODEL: &str = r#"module { "onnx.inputs" = ["data:0", "int"], "onnx.outputs" = ["added", "whole"] }

fn @main(%x: f32[6, 4], %n: i32[4]) {
  %a: f32[6, 4] = call_tir(@add, %x, const(f32[4], [1, 10, 100, 1000]), %n) { out = f32[6, 4] }
  %b: f32[6, 4] = call_tir(@add, %a, const(f32[4], [1, 10, 100, 1000]), %n) { out = f32[6, 4] }
  %c: i32[6, 4] = call_tir(@whole, %b) { out = i32[6, 4] }
  ret (%b, %c)
}

prim @add(%x: f32[6, 4], %y: f32[4], %n: i32[4], out %z: f32[6, 4]) {
  for %i in 0..6 parallel {
    for %j in 0..4 {
      %z[%i, %j] = %x[%i, %j] + %y[%j] * f32(%n[%j])
    }
  }
}

prim @whole(%x: f32[6, 4], out %z: i32[6, 4]) {
  for %i in 0..6 {
    for %j in 0..4 {
      %z[%i, %j] = i32(%x[%i, %j])
    }
  }
}
"#;

fn exported(directory: &Path) -> (Executable, std::path::PathBuf) {
    let executable = compile(&module(MODEL));
    let path = directory.join("lib2 nets.so");
    let files = executable.export(&path, LinkForm::Library, None, Outputs::default());
    let files = files.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((files.binary.as_path(), files.prefix.as_str()), (path.as_path(), "m2_nets"));
    assert!(files.header.unwrap().ends_with("lib2 nets.h"));
    (executable, path)
}

#[test]
fn a_library_opens_by_itself() {
    let directory = tempfile::tempdir().unwrap();
    let (executable, path) = exported(directory.path());
    let module = module(MODEL);
    let inputs: Vec<Tensor> = executable.signature().inputs.iter().map(numbers).collect();
    let expected = reference(&module, &inputs);
    let model = Model::open(&path).unwrap_or_else(|error| panic!("{error}"));
    let told = Signature { symbol: "m2_nets".to_owned(), ..executable.signature().clone() };
    assert_eq!(*model.signature(), told);
    for threads in [0, 2] {
        for (found, expected) in run(&model, &inputs, threads).iter().zip(&expected) {
            assert_eq!(found.bytes().to_vec(), expected.bytes().to_vec());
        }
    }
}

#[test]
fn arrays_go_in_by_name_and_come_out() {
    let model = compile(&module(MODEL)).jit().unwrap();
    let array = |dtype, shape: &[usize]| Array {
        dtype,
        shape: shape.to_vec(),
        data: vec![0; 4 * shape.iter().product::<usize>()],
    };
    let (x, n) = (array(NpyType::F32, &[6, 4]), array(NpyType::I32, &[4]));
    let named = [("int".to_owned(), n.clone()), ("data:0".to_owned(), x.clone())];
    let inputs = model.arrange(&named).unwrap();
    let outputs = model.run_arrays(&inputs, None).unwrap();
    assert_eq!((outputs[0].dtype, outputs[1].dtype), (NpyType::F32, NpyType::I32));
    assert!(outputs.iter().all(|output| output.shape == [6, 4]));

    let text =
        |result: Result<_, ModelError>| result.map(|_: Vec<Array>| ()).unwrap_err().to_string();
    let error = text(model.run_arrays(&[&x], None));
    assert!(error.contains("2 inputs (`data:0`: f32[6, 4], `int`: i32[4]), and 1"), "{error}");
    let error = text(model.run_arrays(&[&n, &x], None));
    assert_eq!(error, "input `data:0`: f32[6, 4] is expected, but i32[4] is given");
    let error = model.arrange(&named[..1]).unwrap_err().to_string();
    assert_eq!(error, "input `data:0`: f32[6, 4] is missing");
    let error = model.arrange(&[("image".to_owned(), x)]).unwrap_err().to_string();
    assert!(error.contains("no input `image`; the model has `data:0`"), "{error}");
}

#[test]
fn what_is_no_library_of_ours_is_refused_unopened() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("other.so");
    assert!(Model::open(&path).unwrap_err().to_string().contains("other.so"));
    std::fs::write(&path, "text").unwrap();
    assert!(Model::open(&path).unwrap_err().to_string().contains("not a library"));
    let own = std::env::current_exe().unwrap();
    let error = Model::open(&own).unwrap_err().to_string();
    assert!(error.contains("tenon_library_info"), "{error}");
}

/// What libraries of the first versions had: one function, in the second one that says sizes as well.
const OLD: &str = r#"#include "lib2 nets.h"
#define INFO "{\"tenon\":\"1.0.0\",\"target\":\"here\",\"workspace_size\":0,\"inputs\":[],\"outputs\":[]}"
static int32_t run(const DLTensor *i, DLTensor *o, void *w, const struct tenon_parallel *p) {
  return i && o && w && p ? 1 : 0;
}
static int32_t sizes(const DLTensor *i, int64_t *e, uint64_t *w) { return i && e && w ? 1 : 0; }
static const struct { uint32_t version, reserved; const void *info, *run, *sizes; } library = {
  VERSION, 0, INFO, (const void *)run, VERSION > 1 ? (const void *)sizes : (const void *)1};
const struct tenon_library *tenon_library_info(void) { return (const struct tenon_library *)&library; }
"#;

#[test]
fn libraries_of_older_versions_open() {
    let directory = tempfile::tempdir().unwrap();
    exported(directory.path());
    let source = directory.path().join("old.c");
    std::fs::write(&source, OLD).unwrap();
    for version in [1, 2] {
        let path = directory.path().join(format!("old{version}.so"));
        let mut compiler = Command::new("cc");
        compiler.arg(format!("-DVERSION={version}")).args(["-shared", "-fPIC", "-o"]);
        let Ok(compiled) = compiler.arg(&path).arg(&source).output() else {
            eprintln!("skipped: no `cc` here");
            return;
        };
        assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
        let model = Model::open(&path).unwrap_or_else(|error| panic!("{error}"));
        assert!(model.run(&[], None).unwrap().is_empty());
        let error = Library::open(&path).unwrap().function("main").unwrap_err().to_string();
        assert_eq!(error, "there is no function `main`; the library has ``");
    }
}

/// Two functions that read one constant and call one function, which calls a program that is public as well.
const SEVERAL: &str = r#"fn @first(%x: f32[n, 4]) -> f32[n, 4] {
  %y: f32[n, 4] = @shared(%x)
  ret %y
}

fn @second(%t: (f32[n, 4], shape[k])) -> (f32[n, 4], f32[k, 4]) {
  %y: f32[n, 4] = @shared(%t.0)
  %z: f32[n, 4] = @shared(%y)
  %w: f32[k, 4] = call_tir(@fill) { out = f32[k, 4] }
  ret (%z, %w)
}

private fn @shared(%x: f32[n, 4]) -> f32[n, 4] {
  %y: f32[n, 4] = call_tir(@scale, %x, const(f32[4], [1, 10, 100, 1000])) { out = f32[n, 4] }
  ret %y
}

prim @scale(%x: f32[n, 4], %by: f32[4], out %y: f32[n, 4]) {
  for %i in 0..dim(n) {
    for %j in 0..4 {
      %y[%i, %j] = %x[%i, %j] * %by[%j]
    }
  }
}

prim @fill(out %y: f32[k, 4]) {
  for %i in 0..dim(k) {
    for %j in 0..4 {
      %y[%i, %j] = 0.5
    }
  }
}

prim @counted(%x: f32[4], %k: i64, out %y: f32[4]) {
  for %j in 0..4 {
    %y[%j] = %x[%j] * f32(%k)
  }
}
"#;

#[test]
fn functions_are_found_by_their_names_and_share_what_they_have_in_common() {
    let executable = compile(&module(SEVERAL));
    let names: Vec<&str> = executable.functions().iter().map(|it| it.function.as_str()).collect();
    // A program that takes a number, or whose result may have any size, is a part of what calls it.
    assert_eq!(names, ["first", "second", "scale"]);
    let units: Vec<&str> = executable.objects().iter().map(|unit| unit.name.as_str()).collect();
    assert_eq!(units, ["first", "scale", "fill"]);
    let constants = executable.code[0].constants.len();
    assert_eq!(constants, 1);

    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("several.so");
    executable.export(&path, LinkForm::Library, None, Outputs::default()).unwrap();
    let x = TensorBuffer::from_bytes(&1f32.to_le_bytes().repeat(4), &[1, 4], DataType::F32);
    let (x, k) = (x.unwrap(), TensorBuffer::from_bytes(&2i64.to_le_bytes(), &[1], DataType::I64));
    let k = k.unwrap();
    let floats = |tensor: &TensorBuffer| -> Vec<f32> {
        tensor.bytes().as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect()
    };
    for library in [executable.load().unwrap(), Library::open(&path).unwrap()] {
        let error = library.main().unwrap_err().to_string();
        assert!(error.contains("no `main`") && error.contains("`first`, `second`"), "{error}");
        let error = library.function("third").unwrap_err().to_string();
        let wanted = "there is no function `third`; the library has `first`, `second`, `scale`";
        assert_eq!(error, wanted);
        let [first, second] = ["first", "second"].map(|name| library.function(name).unwrap());
        drop(library);
        // The fields of a tuple are inputs of their own.
        let inputs: Vec<String> = second.inputs().iter().map(ToString::to_string).collect();
        assert_eq!(inputs, ["`t.0`: f32[n, 4]", "`t.1`: i64[1]"]);
        let once = first.run(&[x.as_ref()], None).unwrap();
        assert_eq!(floats(&once[0]), [1.0, 10.0, 100.0, 1000.0]);
        drop(first);
        let twice = second.run(&[x.as_ref(), k.as_ref()], None).unwrap();
        assert_eq!(floats(&twice[0]), [1.0, 100.0, 1e4, 1e6]);
        assert_eq!((twice[1].shape(), floats(&twice[1])), (&[2, 4][..], vec![0.5; 8]));
    }
}

#[test]
fn functions_whose_names_in_c_are_the_same_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("m.so");
    let export = |names: [&str; 2], attrs: &str| {
        let function = |name| format!("fn @\"{name}\"(%x: f32[2]) {attrs}{{\n  ret %x\n}}\n");
        let executable = compile(&module(&names.map(function).concat()));
        executable.export(&path, LinkForm::Library, None, Outputs::default())
    };
    let error = export(["a.b", "a-b"], "").unwrap_err().to_string();
    assert!(error.contains("@a.b and @a-b would both be `m_a_b_run` in C"), "{error}");
    let error = export(["up", "Up"], "").unwrap_err().to_string();
    assert!(error.contains("@up and @Up would both be `M_UP` in C"), "{error}");
    let error = export(["a", "b"], "{ global_symbol = \"net\" } ").unwrap_err().to_string();
    assert!(error.contains("@a and @b would both be `net_run` in C"), "{error}");
    let error = export(["a", "b"], "{ global_symbol = \"1\" } ").unwrap_err().to_string();
    assert!(error.contains("`1` cannot be the prefix of C names"), "{error}");
    export(["a", "main"], "").unwrap();
}

#[test]
fn prefixes_are_names_in_c() {
    for (path, prefix) in [
        ("a/resnet50.so", "resnet50"),
        ("libresnet-18.v2.so", "resnet_18_v2"),
        ("50.so", "m50"),
        ("lib.so", "lib"),
        ("ünïcode", "_n_code"),
    ] {
        assert_eq!(prefix_of(Path::new(path)), prefix);
    }
    let directory = tempfile::tempdir().unwrap();
    let executable = compile(&module(MODEL));
    for prefix in ["", "1a", "a-b"] {
        let path = directory.path().join("m.so");
        let outputs = Outputs::default();
        let error = executable.export(&path, LinkForm::Library, Some(prefix), outputs).unwrap_err();
        assert!(error.to_string().contains("cannot be the prefix"), "{error}");
    }
}

/// Compiles and runs a C program that is linked with the library; false when there is no compiler.
pub(super) fn run_c(
    directory: &Path,
    library: &Path,
    code: &str,
    compiler: &str,
    flags: &[&str],
) -> bool {
    let (source, program) = (directory.join("main.c"), directory.join("main"));
    std::fs::write(&source, code).unwrap();
    let compiled = Command::new(compiler)
        .args(flags)
        .args(["-Wall", "-Wextra", "-Werror", "-I"])
        .arg(directory)
        .arg(&source)
        .args(["-x", "none"])
        .arg(library)
        .arg("-o")
        .arg(&program)
        .output();
    let Ok(compiled) = compiled else {
        eprintln!("skipped: no `{compiler}` here");
        return false;
    };
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let run = Command::new(&program).env("LD_LIBRARY_PATH", directory).output().unwrap();
    assert!(run.status.success(), "{}: {}", run.status, String::from_utf8_lossy(&run.stdout));
    true
}

#[test]
fn a_c_program_includes_the_header() {
    let directory = tempfile::tempdir().unwrap();
    let (executable, path) = exported(directory.path());
    let inputs: Vec<Tensor> = executable.signature().inputs.iter().map(numbers).collect();
    let expected = reference(&module(MODEL), &inputs);
    let list = |tensor: &Tensor| match tensor.dtype() {
        crate::ir::DType::F32 => format!("{:?}", tensor.elements::<f32>()),
        _ => format!("{:?}", tensor.elements::<i32>()),
    };
    let list = |tensor: &Tensor| list(tensor).replace(['[', ']'], "");
    let code = format!(
        r#"#include "lib2 nets.h"
#include <stdio.h>
#include <string.h>
#define CHECK(cond) do {{ if (!(cond)) {{ printf("%s\n", #cond); return 1; }} }} while (0)
int main(void) {{
  float x[] = {{ {} }}, y[24], sum[] = {{ {} }};
  int32_t n[] = {{ {} }}, z[24], whole[] = {{ {} }};
  CHECK(m2_nets_call(x, n, y, z) == TENON_OK);
  CHECK(memcmp(y, sum, sizeof y) == 0);
  CHECK(memcmp(z, whole, sizeof z) == 0);

  CHECK(strcmp(M2_NETS_INPUT0_NAME, "data:0") == 0);
  int64_t shape[] = M2_NETS_INPUT0_SHAPE, bad[] = {{4, 6}}, strides[] = {{4, 1}}, wide[] = {{8, 1}};
  int64_t counts[] = M2_NETS_INPUT1_SHAPE;
  DLDataType f32 = M2_NETS_INPUT0_DTYPE, i32 = M2_NETS_INPUT1_DTYPE;
  DLTensor in[] = {{{{x, {{kDLCPU, 0}}, 2, f32, shape, strides, 0}}, {{n, {{kDLCPU, 0}}, 1, i32, counts, NULL, 0}}}};
  DLTensor out[] = {{{{y, {{kDLCPU, 0}}, 2, f32, shape, NULL, 0}}, {{z, {{kDLCPU, 0}}, 2, i32, shape, NULL, 0}}}};
  char *memory = (char *)malloc(m2_nets_workspace_size() + 64);
  char *workspace = memory + (64 - (uintptr_t)memory % 64);
  CHECK(m2_nets_run(in, out, workspace, NULL) == 0);
  CHECK(m2_nets_run(in, out, workspace + 4, NULL) == TENON_ERROR_WORKSPACE);
  CHECK(m2_nets_run(in, out, NULL, NULL) == TENON_ERROR_WORKSPACE);
  CHECK(m2_nets_run(NULL, out, workspace, NULL) == TENON_ERROR_NULL);
#define FAILS(tensor, field, value, error, argument) do {{ \
    DLTensor kept = tensor; \
    tensor.field = value; \
    int32_t status = m2_nets_run(in, out, workspace, NULL); \
    CHECK(TENON_ERROR(status) == error && TENON_ERROR_ARGUMENT(status) == argument); \
    tensor = kept; }} while (0)
  FAILS(in[0], data, NULL, TENON_ERROR_NULL, 1);
  FAILS(in[0], shape, bad, TENON_ERROR_SHAPE, 1);
  FAILS(in[0], strides, wide, TENON_ERROR_STRIDES, 1);
  FAILS(in[0], byte_offset, 2, TENON_ERROR_ALIGNMENT, 1);
  FAILS(in[1], ndim, 0, TENON_ERROR_RANK, 2);
  FAILS(in[1], dtype, f32, TENON_ERROR_DTYPE, 2);
  FAILS(out[0], device.device_type, (DLDeviceType)2, TENON_ERROR_DEVICE, 3);
  FAILS(out[1], shape, bad, TENON_ERROR_SHAPE, 4);

  const struct tenon_library *library = tenon_library_info();
  CHECK(library->version >= 3 && library->count == 3 && library->run == m2_nets_run && library->info == m2_nets_info());
  CHECK(library->sizes == m2_nets_sizes);
  CHECK(strcmp(library->functions[0].name, "main") == 0 && library->functions[0].run == library->run);
  CHECK(strcmp(library->functions[2].name, "whole") == 0);
  CHECK(library->functions[2].sizes == m2_nets_whole_sizes);
  CHECK(m2_nets_whole_call(sum, z) == TENON_OK && memcmp(z, whole, sizeof z) == 0);
  CHECK(strstr(m2_nets_info(), "\"name\":\"data:0\",\"dtype\":\"f32\",\"shape\":[6,4]"));
  free(memory);
  return 0;
}}
"#,
        list(&inputs[0]),
        list(&expected[0]),
        list(&inputs[1]),
        list(&expected[1]),
    );
    if run_c(directory.path(), &path, &code, "cc", &["-x", "c", "-std=c11"]) {
        run_c(directory.path(), &path, &code, "cc", &["-x", "c", "-std=c99"]);
        run_c(directory.path(), &path, &code, "c++", &["-x", "c++", "-std=c++17"]);
    }
}

#[test]
fn the_header_speaks_the_codes() {
    let directory = tempfile::tempdir().unwrap();
    let (_, path) = exported(directory.path());
    let text = std::fs::read_to_string(path.with_extension("h")).unwrap();
    for &failure in Failure::ALL {
        assert!(text.contains(&format!("{} = {},", failure.c_name(), failure as u8)));
    }
    assert!(text.contains("#ifndef DLPACK_DLPACK_H_"));
}

#[test]
fn statuses_become_words() {
    let model = compile(&module(MODEL)).jit().unwrap();
    let x = TensorBuffer::zeros(&[6, 4], DataType::F32).unwrap();
    let n = TensorBuffer::zeros(&[4], DataType::I32).unwrap();
    let mut context = model.context().unwrap();
    for _ in 0..3 {
        assert_eq!(context.run(&[x.as_ref(), n.as_ref()], None).unwrap().len(), 2);
    }
}

#[test]
fn a_c_program_chooses_the_shapes() {
    let directory = tempfile::tempdir().unwrap();
    let text = r#"fn @main(%x: f32[rows, 3], %y: f32[rows]) {
  %a: f32[3*rows] = memory.view(%x) { ty = f32[3*rows] }
  %b: f32[3*rows] = call_tir(@twice, %a) { out = f32[3*rows] }
  %c: f32[3*rows] = call_tir(@twice, %b) { out = f32[3*rows] }
  %d: f32[rows] = call_tir(@twice, %y) { out = f32[rows] }
  ret (%c, %d)
}

prim @twice(%x: f32[n], out %y: f32[n]) {
  for %i in 0..dim(n) parallel {
    %y[%i] = %x[%i] + %x[%i]
  }
}"#;
    let path = directory.path().join("open.so");
    let executable = compile(&module(text));
    executable.export(&path, LinkForm::Library, None, Outputs::default()).unwrap();
    let code = r#"#include "open.h"
#include <stdio.h>
#define CHECK(cond) do { if (!(cond)) { printf("%s\n", #cond); return 1; } } while (0)
int main(void) {
  static float x[300], y[100], c[301], d[101];
  for (int i = 0; i < 300; i++) x[i] = (float)i;
  for (int i = 0; i < 100; i++) y[i] = (float)-i;
  for (int rows = 0; rows <= 100; rows += 7) {
    c[3 * rows] = d[rows] = 0.5f;
    CHECK(open_call(rows, x, y, c, d) == TENON_OK);
    for (int i = 0; i < 3 * rows; i++) CHECK(c[i] == 4.0f * x[i]);
    for (int i = 0; i < rows; i++) CHECK(d[i] == 2.0f * y[i]);
    CHECK(c[3 * rows] == 0.5f && d[rows] == 0.5f);
  }
  int64_t of_x[] = {5, 3}, of_y[] = {5}, six[] = {6}, extents[2], fifteen[] = {15};
  DLDataType f32 = OPEN_INPUT0_DTYPE;
  DLTensor in[] = {{x, {kDLCPU, 0}, 2, f32, of_x, NULL, 0}, {y, {kDLCPU, 0}, 1, f32, of_y, NULL, 0}};
  DLTensor out[] = {{c, {kDLCPU, 0}, 1, f32, fifteen, NULL, 0}, {d, {kDLCPU, 0}, 1, f32, of_y, NULL, 0}};
  uint64_t bytes = 1;
  CHECK(open_sizes(in, extents, &bytes) == TENON_OK);
  CHECK(extents[0] == 15 && extents[1] == 5 && bytes == 64);
  CHECK(open_sizes(in, NULL, NULL) == TENON_OK);
  CHECK(open_sizes(NULL, extents, &bytes) == TENON_ERROR_NULL);
  _Alignas(64) char workspace[64];
  CHECK(open_run(in, out, workspace, NULL) == TENON_OK);
  in[1].shape = six;
  extents[0] = -1;
  CHECK(open_sizes(in, extents, &bytes) == (TENON_ERROR_SHAPE | 2 << 8) && extents[0] == -1);
  CHECK(open_run(in, out, workspace, NULL) == (TENON_ERROR_SHAPE | 2 << 8));
  in[1].shape = of_y;
  c[0] = 0.5f;
  out[1].shape = six;
  CHECK(open_run(in, out, workspace, NULL) == (TENON_ERROR_SHAPE | 4 << 8) && c[0] == 0.5f);
  of_x[0] = of_y[0] = -1;
  CHECK(open_sizes(in, extents, &bytes) == (TENON_ERROR_SHAPE | 1 << 8));
  return 0;
}
"#;
    run_c(directory.path(), &path, code, "cc", &["-x", "c", "-std=c11"]);
}

#[test]
fn names_that_the_header_needs_itself_are_numbered() {
    let directory = tempfile::tempdir().unwrap();
    let text = r#"module { "onnx.inputs" = ["malloc", "NULL", "m_run"], "onnx.outputs" = ["free", "tenon_size"] }

fn @main(%x: f32[int64_t], %y: f32[int64_t], %z: f32[int64_t]) {
  %a: f32[int64_t] = call_tir(@sum, %x, %y) { out = f32[int64_t] }
  %b: f32[int64_t] = call_tir(@sum, %a, %z) { out = f32[int64_t] }
  ret (%a, %b)
}

prim @sum(%x: f32[n], %y: f32[n], out %z: f32[n]) {
  for %i in 0..dim(n) {
    %z[%i] = %x[%i] + %y[%i]
  }
}"#;
    let path = directory.path().join("m.so");
    let executable = compile(&module(text));
    executable.export(&path, LinkForm::Library, None, Outputs::default()).unwrap();
    let code = r#"#include "m.h"
int main(void) {
  float x[] = {1, 2}, y[] = {3, 4}, z[] = {5, 6}, a[2], b[2];
  return m_call(2, x, y, z, a, b) != TENON_OK || a[1] != 6.0f || b[0] != 9.0f;
}
"#;
    run_c(directory.path(), &path, code, "cc", &["-x", "c", "-std=c11"]);
}
