//! Libraries and objects whose constants lie in a file.

use std::path::Path;
use std::process::Command;

use crate::eval::Tensor;
use crate::executable::{CompileOptions, Executable, ExportOptions, LinkForm};
use crate::io::Outputs;
use crate::runtime::functions::{Library, OpenOptions};
use crate::runtime::library::ExportedLibrary;
use crate::runtime::model::{Model, ModelError};
use crate::runtime::weights::{RawSetWeights, RawWeights};
use crate::target::{Target, Targets};

use super::run::{module, numbers, reference, run};

/// A constant that is added, one that is given back as it is, and a second function that has one of them.
const MODEL: &str = r#"fn @main(%x: f32[4]) {
  %y: f32[4] = call_tir(@add, %x, const(f32[4], [1, 10, 100, 1000])) { out = f32[4] }
  ret (%y, const(f32[2], [5, 6]))
}

fn @other(%x: f32[4]) {
  %y: f32[4] = call_tir(@add, %x, const(f32[4], [1, 10, 100, 1000])) { out = f32[4] }
  ret %y
}

prim @add(%x: f32[4], %w: f32[4], out %y: f32[4]) {
  for %i in 0..4 {
    %y[%i] = %x[%i] + %w[%i]
  }
}
"#;

/// The code of a model for some targets.
fn compiled(text: &str, targets: &str) -> Executable {
    let targets = Targets::parse(targets).unwrap_or_else(|error| panic!("{error}"));
    let options = CompileOptions { threads: 1, ..CompileOptions::default() };
    let one = |target: &Target| Executable::compile(&module(text), target, &options).unwrap();
    Executable::joined(targets.all().iter().map(one).collect()).unwrap()
}

/// Writes `NAME`, and `NAME.weights`.
fn exported(executable: &Executable, folder: &Path, name: &str) {
    let path = folder.join(name);
    let form = if name.ends_with(".o") { LinkForm::Object } else { LinkForm::Library };
    let weights = path.with_extension("weights");
    let options = ExportOptions { weights: Some(&weights), ..ExportOptions::new(form) };
    let files = executable.export_with(&path, &options, Outputs::default());
    let files = files.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(files.weights, Some(weights));
}

/// Runs `main`, and compares what it gives with what the evaluator says.
fn check(model: &Model) {
    let inputs: Vec<Tensor> = model.inputs().iter().map(numbers).collect();
    let expected = reference(&module(MODEL), &inputs);
    for (found, expected) in run(model, &inputs, 0).iter().zip(&expected) {
        assert_eq!(found.bytes()[..], expected.bytes()[..]);
    }
}

#[test]
fn a_library_finds_its_weights_beside_itself() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.so");
    let executable = compiled(MODEL, "native");
    exported(&executable, folder.path(), "m.so");
    let library = Library::open(&path).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(library.weights_path(), Some(folder.path().join("m.weights").as_path()));
    assert_eq!(library.info().weights.as_ref().unwrap().file, "m.weights");
    check(&library.main().unwrap());
    // What holds a function holds the weights, when the file and the library are gone.
    let model = library.main().unwrap();
    drop(library);
    std::fs::remove_file(folder.path().join("m.weights")).unwrap();
    check(&model);
    // One library in the process has its weights once, whoever opens it.
    let again = Library::open(&path).unwrap_or_else(|error| panic!("{error}"));
    drop(model);
    check(&again.main().unwrap());
    drop(again);
    let error = Library::open(&path).unwrap_err();
    assert!(matches!(error, ModelError::Weights { .. }), "{error}");
    // In this process it needs none.
    check(&executable.jit().unwrap());
}

#[test]
fn a_library_takes_its_own_weights_and_no_others() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    exported(&compiled(MODEL, "native"), folder.path(), "m.so");
    exported(&compiled(&MODEL.replace("100,", "101,"), "native"), folder.path(), "n.so");
    let open = |weights: &str| {
        let options = OpenOptions { weights: Some(at(weights)), ..OpenOptions::default() };
        Library::open_with(&at("m.so"), &options)
    };
    let error = open("n.weights").unwrap_err().to_string();
    assert!(error.contains("n.weights` has the weights of another library"), "{error}");
    let error = open("none").unwrap_err().to_string();
    assert!(error.contains("m.so needs its file of weights: cannot open"), "{error}");
    let error = open(".").unwrap_err().to_string();
    assert!(error.contains("is a directory"), "{error}");
    std::fs::rename(at("m.weights"), at("moved")).unwrap();
    check(&open("moved").unwrap().main().unwrap());
    // A library that holds its constants takes none.
    let executable = compiled(MODEL, "native");
    executable.export(&at("own.so"), LinkForm::Library, None, Outputs::default()).unwrap();
    let weights = Some(at("moved"));
    let error = Library::open_with(&at("own.so"), &OpenOptions { weights, processor: None });
    assert!(matches!(error.unwrap_err(), ModelError::NoWeights { .. }));
}

