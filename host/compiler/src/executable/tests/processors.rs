//! Libraries for several processors.

use std::path::Path;
use std::process::Command;

use object::{Object, ObjectSection};

use crate::eval::Tensor;
use crate::executable::{CompileError, CompileOptions, Executable, LinkForm};
use crate::io::{Mapping, Outputs};
use crate::runtime::functions::Library;
use crate::runtime::model::ModelError;
use crate::target::{Target, Targets};

use super::run::{module, numbers, reference, run};

/// A constant that all code reads, and two functions.
const MODEL: &str = r#"fn @main(%x: f32[64]) -> f32[64] {
  %y: f32[64] = call_tir(@scale, %x, const(f32[64], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63, 64])) { out = f32[64] }
  ret %y
}

prim @scale(%x: f32[64], %w: f32[64], out %y: f32[64]) {
  for %i in 0..64 {
    %y[%i] = %x[%i] * %w[%i]
  }
}
"#;

const V2: &str = "x86-64-v2";
const V3: &str = "x86-64-v3";
const V4: &str = "x86-64-v4";

fn compiled(text: &str, target: &Target) -> Executable {
    let options = CompileOptions { threads: 1, ..CompileOptions::default() };
    Executable::compile(&module(text), target, &options).unwrap_or_else(|error| panic!("{error}"))
}

/// The code of the model for some processors.
fn joined(targets: &str) -> Executable {
    let targets = Targets::parse(targets).unwrap_or_else(|error| panic!("{error}"));
    let all = targets.all().iter().map(|target| compiled(MODEL, target));
    Executable::joined(all.collect()).unwrap_or_else(|error| panic!("{error}"))
}

fn exported(executable: &Executable, path: &Path, form: LinkForm) {
    let made = executable.export(path, form, None, Outputs::default());
    made.unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn a_library_runs_the_best_code_that_the_machine_has() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("many.so");
    let executable = joined("x86-64-v2/x86-64-v4/x86-64-v3");
    exported(&executable, &path, LinkForm::Library);
    let inputs: Vec<Tensor> = executable.signature().inputs.iter().map(numbers).collect();
    let expected = reference(&module(MODEL), &inputs);
    let here = Target::native().unwrap();
    let mut best = None;
    // The best first, whatever the order in which they were named.
    for (cpu, feature) in [(V4, "avx512vl"), (V3, "avx2"), (V2, "sse4.2")] {
        let opened = Library::open_for(&path, cpu);
        if !here.has(feature) {
            assert!(matches!(opened, Err(ModelError::NoProcessor { .. })), "{cpu}");
            continue;
        }
        let library = opened.unwrap_or_else(|error| panic!("{error}"));
        assert!(library.functions()[0].target.contains(cpu));
        best = best.or(Some(library.functions()[0].target.clone()));
        assert_eq!(
            run(&library.main().unwrap(), &inputs, 0)[0].bytes()[..],
            expected[0].bytes()[..]
        );
    }
    let library = Library::open(&path).unwrap();
    assert_eq!(Some(library.functions()[0].target.clone()), best);
    assert_eq!(run(&library.main().unwrap(), &inputs, 0)[0].bytes()[..], expected[0].bytes()[..]);
    let in_memory = executable.jit().unwrap();
    assert_eq!(run(&in_memory, &inputs, 0)[0].bytes()[..], expected[0].bytes()[..]);
    let error = Library::open_for(&path, "znver4").unwrap_err().to_string();
    assert!(error.contains("no code for a processor `znver4`") && error.contains(V3), "{error}");
}

/// Code behind that for a processor which no machine is (XOP came with it and went).
#[test]
fn code_that_is_not_the_first_loads_into_the_process() {
    let executable = joined("x86-64-v2/x86_64-unknown-linux-gnu,cpu=bdver4");
    assert!(executable.code[0].target.to_string().contains("bdver4"));
    let inputs: Vec<Tensor> = executable.signature().inputs.iter().map(numbers).collect();
    let expected = reference(&module(MODEL), &inputs);
    let model = executable.jit().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(run(&model, &inputs, 0)[0].bytes()[..], expected[0].bytes()[..]);
}

#[test]
fn constants_are_there_once() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = |targets: &str| {
        let path = folder.path().join("constants.so");
        exported(&joined(targets), &path, LinkForm::Library);
        let file = Mapping::open(&path).unwrap();
        let object = object::File::parse(&file[..]).unwrap();
        let last = 64f32.to_le_bytes();
        let row = [63f32.to_le_bytes(), last].concat();
        let sections = object.sections().filter_map(|section| section.data().ok());
        sections.map(|data| data.windows(8).filter(|window| *window == row).count()).sum::<usize>()
    };
    assert_eq!((bytes(V2), bytes("x86-64-v2/x86-64-v3/x86-64-v4")), (1, 1));
}

