//! Without one of its plugins the default pipeline does not run, and says what it lacks.

#[path = "models/program.rs"]
mod program;

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};

use program::{profile, run, succeed, tenon};

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let entries = fs::read_dir(root.join("plugins")).expect("the folder of plugins");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("it can be read").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    let libraries: Vec<String> =
        names.iter().map(|name| format!("libtenon_{}.so", name.replace('-', "_"))).collect();
    let mut trials = Vec::new();
    for missing in 0..=libraries.len() {
        let name = names.get(missing).map_or("with::all".into(), |name| format!("without::{name}"));
        let libraries = libraries.clone();
        trials.push(Trial::test(name, move || check(root, &libraries, missing)));
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// Compiles with all plugins but one, or with all where there is none of that number.
fn check(root: &Path, libraries: &[String], missing: usize) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let plugins = folder.path().join("plugins");
    fs::create_dir(&plugins)?;
    for (number, library) in libraries.iter().enumerate() {
        if number != missing {
            fs::copy(profile().join(library), plugins.join(library))?;
        }
    }
    let registry = folder.path().join("registry.toml");
    let text = fs::read_to_string(root.join("registry.toml"))?;
    fs::write(&registry, text.replace("\"target/release\"", "\"plugins\""))?;

    // A plugin none of whose passes the pipeline names is not missed.
    let explain = run(tenon().args(["pipeline", "explain", "default"]))?;
    let plan = String::from_utf8_lossy(&explain.stdout).into_owned();
    let is_missed = libraries.get(missing).is_some_and(|library| {
        let name =
            library.trim_start_matches("libtenon_").trim_end_matches(".so").replace('_', "-");
        plan.contains(&format!(" tenon.{name} "))
    });

    let output = folder.path().join("model.so");
    let mut compile = tenon();
    compile.arg("compile").arg(root.join("tests/models/mlp.onnx")).args(["-D", "batch=1"]);
    compile.arg("-o").arg(&output).env("TENON_REGISTRY", &registry);
    if !is_missed {
        return succeed(&mut compile);
    }
    let result = run(&mut compile)?;
    let said = String::from_utf8_lossy(&result.stderr);
    let wanted = [
        "error: no pass is called `".to_owned(),
        format!("searched in {}", plugins.display()),
        format!("--> {}:", registry.display()),
    ];
    let is_said = wanted.iter().all(|part| said.contains(part.as_str()));
    match result.status.code() {
        Some(1) if is_said && !output.exists() => Ok(()),
        code => Err(format!("it exits with {code:?} and says\n{said}").into()),
    }
}
