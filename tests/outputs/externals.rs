//! External functions: what a model calls and others define, linked with it or there in the process.

use std::ffi::c_void;
use std::fs;
use std::process::Command;
use std::ptr::NonNull;
use std::slice;

use tenon_compiler::runtime::dlpack::{DataType, RawTensor, TensorBuffer};
use tenon_compiler::target::Target;

use crate::embedding::{options, session};
use crate::functions;
use crate::house::{House, said};
use crate::objects::run_c_with;

/// Doubles what it is given, and takes nothing that begins below zero. It has a tensor as the headers of models say.
const VENDOR: &str = r#"#include "dlpack.h"
#include <stdlib.h>
int32_t vendor_scale(const DLTensor *in, DLTensor *out, void *workspace, const void *threads) {
  (void)threads;
  const float *x = in->data;
  float *y = out->data;
  if (workspace || in->ndim != 1 || in->shape[0] != out->shape[0] || in->strides || in->byte_offset) return 78;
  if (out->device.device_type != 1 || out->dtype.code != 2 || out->dtype.bits != 32 || out->dtype.lanes != 1) return 79;
  int64_t n = in->shape[0];
  if (x[0] < 0) return 77;
  /* It may need of the C library what it likes. */
  float *copy = malloc(n * sizeof *copy);
  for (int64_t i = 0; i < n; i++) copy[i] = 2 * x[i];
  for (int64_t i = 0; i < n; i++) y[i] = copy[i];
  free(copy);
  return 0;
}
"#;

/// As DLPack has it.
const DLPACK: &str = "#include <stdint.h>
typedef struct { int32_t device_type, device_id; } DLDevice;
typedef struct { uint8_t code, bits; uint16_t lanes; } DLDataType;
typedef struct {
  void *data; DLDevice device; int32_t ndim; DLDataType dtype; int64_t *shape, *strides; uint64_t byte_offset;
} DLTensor;
";

/// 4 (x + 1), added to x; called with and without the promise of no effect.
const MODEL: &str = "fn @main(%x: f32[n]) -> f32[n] {
  %a: f32[n] = add(%x, const(f32[], 1.0))
  %b: f32[n] = extern \"vendor_scale\"(%a)
  %c: f32[n] = call_pure(extern \"vendor_scale\", %b) { out = f32[n] }
  %d: f32[n] = add(%c, %x)
  ret %d
}
";

const RESULT: &str = "output: float32[3] [9, 14, 19]\n";

/// A folder with the model, and the vendor's function as an object, in an archive and in a library.
fn house() -> House {
    let house = functions::house(MODEL);
    fs::write(house.at("vendor.c"), VENDOR).unwrap();
    fs::write(house.at("dlpack.h"), DLPACK).unwrap();
    command(&house, "cc", &["-O1", "-fPIC", "-c", "vendor.c"]);
    command(&house, "ar", &["rc", "libvendor.a", "vendor.o"]);
    command(&house, "cc", &["-shared", "-o", "libvendor.so", "vendor.o"]);
    house
}

fn command(house: &House, program: &str, words: &[&str]) {
    let output = Command::new(program).args(words).current_dir(house.at("")).output();
    let output = output.expect("a C compiler and its archiver");
    assert!(output.status.success(), "{}", said(&output));
}

#[test]
fn a_linked_file_defines_what_a_model_calls() {
    let house = house();
    for file in ["vendor.o", "libvendor.a", "libvendor.so"] {
        let run = ["run", "m.ir", "--input", "x=x.npy", "--link", file];
        assert_eq!(house.run(&run), RESULT, "{file}");
        house.run(&["compile", "m.ir", "-o", "m.so", "--link", file]);
        assert_eq!(house.run(&["run", "m.so", "--input", "x=x.npy"]), RESULT, "{file}");
        let needs = if file == "libvendor.so" { "vendor_scale" } else { "free, malloc" };
        assert!(
            house.run(&["show", "m.so"]).contains(&format!("needs        {needs}\n")),
            "{file}"
        );
    }
    // What is saved knows what is linked with it.
    house.run(&["compile", "m.ir", "--emit", "exec", "-o", "m.exec", "--link", "vendor.o"]);
    assert_eq!(house.run(&["run", "m.exec", "--input", "x=x.npy"]), RESULT);
    assert!(house.run(&["show", "m.exec"]).contains("needs        vendor_scale\n"));
    // For several processors the calls are the same.
    let targets = "x86-64-v2/x86-64-v3";
    if cfg!(target_arch = "x86_64") {
        house.run(&["compile", "m.ir", "-o", "m.so", "--link", "vendor.o", "--target", targets]);
        assert_eq!(house.run(&["run", "m.so", "--input", "x=x.npy"]), RESULT);
    }
}

