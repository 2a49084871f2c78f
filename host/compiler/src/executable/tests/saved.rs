//! Executables in files.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::eval::Tensor;
use crate::executable::{CompileError, CompileOptions, Executable, LinkForm, SavedError, is_saved};
use crate::io::Outputs;
use crate::runtime::functions::Library;
use crate::runtime::model::Model;
use crate::target::{Target, Targets};

use super::run::{compile, module, numbers, reference, run};

/// Two functions with constants in common, an open extent, a choice of names in C, and an input that is updated in place.
const MODEL: &str = r#"module { system_lib_prefix = "net_" }

fn @main(%x: f32[4]) {
  %y: f32[4] = call_tir(@add, %x, const(f32[4], [1, 10, 100, 1000])) { out = f32[4] }
  ret %y
}

fn @other(%x: f32[4]) { global_symbol = "another" } {
  %a: f32[4] = call_tir(@add, %x, const(f32[4], [1, 10, 100, 1000])) { out = f32[4] }
  %y: f32[4] = call_tir(@add, %a, const(f32[4], [2, 2, 2, 2])) { out = f32[4] }
  ret %y
}

prim @add(%x: f32[4], %w: f32[4], out %y: f32[4]) {
  for %i in 0..4 {
    %y[%i] = %x[%i] + %w[%i]
  }
}
"#;

fn saved(executable: &Executable, path: &Path) {
    executable.save(path, Outputs::default()).unwrap_or_else(|error| panic!("{error}"));
}

fn loaded(path: &Path) -> Executable {
    Executable::load_from(path).unwrap_or_else(|error| panic!("{error}"))
}

fn check(model: &Model) {
    let inputs: Vec<Tensor> = model.inputs().iter().map(numbers).collect();
    let expected = reference(&module(MODEL), &inputs);
    assert_eq!(run(model, &inputs, 0)[0].bytes()[..], expected[0].bytes()[..]);
}

#[test]
fn it_is_what_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let executable = compile(&module(MODEL));
    saved(&executable, &at("m.exec"));
    assert!(is_saved(&at("m.exec")) && !is_saved(&at("none")) && !is_saved(folder.path()));
    let again = loaded(&at("m.exec"));
    // The file may go: it stays mapped.
    saved(&again, &at("again"));
    assert_eq!(fs::read(at("again")).unwrap(), fs::read(at("m.exec")).unwrap());
    assert!(is_saved(&at("again")));
    fs::remove_file(at("m.exec")).unwrap();
    assert_eq!(again.functions(), executable.functions());
    check(&again.jit().unwrap());
    let library = again.load().unwrap();
    let other = library.function("other").unwrap();
    let inputs: Vec<Tensor> = other.inputs().iter().map(numbers).collect();
    assert!(!run(&other, &inputs, 0).is_empty());
    // Libraries of both are the same bytes.
    for form in [LinkForm::Library, LinkForm::Object] {
        let made = [&executable, &again].map(|it| {
            let files = it.export(&at("m.so"), form, None, Outputs::default()).unwrap();
            assert_eq!(files.prefix, "net");
            fs::read_to_string(files.header.unwrap()).unwrap()
                + &format!("{:?}", fs::read(at("m.so")))
        });
        assert_eq!(made[0], made[1]);
    }
    again.export(&at("m.so"), LinkForm::Library, Some("p"), Outputs::default()).unwrap();
    check(&Library::open(&at("m.so")).unwrap().main().unwrap());
    let told = Executable::describe_saved(&at("again")).unwrap();
    assert_eq!(told.info.functions, executable.functions());
    assert_eq!(
        (told.prefix.as_deref(), told.bytes),
        (Some("net"), fs::metadata(at("again")).unwrap().len())
    );
}

#[test]
fn code_for_several_processors_shares_constants() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.exec");
    let options = CompileOptions { threads: 1, ..CompileOptions::default() };
    let one = |target: &Target| Executable::compile(&module(MODEL), target, &options).unwrap();
    let targets = Targets::parse("x86-64-v2/x86-64").unwrap();
    let executable = Executable::joined(targets.all().iter().map(one).collect()).unwrap();
    saved(&executable, &path);
    let bytes = fs::read(&path).unwrap();
    let row: Vec<u8> = [100f32, 1000f32].iter().flat_map(|it| it.to_le_bytes()).collect();
    assert_eq!(bytes.windows(8).filter(|window| *window == row).count(), 1);
    let again = loaded(&path);
    check(&again.jit().unwrap());
    let library = folder.path().join("m.so");
    again.export(&library, LinkForm::Library, None, Outputs::default()).unwrap();
    for processor in ["x86-64-v2", "x86-64"] {
        check(&Library::open_for(&library, processor).unwrap().main().unwrap());
    }
}

#[test]
fn what_is_damaged_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.exec");
    saved(&compile(&module(MODEL)), &path);
    let whole = fs::read(&path).unwrap();
    let refused = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        let told = Executable::describe_saved(&path).unwrap_err().to_string();
        let error = Executable::load_from(&path).unwrap_err();
        assert_eq!(told, error.to_string());
        match error {
            CompileError::Saved(error) => error,
            error => panic!("{error}"),
        }
    };
    for bytes in [&b""[..], b"text", &whole[..63], &[0; 4096]] {
        assert!(matches!(refused(bytes), SavedError::Foreign { .. }));
    }
    // A byte of each part, and the last.
    for at in [16, 24, 33, 64, 70, whole.len() / 2, whole.len() - 1] {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        let error = refused(&bytes);
        assert!(matches!(error, SavedError::Damaged { .. }), "{at}: {error}");
    }
    for length in [64, 100, whole.len() - 1] {
        assert!(matches!(refused(&whole[..length]), SavedError::Damaged { .. }));
    }
    let mut other = whole.clone();
    other[8] = 2;
    let error = refused(&other).to_string();
    assert!(error.contains("is an executable of version 2"), "{error}");
    assert!(Executable::load_from(&folder.path().join("none")).is_err());
    assert!(Executable::load_from(folder.path()).is_err());
    fs::write(&path, whole).unwrap();
    check(&loaded(&path).jit().unwrap());
}

#[test]
fn one_that_others_can_write_is_not_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap().join("m.exec");
    saved(&compile(&module(MODEL)), &path);
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o022, 0, "{mode:o}");
    fs::set_permissions(&path, Permissions::from_mode(0o666)).unwrap();
    let error = Executable::load_from(&path).unwrap_err().to_string();
    assert!(error.contains("everybody can write to"), "{error}");
    // What it says may be read.
    assert!(Executable::describe_saved(&path).is_ok());
    fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    assert!(Executable::load_from(&path).is_ok());
}

#[test]
fn what_takes_times_is_not_saved() {
    let folder = tempfile::tempdir().unwrap();
    let options = CompileOptions { threads: 1, is_profiled: true, ..CompileOptions::default() };
    let target = Target::native().unwrap();
    let executable = Executable::compile(&module(MODEL), &target, &options).unwrap();
    let path = folder.path().join("m.exec");
    let error = executable.save(&path, Outputs::default()).unwrap_err();
    assert!(matches!(error, CompileError::Saved(SavedError::Profiled)), "{error}");
    assert!(!path.exists());
}
