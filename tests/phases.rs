//! The text form holds whatever a module is at: after each phase of the default pipeline its text can be
//! checked, and reading and writing it gives the same bytes.

#[path = "models/program.rs"]
mod program;

use std::path::Path;
use std::process::ExitCode;
use std::{env, fs};

use libtest_mimic::{Arguments, Failed, Trial};

use program::{succeed, tenon};

/// File, and the dimensions to bind.
const MODELS: &[(&str, &[&str])] = &[
    ("tests/models/mlp.onnx", &["-D", "batch=3"]),
    ("examples/digits/digits.onnx", &["-D", "batch=3"]),
    (".cache/models/random_squeezenet.onnx", &[]),
    (".cache/models/random_shufflenet.onnx", &[]),
];

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let phases = phases(root);
    let mut trials = Vec::new();
    for &(model, dims) in MODELS {
        let path = root.join(model);
        let missing = !path.exists();
        if missing && !env::args().any(|arg| arg == "--list") {
            eprintln!("{model} is skipped: scripts/setup-python.sh --models was not run");
        }
        for count in 0..=phases.len() {
            let last = phases[..count].last().map_or("import", String::as_str);
            let stem = path.file_stem().unwrap_or_default().to_string_lossy();
            let path = path.clone();
            let pipeline: Vec<String> =
                phases[..count].iter().map(|phase| format!("phase({phase})")).collect();
            let run = move || check(&path, dims, &pipeline.join(", "));
            trials.push(Trial::test(format!("{stem}::{last}"), run).with_ignored_flag(missing));
        }
    }
    trials.push(Trial::test("mlp::at_run_time", move || at_run_time(root)));
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// The passes that bring a module into the form of `docs/vm.md`.
const EXECUTED: &str = "phase(ingest), phase(optimize), phase(legalize), phase(fuse), enter(plan), \
    relax.RewriteDataflowReshape, relax.ToNonDataflow, relax.RemovePurityChecking, relax.CallTIRRewrite, raf.InplaceUpdate, \
    relax.StaticPlanBlockMemory, relax.LowerAllocTensor, relax.KillAfterLastUse, phase(target), phase(builtin), \
    relax.ComputePrimValue, relax.VMBuiltinLower, relax.VMShapeLower";

/// A model whose batch is not bound is brought into the form of an executor that finds out shapes, and computes the
/// same behind each pass.
fn at_run_time(root: &Path) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let (model, file) = (root.join("tests/models/mlp.onnx"), folder.path().join("m.ir"));
    let options = ["opt", "--pipeline", EXECUTED, "--validate", "--verify-each", "-o"];
    succeed(tenon().args(options).arg(&file).arg(model))?;
    match fs::read_to_string(file)?.contains("vm.match_shape(%x, %heap)") {
        true => Ok(()),
        false => Err("the shape of its input is not matched".into()),
    }
}

/// The phases of the default pipeline.
fn phases(root: &Path) -> Vec<String> {
    let text = fs::read_to_string(root.join("registry.toml")).expect("registry.toml is there");
    let registry: toml::Table = text.parse().expect("registry.toml is TOML");
    let phases = registry["pipelines"]["default"]["phases"].as_array().expect("a list of phases");
    phases.iter().map(|phase| phase.as_str().expect("a phase has a name").to_owned()).collect()
}

fn check(model: &Path, dims: &[&str], pipeline: &str) -> Result<(), Failed> {
    let (first, second) = (tempfile::tempdir()?, tempfile::tempdir()?);
    // The text names its weights file, so both are called the same.
    let (before, after) = (first.path().join("m.ir"), second.path().join("m.ir"));
    let emit = ["compile", "--emit", "ir", "--pipeline", pipeline];
    succeed(tenon().args(emit).args(dims).arg(model).arg("-o").arg(&before))?;
    succeed(tenon().arg("check").arg(&before))?;
    succeed(tenon().args(["opt", "--pipeline", ""]).arg(&before).arg("-o").arg(&after))?;
    for extension in ["ir", "safetensors"] {
        let [before, after] = [&before, &after].map(|path| path.with_extension(extension));
        if before.exists() != after.exists()
            || before.exists() && fs::read(&before)? != fs::read(&after)?
        {
            return Err(format!("m.{extension} is not the same after it was read").into());
        }
    }
    Ok(())
}