#[test]
fn a_program_of_c_brings_what_a_model_calls() {
    let house = house();
    let code = r#"#include "model.h"
#include <stdio.h>
int main(void) {
  float x[3] = {1, 2, 3}, y[3];
  if (model_call(3, x, y) != TENON_OK) return 1;
  printf("%g %g %g\n", y[0], y[1], y[2]);
  x[0] = -2;
  return model_call(3, x, y) == 77 ? 0 : 2;
}
"#;
    house.run(&["compile", "m.ir", "--emit", "obj", "-o", "model.o"]);
    assert!(house.run(&["show", "model.o"]).contains("needs        vendor_scale\n"));
    assert_eq!(run_c_with(&house, code, &["model.o", "vendor.c"]), "9 14 19\n");
    for file in ["vendor.o", "libvendor.a"] {
        house.run(&["compile", "m.ir", "--emit", "obj", "-o", "model.o", "--link", file]);
        assert_eq!(run_c_with(&house, code, &["model.o"]), "9 14 19\n", "{file}");
    }
}

#[test]
fn what_nobody_defines_is_named() {
    let house = house();
    let below = MODEL.replace("add(%x, const(f32[], 1.0))", "negative(%x)");
    fs::write(house.at("below.ir"), below).unwrap();
    let run = ["run", "below.ir", "--input", "x=x.npy", "--link", "vendor.o"];
    let said = house.refused(&run);
    assert!(said.contains("a failure of an external function (status 77)"), "{said}");
    let said = house.refused(&["run", "m.ir", "--input", "x=x.npy"]);
    assert!(
        said.contains("nobody defines `vendor_scale`") && said.contains("--link FILE"),
        "{said}"
    );
    // Whoever opens a library may have it.
    house.run(&["compile", "m.ir", "-o", "m.so"]);
    assert!(house.refused(&["run", "m.so", "--input", "x=x.npy"]).contains("vendor_scale"));
    let said = house.refused(&["compile", "m.ir", "-o", "m.so", "--link", "m.ir"]);
    assert!(said.contains("`m.ir` cannot be linked: it is no object"), "{said}");
    let said = house.refused(&["compile", "m.ir", "-o", "m.so", "--link", "none.o"]);
    assert!(said.contains("none.o"), "{said}");
}

/// Adds one, as a program that embeds Tenon defines it.
unsafe extern "C" fn own_scale(
    inputs: *const RawTensor,
    outputs: *mut RawTensor,
    _: *mut c_void,
    _: *const c_void,
) -> i32 {
    // SAFETY: as docs/running.md says, a tensor each, of as many elements.
    let (x, y) = unsafe {
        let (x, y) = (&*inputs, &*outputs);
        let count = *x.shape as usize;
        let x = slice::from_raw_parts(x.data.cast::<f32>(), count);
        (x, slice::from_raw_parts_mut(y.data.cast::<f32>(), count))
    };
    y.iter_mut().zip(x).for_each(|(y, x)| *y = x + 1.0);
    0
}

#[test]
fn a_program_gives_a_function_of_its_own() {
    let session = session();
    let model = session.parse("m.ir", MODEL).unwrap();
    let target = Target::native().unwrap();
    let mut executable = session.compile(&model, target, &options()).unwrap();
    assert_eq!(executable.externals(), ["vendor_scale"]);
    let error = executable.jit().unwrap_err().to_string();
    assert!(error.contains("nobody defines `vendor_scale`"), "{error}");
    let function = NonNull::new(own_scale as *mut c_void).unwrap();
    // SAFETY: it is a function of that type, there for ever.
    unsafe { executable.provide("vendor_scale", function) };
    let x: Vec<u8> = [1f32, 2.0].iter().flat_map(|number| number.to_le_bytes()).collect();
    let x = TensorBuffer::from_bytes(&x, &[2], DataType::F32).unwrap();
    let outputs = executable.jit().unwrap().run(&[x.as_ref()], None).unwrap();
    assert_eq!(outputs[0].bytes(), [5f32, 7.0].map(f32::to_le_bytes).concat());
}

/// A model calls another one, and static shapes are the same to it as open ones.
#[test]
fn a_model_calls_a_model() {
    let house = house();
    let twice = "fn @main(%x: f32[n]) -> f32[n] {\n  %y = add(%x, %x)\n  ret %y\n}\n";
    fs::write(house.at("twice.ir"), twice).unwrap();
    house.run(&["compile", "twice.ir", "--emit", "obj", "--prefix", "vendor", "-o", "twice.o"]);
    let text = MODEL.replace("vendor_scale", "vendor_run").replace("[n]", "[3]");
    fs::write(house.at("m.ir"), text).unwrap();
    let run = ["run", "m.ir", "--input", "x=x.npy", "--link", "twice.o"];
    assert_eq!(house.run(&run), RESULT);
    house.run(&["compile", "m.ir", "-o", "m.so", "--link", "twice.o"]);
    assert_eq!(house.run(&["run", "m.so", "--input", "x=x.npy"]), RESULT);
}