#[test]
fn who_has_the_library_open_by_itself_keeps_the_weights() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.so");
    exported(&compiled(MODEL, "native"), folder.path(), "m.so");
    // SAFETY: it was just made.
    let other = unsafe { ExportedLibrary::open(&path) }.unwrap();
    let (set, get) = ("m_set_weights", "m_weights");
    // SAFETY: the types of the functions of these names.
    let set: RawSetWeights = unsafe { other.function(set) }.unwrap();
    // SAFETY: as above.
    let get: RawWeights = unsafe { other.function(get) }.unwrap();
    let library = Library::open(&path).unwrap();
    check(&library.main().unwrap());
    drop(library);
    // SAFETY: it takes nothing.
    let data = unsafe { get() }.cast::<[u8; 8]>();
    // SAFETY: the library has them, so they are mapped.
    assert_eq!(unsafe { data.as_ref() }, Some(b"TENONWTS"));
    // What was taken away is there again for who opens it.
    let library = Library::open(&path).unwrap();
    assert_eq!(library.weights_path(), None);
    // SAFETY: nothing of it runs.
    assert_eq!(unsafe { set(std::ptr::null(), 0) }, 0);
    drop(library);
    let library = Library::open(&path).unwrap();
    // SAFETY: nothing of it runs.
    assert_eq!(unsafe { set(std::ptr::null(), 0) }, 0);
    check(&Library::open(&path).unwrap().main().unwrap());
    check(&library.main().unwrap());
}

#[test]
fn threads_open_it_at_once() {
    let folder = tempfile::tempdir().unwrap();
    exported(&compiled(MODEL, "native"), folder.path(), "m.so");
    let path = folder.path().join("m.so");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    check(&Library::open(&path).unwrap().main().unwrap());
                }
            });
        }
    });
}

#[test]
fn code_for_several_processors_has_one_file() {
    let folder = tempfile::tempdir().unwrap();
    exported(&compiled(MODEL, "x86-64-v2/x86-64"), folder.path(), "m.so");
    exported(&compiled(MODEL, "x86-64"), folder.path(), "one.so");
    let weights = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    assert_eq!(weights("m.weights"), weights("one.weights"));
    let path = folder.path().join("m.so");
    for processor in ["x86-64-v2", "x86-64"] {
        let library = Library::open_for(&path, processor).unwrap_or_else(|it| panic!("{it}"));
        check(&library.main().unwrap());
    }
}

#[test]
fn other_machines_get_it_as_well() {
    let folder = tempfile::tempdir().unwrap();
    for target in ["neoverse-n1", "riscv64", "wasm32"] {
        exported(&compiled(MODEL, target), folder.path(), "m.o");
        let header = std::fs::read_to_string(folder.path().join("m.h")).unwrap();
        assert!(header.contains("m_set_weights(const void *data, uint64_t bytes);"), "{header}");
    }
}

/// What a program sees that opens weights, with eight threads at once.
const PROGRAM: &str = r#"#include "m.h"
#include <pthread.h>
#include <stdio.h>
#define CHECK(what) if (!(what)) { printf("%d: %s\n", __LINE__, #what); return 1; }

static int all;

static void *opens(void *path) {
  float x[4] = {1, 2, 3, 4}, y[4], z[2];
  int right = m_open_weights((const char *)path) == TENON_OK && m_call(x, y, z) == TENON_OK;
  right = right && y[3] == 1004.0f && z[1] == 6.0f;
  __atomic_add_fetch(&all, right, __ATOMIC_SEQ_CST);
  return NULL;
}

