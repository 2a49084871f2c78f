//! Programs that embed Tenon: the examples of `docs/embedding.md`, and what it promises of a session.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use tenon_compiler::executable::{CompileOptions, LinkForm};
use tenon_compiler::passes::{OwnPasses, Pass};
use tenon_compiler::runtime::dlpack::{DataType, TensorBuffer};
use tenon_compiler::runtime::model::Model;
use tenon_compiler::session::{
    Dims, FileJob, Installation, Observer, Options, Pipeline, Session, Validation, Watch,
};
use tenon_compiler::target::{Target, Targets};

use crate::house::{profile, tenon};

const DOUBLE: &str = "fn @main(%x: f32[n]) -> f32[n] {\n  %y = add(%x, %x)\n  ret %y\n}\n";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

pub(crate) fn session() -> Session {
    let registry = root().join("registry.toml");
    Session::open(&Installation::at(profile().join("tenon")), &[registry]).unwrap()
}

pub(crate) fn options() -> Options {
    Options {
        code: CompileOptions { threads: 1, ..CompileOptions::default() },
        ..Options::default()
    }
}

/// What a command that succeeds prints.
fn printed(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn the_rust_example_compiles_and_runs_a_model() {
    let mut example = Command::new(profile().join("examples/embed-rust"));
    example.arg(profile().join("tenon")).arg(root().join("registry.toml"));
    assert_eq!(printed(&mut example), "355 of 360 right\n");
}

/// It links neither LLVM nor anything of the compiler.
#[test]
fn the_rust_example_of_the_runtime_runs_a_library() {
    let folder = tempfile::tempdir().unwrap();
    let made = folder.path().join("digits.so");
    let mut compile = tenon();
    compile.arg("compile").arg(root().join("examples/digits/digits.onnx"));
    printed(compile.arg("-o").arg(&made));
    let mut example = Command::new(profile().join("examples/run-rust"));
    example.arg(&made).arg(root().join("examples/digits/test_images.npz"));
    let said = printed(&mut example);
    assert!(said.ends_with("of shape [360, 10]\n"), "{said}");
    let runtime = fs::read_to_string(root().join("host/runtime/Cargo.toml")).unwrap();
    for other in ["tenon-compiler", "tenon-codegen", "tenon-ir", "llvm", "inkwell"] {
        assert!(!runtime.contains(other), "the runtime depends on {other}");
    }
}

#[test]
fn the_c_example_runs_a_library_and_an_object() {
    let folder = tempfile::tempdir().unwrap();
    for (form, name) in [("so", "digits.so"), ("obj", "digits.o")] {
        let made = folder.path().join(name);
        let mut compile = tenon();
        compile.arg("compile").arg(root().join("examples/digits/digits.onnx"));
        printed(compile.args(["--emit", form, "-o"]).arg(&made));
        let program = folder.path().join("embed-c");
        let mut cc = Command::new("cc");
        cc.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-I"]).arg(folder.path());
        cc.arg(root().join("examples/embed-c/main.c")).arg(&made).arg("-o").arg(&program);
        printed(cc.arg("-Wl,-rpath,$ORIGIN"));
        assert_eq!(printed(&mut Command::new(&program)), "4 2 7 \nerror 3 of argument 1\n");
    }
}

/// What `DOUBLE` makes of some numbers.
fn doubled(session: &Session, options: &Options, numbers: &[f32]) -> Vec<f32> {
    let model = session.parse("double.ir", DOUBLE).unwrap();
    let executable = session.compile(&model, Target::native().unwrap(), options).unwrap();
    let mut input = TensorBuffer::zeros(&[numbers.len() as i64], DataType::F32).unwrap();
    let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    input.bytes_mut().copy_from_slice(&bytes);
    let output = executable.jit().unwrap().run(&[input.as_ref()], None).unwrap();
    output[0].bytes().as_chunks::<4>().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect()
}

#[test]
fn one_session_serves_several_threads() {
    let session = session();
    thread::scope(|scope| {
        let tasks: Vec<_> = (1..5)
            .map(|length| {
                let session = &session;
                scope.spawn(move || doubled(session, &options(), &vec![1.5; length]))
            })
            .collect();
        for (length, task) in (1..5).zip(tasks) {
            assert_eq!(task.join().unwrap(), vec![3.0; length]);
        }
    });
}

/// How many entries a cache has, beside what it notes of files.
fn entries_of(cache: &Path) -> Option<usize> {
    let names = fs::read_dir(cache).ok()?.map(|entry| entry.unwrap().file_name());
    Some(names.filter(|name| *name != "seen").count())
}

#[test]
fn a_session_compiles_files_to_files_and_may_keep_them() {
    let (session, dims) = (session(), Dims::new());
    let targets = Targets::from(Target::native().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("same.ir"), "fn @main(%x: f32[4]) {\n  ret %x\n}\n").unwrap();
    let (model, output) = (at("same.ir"), at("same.so"));
    let (model, output) = (model.as_path(), output.as_path());
    let form = LinkForm::Library;
    let job = FileJob {
        model,
        dims: &dims,
        targets: &targets,
        output,
        form,
        prefix: None,
        weights: None,
    };
    let pass = Pass::get(session.registry(), "relax.Normalize").unwrap();
    let cache = Options { cache: Some(at("cache")), ..options() };
    // A pass that is a value has no name by which it could be known again.
    let unnamed = Options { pipeline: Pipeline::Pass(pass), ..cache.clone() };
    for (options, entries) in
        [(&options(), None), (&unnamed, Some(0)), (&cache, Some(1)), (&cache, Some(1))]
    {
        session.compile_file(&job, options, &mut Watch::default()).unwrap();
        let found = entries_of(&at("cache"));
        assert_eq!(found, entries);
        assert_eq!(Model::open(output).unwrap().inputs().len(), 1);
        std::fs::remove_file(output).unwrap();
    }
    std::fs::remove_file(model).unwrap();
    let error = session.compile_file(&job, &cache, &mut Watch::default()).unwrap_err();
    assert!(error.to_string().contains("same.ir"), "{error}");
}

#[test]
fn a_pipeline_is_a_name_a_text_a_value_or_none() {
    let (session, target) = (session(), Target::native().unwrap());
    let model = session.parse("double.ir", DOUBLE).unwrap();
    let pass = Pass::get(session.registry(), "relax.Normalize").unwrap();
    for (pipeline, passes) in [
        (Pipeline::None, 0),
        (Pipeline::Pass(pass), 1),
        (Pipeline::Text("relax.Normalize, relax.DeadCodeElimination".to_owned()), 2),
    ] {
        let options = Options { pipeline, ..options() };
        assert_eq!(session.plan(&options).unwrap().passes().count(), passes);
        let lowered = session.lower(&model, &target, &options, &mut Watch::default()).unwrap();
        // Behind a part of the passes there is no code to be had, and the error says which ones are missing.
        let error = session.generate(&lowered, &target, &options).unwrap_err();
        assert!(error.to_diagnostics().0[0].render(false).contains("relax."), "{error}");
    }
    let named = Options { pipeline: Pipeline::Text("default".to_owned()), ..options() };
    assert_eq!(doubled(&session, &named, &[2.0]), [4.0]);
    let lowered = session.lower(&model, &target, &named, &mut Watch::default()).unwrap();
    let none = Options { pipeline: Pipeline::None, ..options() };
    session.compile(&lowered.into(), &target, &none).unwrap();
}

/// A pass over the module that changes nothing and counts its runs.
fn counting(name: &str, runs: &Arc<AtomicUsize>) -> Pass {
    let runs = runs.clone();
    Pass::module(name, move |module, _| {
        runs.fetch_add(1, Ordering::Relaxed);
        Ok(module.clone())
    })
}

#[test]
fn a_pipeline_names_passes_of_the_programs_own() {
    let runs = Arc::new(AtomicUsize::new(0));
    let needs = counting("mine.Needs", &runs).requires_name("mine.Count");
    let group = Pass::sequential([counting("inner", &runs), counting("inner", &runs)]);
    let session = session().with_pass(counting("mine.Count", &runs)).unwrap();
    let session = session.with_pass(needs).unwrap().with_pass(group.named("mine.Both")).unwrap();
    let text = |text: &str| Options { pipeline: Pipeline::Text(text.to_owned()), ..options() };
    // Between phases of the registry's; a requirement and a group.
    let whole = "phase(ingest), mine.Count, phase(optimize), phase(legalize), mine.Both, phase(fuse), phase(plan), \
                 phase(target), phase(builtin), mine.Needs";
    assert_eq!(doubled(&session, &text(whole), &[4.0]), [8.0]);
    assert_eq!(runs.swap(0, Ordering::Relaxed), 5);
    let off = Options { disabled: vec!["mine.Count".to_owned()], ..text("mine.Count, mine.Both") };
    let (model, target) = (session.parse("double.ir", DOUBLE).unwrap(), Target::native().unwrap());
    session.lower(&model, &target, &off, &mut Watch::default()).unwrap();
    assert_eq!(runs.load(Ordering::Relaxed), 2);
    // Nothing is kept of what they did.
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("double.ir"), DOUBLE).unwrap();
    let (model, output, dims) = (at("double.ir"), at("double.so"), Dims::new());
    let (model, output, form) = (model.as_path(), output.as_path(), LinkForm::Library);
    let targets = Targets::from(target);
    let job = FileJob {
        model,
        dims: &dims,
        targets: &targets,
        output,
        form,
        prefix: None,
        weights: None,
    };
    let kept = Options { cache: Some(at("cache")), ..text(whole) };
    session.compile_file(&job, &kept, &mut Watch::default()).unwrap();
    assert_eq!(entries_of(&at("cache")), Some(0));

    let refused = |text_of: &str| {
        let error = session.plan(&text(text_of)).unwrap_err();
        error.to_diagnostic().render(false)
    };
    let options_given = refused("mine.Count{depth=2}");
    assert!(options_given.contains("the program's own, and takes no options"), "{options_given}");
    let unknown = refused("mine.Cuont");
    assert!(unknown.contains("did you mean the program's own `mine.Count`?"), "{unknown}");
    for (name, why) in [
        ("mine.Count", "a pass that was registered before has that name"),
        ("default", "a pipeline has that name"),
        ("Normalize", "a plugin's pass has that name"),
        ("two words", "names are made of"),
    ] {
        let mut own = OwnPasses::new();
        own.register(session.registry(), counting("mine.Count", &runs)).unwrap();
        let error = own.register(session.registry(), counting(name, &runs)).unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
    }
}