/// A program that says which processors a library can run here, and what a call of it gives.
const PROGRAM: &str = r#"#include "many.h"
#include <stdio.h>
int main(void) {
  static float x[64], y[64];
  for (int i = 0; i < 64; i++) x[i] = 2.0f;
  int32_t status = many_call(x, y);
  int right = 1;
  for (int i = 0; i < 64; i++) right &= y[i] == 2.0f * (float)(i + 1);
  const struct tenon_library *library = tenon_library_info();
  printf("%u %d %d %d\n", library->version, (int)library->runnable(), status == TENON_ERROR_PROCESSOR, right);
  return 0;
}
"#;

#[test]
fn an_emulated_machine_runs_what_it_can() {
    // By bits from the best: v4, v3, v2.
    emulated(
        "x86-64-v2/x86-64-v3/x86-64-v4",
        &[
            ("core2duo", "4 0 1 0\n"),
            ("Nehalem", "4 4 0 1\n"),
            // It has AVX, and no AVX2.
            ("SandyBridge", "4 4 0 1\n"),
            ("Haswell", "4 6 0 1\n"),
        ],
    );
}

#[test]
fn an_emulated_machine_refuses_code_for_another_one() {
    emulated(V3, &[("Nehalem", "4 0 1 0\n"), ("Haswell", "4 1 0 1\n")]);
}

/// Runs a program with a library on machines, where it says what is expected.
fn emulated(targets: &str, machines: &[(&str, &str)]) {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    exported(&joined(targets), &at("many.so"), LinkForm::Library);
    std::fs::write(at("main.c"), PROGRAM).unwrap();
    let built = Command::new("cc")
        .args(["main.c", "many.so", "-Wl,-rpath,$ORIGIN", "-o", "main"])
        .current_dir(folder.path())
        .output();
    let Ok(built) = built else { return eprintln!("skipped: there is no C compiler") };
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    for (cpu, told) in machines {
        let ran = Command::new("qemu-x86_64").args(["-cpu", cpu]).arg(at("main")).output();
        let Ok(ran) = ran else { return eprintln!("skipped: there is no emulator") };
        assert_eq!(String::from_utf8_lossy(&ran.stdout), *told, "{cpu}");
    }
}

#[test]
fn what_this_machine_lacks_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("other.so");
    let here = Target::native().unwrap();
    let some = ["amx-fp16", "sha512", "xop"];
    let Some(feature) = some.into_iter().find(|feature| !here.has(feature)) else {
        return eprintln!("skipped: this machine has everything");
    };
    // What it has and knows no name for is not asked.
    let target = format!("x86_64-linux-gnu,cpu=x86-64-v2,features=+{feature},+pku");
    let target: Target = target.parse().unwrap_or_else(|error| panic!("{error}"));
    let executable = compiled(MODEL, &target);
    exported(&executable, &path, LinkForm::Library);
    let error = Library::open(&path).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, ModelError::NoProcessor { .. }), "{text}");
    assert!(text.contains(&format!(", of which it lacks `{feature}")), "{text}");
    // In this process it is code that is not run.
    let model = executable.jit().unwrap();
    let error = model.run(&[], None).unwrap_err().to_string();
    assert!(error.contains("this machine cannot run the code; it needs x86_64"), "{error}");
}

#[test]
fn code_for_every_processor_asks_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("any.so");
    exported(&joined("x86_64-linux-gnu"), &path, LinkForm::Library);
    let library = Library::open(&path).unwrap();
    assert!(library.info().processors.is_empty());
    exported(&joined("native"), &path, LinkForm::Library);
    let library = Library::open(&path).unwrap();
    let told: Vec<_> = library.info().processors.iter().map(|it| &it.target).collect();
    assert_eq!(told, [&library.functions()[0].target]);
    assert!(library.main().is_ok());
}

#[test]
fn an_object_for_several_links_into_a_program() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    exported(&joined("x86-64-v2/x86-64-v3"), &at("many.o"), LinkForm::Object);
    let code = r#"#include "many.h"
int main(void) {
  static float x[64], y[64];
  x[63] = 2.0f;
  return many_call(x, y) != TENON_OK || y[63] != 128.0f;
}
"#;
    std::fs::write(at("main.c"), code).unwrap();
    let built = Command::new("cc")
        .args(["main.c", "many.o", "-o", "main"])
        .current_dir(folder.path())
        .status();
    let Ok(built) = built else { return eprintln!("skipped: there is no C compiler") };
    assert!(built.success());
    assert!(Command::new(at("main")).status().unwrap().success());
}

#[test]
fn what_is_not_of_one_model_is_no_library() {
    let [v2, v3] = [V2, V3].map(|text| text.parse::<Target>().unwrap());
    let other =
        MODEL.replace("fn @main(%x: f32[64])", "fn @main(%z: f32[64])").replace("%x, c", "%z, c");
    let error = Executable::joined(vec![compiled(MODEL, &v2), compiled(&other, &v3)]).unwrap_err();
    assert!(matches!(error, CompileError::Differ { .. }), "{error}");
    assert!(error.to_string().contains("other inputs and outputs"), "{error}");
    let twice = Executable::joined(vec![compiled(MODEL, &v2), compiled(MODEL, &v2)]).unwrap_err();
    assert!(twice.to_string().contains("named twice"), "{twice}");
    assert!(Executable::joined(Vec::new()).is_err());
}
