//! Code generators of vendors: what `plugins/byoc-example` takes over runs, and gives the numbers that our own
//! code gives.

#[allow(dead_code, reason = "other tests use the rest")]
#[path = "models/program.rs"]
mod program;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use program::tenon;
use tenon_compiler::io::{Array, NpyType, read_npz, write_npz};

/// Chains of what the example takes, between operators that it does not; sizes that are no multiple of a vector;
/// single elements; a constant of every element; two results.
const MODEL: &str = "
fn @main(%x: f32[3, 7], %y: f32[3, 7], %s: f32[]) -> (f32[3, 7], f32[3, 7]) {
  %a = add(%x, %y)
  %b = nn.relu(%a)
  %c = multiply(%b, const(f32[], 2.5))
  %d = exp(%c)
  %e = subtract(%d, %y)
  %f = divide(%e, %s)
  %g = maximum(%f, const(f32[7], [-1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0]))
  %h = abs(%x)
  %i = sqrt(%h)
  %j = minimum(%i, %s)
  %k = negative(%j)
  ret (%g, %k)
}
";

/// The example enabled, as a user enables it.
const ENABLED: &str =
    "schema = 1\n[passes.\"relax.FuseOpsByPattern\"]\noptions = { vendors = [\"example\"] }\n";

struct House(tempfile::TempDir);

impl House {
    fn new() -> Self {
        let house = Self(tempfile::tempdir().expect("a folder"));
        fs::write(house.path("model.ir"), MODEL).expect("it can be written");
        fs::write(house.path("enabled.toml"), ENABLED).expect("it can be written");
        house
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn inputs(&self) -> PathBuf {
        let tensor = |len: usize, scale: f32| -> Array {
            let value = |index: usize| (index as f32 - len as f32 / 2.0) * scale;
            let data = (0..len).flat_map(|index| value(index).to_le_bytes()).collect();
            let shape = if len == 1 { vec![] } else { vec![3, 7] };
            Array { dtype: NpyType::F32, shape, data }
        };
        let (x, y, s) = (tensor(21, 0.1), tensor(21, -0.03), tensor(1, -1.5));
        let path = self.path("in.npz");
        write_npz(&path, &[("x", x.view()), ("y", y.view()), ("s", s.view())])
            .expect("it is written");
        path
    }

    /// What a model or library computes.
    fn outputs(&self, run: &mut Command, name: &str) -> Vec<f32> {
        let output = self.path(name);
        run.arg("--inputs").arg(self.inputs()).arg("--output").arg(&output);
        succeed(run);
        let arrays = read_npz(&output).expect("it was written");
        let bytes = arrays.iter().flat_map(|(_, array)| array.data.chunks_exact(4));
        bytes.map(|four| f32::from_le_bytes(four.try_into().expect("four bytes"))).collect()
    }
}

#[track_caller]
fn succeed(command: &mut Command) -> String {
    let output = command.output().expect("the program is there");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{command:?}: {}\n{said}", output.status);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[track_caller]
fn assert_close(found: &[f32], expected: &[f32]) {
    assert_eq!(found.len(), expected.len());
    for (index, (found, expected)) in found.iter().zip(expected).enumerate() {
        let is_close = (found - expected).abs() <= 1e-6 + 1e-5 * expected.abs();
        assert!(is_close, "element {index} is {found}, and should be {expected}");
    }
}

#[test]
fn a_vendors_code_computes_what_ours_does() {
    let house = House::new();
    let model = house.path("model.ir");
    let ours = house.outputs(tenon().arg("run").arg(&model), "ours.npz");
    let mut run = tenon();
    let run = run.arg("run").arg(&model).arg("--registry").arg(house.path("enabled.toml"));
    assert_close(&house.outputs(run, "theirs.npz"), &ours);

    // A library needs neither the host nor the vendor's plugin.
    let library = house.path("model.so");
    let registry = house.path("enabled.toml");
    succeed(
        tenon().arg("compile").arg(&model).arg("--registry").arg(registry).arg("-o").arg(&library),
    );
    assert_close(&house.outputs(tenon().arg("run").arg(&library), "library.npz"), &ours);
}

#[test]
fn c268_each_function_becomes_a_call_of_one_object() {
    let house = House::new();
    let text = after_codegen(&house, &house.path("model.ir"));
    let calls = text.matches("eval extern").count();
    assert!(calls >= 2, "{text}");
    assert_eq!(text.matches("= call_tir(").count(), calls, "{text}");
    assert!(!text.contains("Composite") && !text.contains("Codegen"), "{text}");
    let objects: std::collections::BTreeSet<&str> = text
        .match_indices("@example.o")
        .map(|(at, _)| text[at..].split(')').next().unwrap_or(""))
        .collect();
    assert_eq!(objects.len(), 1, "{text}");
}

#[test]
fn the_module_is_compiled_later_without_the_vendor() {
    let house = House::new();
    let model = house.path("model.ir");
    let ours = house.outputs(tenon().arg("run").arg(&model), "ours.npz");
    let text = after_codegen(&house, &model);
    let later = house.path("generated.ir");
    assert!(text.starts_with("weights") || text.contains("weights"), "{text}");
    succeed(tenon().arg("check").arg(&later));
    assert_close(&house.outputs(tenon().arg("run").arg(&later), "later.npz"), &ours);
}

/// The module when code was generated, in `generated.ir`.
fn after_codegen(house: &House, model: &Path) -> String {
    let pipeline = "relax.Normalize, relax.FuseOpsByPattern{vendors=[\"example\"]}, \
                    relax.MergeCompositeFunctions, relax.RunCodegen";
    let output = house.path("generated.ir");
    succeed(
        tenon()
            .arg("opt")
            .arg(model)
            .args(["--verify-each", "--pipeline", pipeline])
            .arg("-o")
            .arg(&output),
    );
    fs::read_to_string(output).expect("it was written")
}

#[test]
fn c269_a_function_that_is_called_twice_is_compiled_once() {
    let house = House::new();
    let model = house.path("twice.ir");
    let text = "
fn @main(%x: f32[4]) -> f32[4] {
  %a = @f(%x)
  %b = exp(%a)
  %c = @f(%b)
  ret %c
}
private fn @relu(%x: f32[4]) -> f32[4] { Composite = \"example.relu\" } {
  %a = nn.relu(%x)
  ret %a
}
private fn @f(%x: f32[4]) -> f32[4] { Codegen = \"example\" } {
  %a = @relu(%x)
  ret %a
}
";
    fs::write(&model, text).expect("it can be written");
    let text = succeed(tenon().arg("opt").arg(&model).args(["--pipeline", "relax.RunCodegen"]));
    assert_eq!(text.matches("eval extern").count(), 1, "{text}");
    assert_eq!(text.matches("call_tir(@f").count(), 2, "{text}");
}

#[test]
fn c253_c270_tensors_of_unknown_size_are_left_alone() {
    let house = House::new();
    let model = house.path("unknown.ir");
    let text = "fn @first(%x: f32[n]) -> f32[n] {\n  %a = nn.relu(%x)\n  ret %a\n}\n";
    fs::write(&model, text).expect("it can be written");
    assert!(!after_codegen(&house, &model).contains("extern"));
}

#[test]
fn c271_an_unknown_code_generator_is_named() {
    let house = House::new();
    let model = house.path("model.ir");
    let pipeline = "relax.FuseOpsByPattern{vendors=[\"exampel\"]}";
    let output =
        tenon().arg("opt").arg(&model).args(["--pipeline", pipeline]).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("no plugin has a code generator `exampel`: did you mean `example`?"),
        "{said}"
    );
    assert!(said.contains("looked in"), "{said}");
}

#[test]
fn c272_the_same_model_gives_the_same_object() {
    let house = House::new();
    let model = house.path("model.ir");
    let first = (after_codegen(&house, &model), fs::read(house.path("generated.safetensors")).ok());
    let second =
        (after_codegen(&house, &model), fs::read(house.path("generated.safetensors")).ok());
    assert!(first.1.is_some(), "the object lies beside the text");
    assert_eq!(first, second);
}

#[test]
fn what_a_code_generator_cannot_take_is_an_error_with_its_words() {
    let house = House::new();
    let model = house.path("forced.ir");
    let text = "
fn @main(%x: f32[4]) -> f32[4] {
  %a = @f(%x)
  ret %a
}
private fn @f(%x: f32[4]) -> f32[4] { Codegen = \"example\" } {
  %a = exp(%x)
  ret %a
}
";
    fs::write(&model, text).expect("it can be written");
    let output = tenon()
        .arg("opt")
        .arg(&model)
        .args(["--pipeline", "relax.RunCodegen"])
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("code generator `example`: the operator `exp` is none of those it takes"),
        "{said}"
    );
}