/// Writes down what it is told.
#[derive(Default)]
struct Heard<'a>(Option<&'a mut Vec<String>>);

impl Observer for Heard<'_> {
    fn begins(&mut self, what: &str) {
        self.0.iter_mut().for_each(|heard| heard.push(what.to_owned()));
    }

    fn says(&mut self, text: &str) {
        self.0.iter_mut().for_each(|heard| heard.push(text.to_owned()));
    }
}

#[test]
fn an_observer_hears_and_a_flag_stops() {
    let (mut heard, flag) = (Vec::new(), Arc::new(AtomicBool::new(false)));
    let session = session().cancelled_by(flag.clone());
    let (model, target) = (session.parse("double.ir", DOUBLE).unwrap(), Target::native().unwrap());
    let compared = Options { validate: Some(Validation::Compiled), ..options() };
    let mut watch = Watch { observer: Box::new(Heard(Some(&mut heard))), ..Watch::default() };
    session.lower(&model, &target, &compared, &mut watch).unwrap();
    drop(watch);
    assert_eq!(heard[0], "comparing compiled code");
    assert!(heard[1].contains("computes what the evaluator does"), "{heard:?}");

    flag.store(true, Ordering::Relaxed);
    let error = session.compile(&model, &target, &options()).unwrap_err();
    assert!(error.is_cancelled(), "{error}");
    flag.store(false, Ordering::Relaxed);
    assert_eq!(doubled(&session, &options(), &[1.0]), [2.0]);
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    let session = session();
    let error = session.parse("bad.ir", "fn @main(%x: f32[4]) { ret exp(%y) }").unwrap_err();
    let told = error.to_diagnostics().0[0].render(false);
    assert!(told.contains("bad.ir:1:") && told.contains("%y"), "{told}");

    let name = PathBuf::from("broken.onnx");
    let error = session.read_onnx_bytes(&name, vec![0xff; 10], &Dims::new()).unwrap_err();
    assert!(error.to_string().contains("broken.onnx"), "{error}");
    let digits = root().join("examples/digits/digits.onnx");
    let bytes = std::fs::read(&digits).unwrap();
    let dims = Dims::from([("batch".to_owned(), 2)]);
    let inputs = |model: tenon_compiler::session::Model| {
        let options = options();
        let target = Target::native().unwrap();
        let made = session.compile(&model, &target, &options).unwrap();
        made.signature().inputs[0].to_string()
    };
    let from_bytes = inputs(session.read_onnx_bytes(&digits, bytes, &dims).unwrap());
    assert_eq!(from_bytes, inputs(session.read(&digits, &dims).unwrap()));
    assert_eq!(from_bytes, "`image`: f32[2, 1, 8, 8]");
}