int main(void) {
  float x[4] = {1, 2, 3, 4}, y[4] = {0}, z[2];
  static char other[M_WEIGHTS_BYTES + 64];
  uint64_t bytes = 1;
  CHECK(m_call(x, y, z) == TENON_ERROR_WEIGHTS && y[3] == 0.0f && !m_weights());
  CHECK(m_other_call(x, y) == TENON_ERROR_WEIGHTS);
  CHECK(m_open_weights("none") == TENON_ERROR_WEIGHTS && m_open_weights(".") == TENON_ERROR_WEIGHTS);
  CHECK(m_open_weights("/dev/null") == TENON_ERROR_WEIGHTS && m_open_weights("") == TENON_ERROR_WEIGHTS);
  CHECK(m_open_weights("other") == TENON_ERROR_WEIGHTS && m_open_weights("short") == TENON_ERROR_WEIGHTS);
  CHECK(m_open_weights(NULL) == TENON_ERROR_NULL);
  CHECK(m_set_weights(NULL, M_WEIGHTS_BYTES) == TENON_ERROR_NULL && m_set_weights(NULL, 0) == TENON_OK);
  CHECK(m_set_weights(other + (64 - (uintptr_t)other % 64), M_WEIGHTS_BYTES) == TENON_ERROR_WEIGHTS);
  CHECK(m_call(x, y, z) == TENON_ERROR_WEIGHTS && !m_weights());
  pthread_t threads[8];
  for (int i = 0; i < 8; i++) CHECK(!pthread_create(&threads[i], NULL, opens, (void *)M_WEIGHTS_FILE));
  for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);
  CHECK(all == 8);
  /* What is there stays, whatever is opened next; others brought into memory are not used. */
  const void *first = m_weights();
  CHECK(first && m_open_weights("none") == TENON_OK && m_weights() == first);
  char *copy = aligned_alloc(64, (M_WEIGHTS_BYTES + 63) / 64 * 64);
  for (uint64_t i = 0; i < M_WEIGHTS_BYTES; i++) copy[i] = ((const char *)first)[i];
  CHECK(m_set_weights(copy, M_WEIGHTS_BYTES) == TENON_OK && m_weights() == first);
  CHECK(m_set_weights(NULL, 0) == TENON_OK && m_call(x, y, z) == TENON_ERROR_WEIGHTS);
  CHECK(m_set_weights(copy + 1, M_WEIGHTS_BYTES) == TENON_ERROR_WEIGHTS);
  CHECK(m_set_weights(copy, M_WEIGHTS_BYTES - 1) == TENON_ERROR_WEIGHTS);
  CHECK(m_set_weights(copy, M_WEIGHTS_BYTES) == TENON_OK && m_weights() == copy);
  CHECK(m_call(x, y, z) == TENON_OK && y[3] == 1004.0f && bytes);
  LIBRARY
  puts("right");
  return 0;
}
"#;

const LIBRARY: &str = r#"const struct tenon_library *library = tenon_library_info();
  CHECK(library->version == 5 && library->weights_bytes == M_WEIGHTS_BYTES && library->weights == m_weights);
  CHECK(library->set_weights == m_set_weights && library->weights_file[1] == '.');"#;

#[test]
fn a_program_in_c_opens_them() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for (name, library) in [("m.so", LIBRARY), ("m.o", "")] {
        exported(&compiled(MODEL, "native"), folder.path(), name);
        let mut weights = std::fs::read(at("m.weights")).unwrap();
        std::fs::write(at("short"), &weights[..weights.len() - 1]).unwrap();
        weights[30] ^= 1;
        std::fs::write(at("other"), weights).unwrap();
        std::fs::write(at("main.c"), PROGRAM.replace("LIBRARY", library)).unwrap();
        for standard in ["-std=c11", "-std=gnu17"] {
            let built = Command::new("cc")
                .args(["-Wall", "-Wextra", "-Werror", standard, "main.c", name, "-pthread"])
                .args(["-Wl,-rpath,$ORIGIN", "-o", "main"])
                .current_dir(folder.path())
                .output();
            let Ok(built) = built else { return eprintln!("skipped: there is no C compiler") };
            assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
            let ran = Command::new(at("main")).current_dir(folder.path()).output().unwrap();
            assert_eq!(String::from_utf8_lossy(&ran.stdout), "right\n", "{name}");
        }
        // Nothing but the C library is needed.
        if name == "m.so" {
            let bytes = std::fs::read(at(name)).unwrap();
            let needed = crate::object::symbols::undefined(name, &bytes).unwrap();
            let allowed = crate::object::symbols::ALLOWED_UNDEFINED;
            assert!(needed.iter().all(|it| allowed.contains(&it.as_str())), "{needed:?}");
        }
    }
    // And the header is one of C++.
    let built = Command::new("c++")
        .args(["-Wall", "-Wextra", "-Werror", "-x", "c++", "-fsyntax-only", "m.h"])
        .current_dir(folder.path())
        .output();
    let Ok(built) = built else { return eprintln!("skipped: there is no C++ compiler") };
    let text = String::from_utf8_lossy(&built.stderr);
    assert!(built.status.success() || text.contains("pragma once in main file"), "{text}");
}

#[test]
fn all_files_appear_or_none() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let executable = compiled(MODEL, "native");
    exported(&executable, folder.path(), "m.so");
    let names = ["m.so", "m.h", "m.weights"];
    let before = names.map(|name| std::fs::read(at(name)).unwrap());
    let other = compiled(&MODEL.replace("100,", "101,"), "native");
    // The weights are written, and then nothing can be linked.
    let broken = Executable { linker: Some(at("no linker")), ..other };
    let path = at("m.so");
    let weights = at("m.weights");
    let form = LinkForm::Library;
    let options = ExportOptions { weights: Some(&weights), ..ExportOptions::new(form) };
    assert!(broken.export_with(&path, &options, Outputs::default()).is_err());
    assert_eq!(names.map(|name| std::fs::read(at(name)).unwrap()), before);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3);
    // The same file twice is an error.
    let options = ExportOptions { weights: Some(&path), ..options };
    let error = executable.export_with(&path, &options, Outputs::default()).unwrap_err();
    assert!(error.to_string().contains("the same file, and two outputs"), "{error}");
    check(&Library::open(&path).unwrap().main().unwrap());
}