#[test]
fn a_plugin_with_a_code_generator_cannot_be_isolated() {
    let house = House::new();
    let registry = house.path("isolated.toml");
    let isolated = format!("{ENABLED}[plugins.isolate]\n\"tenon.byoc-example\" = true\n");
    fs::write(&registry, isolated).expect("it can be written");
    let mut compile = tenon();
    compile.arg("compile").arg(house.path("model.ir")).arg("--registry").arg(&registry);
    let output = compile.arg("-o").arg(house.path("model.so")).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("`tenon.byoc-example` has code generators, which run in this process"),
        "{said}"
    );
}

#[test]
fn validation_says_whose_code_the_evaluator_cannot_run_and_goes_on() {
    let house = House::new();
    let mut opt = tenon();
    opt.arg("opt").arg(house.path("model.ir")).args(["--pipeline", "default", "--validate"]);
    let output = opt.arg("--registry").arg(house.path("enabled.toml")).output();
    let output = output.expect("the program is there");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}");
    let names_it = "_example` is compiled code, which the reference evaluator cannot run";
    assert!(said.contains("@main: not compared any more: ") && said.contains(names_it), "{said}");

    // Compiled code can be run, with the vendor's in it.
    let mut opt = tenon();
    opt.arg("opt").arg(house.path("model.ir")).args(["--pipeline", "default"]);
    opt.arg("--validate=compiled").arg("--registry").arg(house.path("enabled.toml"));
    let output = opt.output().expect("the program is there");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("what was compiled of @main computes what the evaluator does"), "{said}");
}
