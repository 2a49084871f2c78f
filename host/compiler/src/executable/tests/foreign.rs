//! Code for other machines: made here, whatever this machine is.

use object::Architecture;

use crate::executable::{CompileOptions, Executable, LinkForm};
use crate::io::Outputs;
use crate::target::Target;

use super::run::module;

/// A constant, a parallel loop, and a bias that is not a power of two.
const MODEL: &str = "fn @main(%x: f32[6, 5]) {
  %y: f32[6, 5] = call_tir(@add, %x, const(f32[5], [1, 10, 100, 1000, 3])) { out = f32[6, 5] }
  ret %y
}

prim @add(%x: f32[6, 5], %y: f32[5], out %z: f32[6, 5]) {
  for %i in 0..6 parallel {
    for %j in 0..5 {
      %z[%i, %j] = %x[%i, %j] + %y[%j]
    }
  }
}
";

/// What `target` gets, as bytes, or why it does not.
fn exported(target: &str, form: LinkForm) -> Result<Vec<u8>, String> {
    let target = Target::parse(target).unwrap();
    let options = CompileOptions { threads: 1, ..CompileOptions::default() };
    let executable = Executable::compile(&module(MODEL), &target, &options).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.o");
    let files = executable.export(&path, form, None, Outputs::default());
    let files = files.map_err(|error| error.to_string())?;
    Ok(std::fs::read(files.binary).unwrap())
}

#[test]
fn other_processors_get_objects_and_libraries() {
    for (target, architecture) in [
        ("x86-64", Architecture::X86_64),
        ("neoverse-n1", Architecture::Aarch64),
        ("riscv64", Architecture::Riscv64),
        ("riscv64-v", Architecture::Riscv64),
    ] {
        for form in [LinkForm::Object, LinkForm::Library] {
            let bytes = exported(target, form).unwrap_or_else(|error| panic!("{target}: {error}"));
            let file = object::File::parse(&bytes[..]).unwrap();
            assert_eq!(object::Object::architecture(&file), architecture, "{target}");
        }
    }
}

#[test]
fn webassembly_gets_an_object_and_no_library() {
    let object = exported("wasm32", LinkForm::Object).unwrap_or_else(|error| panic!("{error}"));
    assert!(object.starts_with(b"\0asm"));
    let problem = exported("wasm32", LinkForm::Library).unwrap_err();
    assert!(problem.contains("wasm32 has no shared libraries; --emit obj"), "{problem}");
}
