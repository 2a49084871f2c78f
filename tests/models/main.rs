//! Whole networks against ONNX Runtime: each model of `models.toml` is compiled and run by the
//! `tenon` program, and its outputs are compared with the stored ones (rtol 1e-3, atol 1e-4).
//!
//! Networks under `.cache` come from the onnx wheel (`scripts/setup-python.sh --models`). One that
//! is not there is skipped, and says why.

mod fill;
mod program;

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};

use libtest_mimic::{Arguments, Failed, Trial};
use serde::Deserialize;

use program::{succeed, tenon};
use tenon_compiler::io::{Array, ArrayView, NpyType, read_npz, write_npz};

const RTOL: f32 = 1e-3;
const ATOL: f32 = 1e-4;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Models {
    model: Vec<Model>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Model {
    name: String,
    file: PathBuf,
    golden: String,
    #[serde(default)]
    dims: BTreeMap<String, u64>,
    inputs: Vec<Input>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    name: String,
    shape: Vec<usize>,
}

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let list =
        fs::read_to_string(root.join("tests/models/models.toml")).expect("models.toml is there");
    let models: Models = toml::from_str(&list).expect("models.toml is a list of models");
    let reason = fs::read_to_string(root.join(".cache/models-unavailable"))
        .unwrap_or_else(|_| "scripts/setup-python.sh --models was not run".into());

    let mut trials = vec![Trial::test("fill_agrees_with_python", fill_agrees_with_python)];
    for model in models.model {
        let missing = !root.join(&model.file).exists();
        if missing && !env::args().any(|arg| arg == "--list") {
            eprintln!("{} is skipped: {}", model.name, reason.trim());
        }
        let model = Arc::new(model);
        for level in LEVELS {
            let name = match level {
                None => model.name.clone(),
                Some(_) if !AT_ALL_LEVELS.contains(&model.name.as_str()) => continue,
                Some(level) => format!("{}_at_level_{level}", model.name),
            };
            let model = model.clone();
            let trial = Trial::test(name, move || check(root, &model, level));
            trials.push(trial.with_ignored_flag(missing));
        }
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// The optimization levels: the default one, and the others.
const LEVELS: [Option<&str>; 5] = [None, Some("0"), Some("1"), Some("2"), Some("4")];

/// Small networks with convolutions of all kinds, normalization and branches.
const AT_ALL_LEVELS: [&str; 2] = ["light_squeezenet", "light_shufflenet"];

/// Compiles and runs one model, and compares what it says with what is stored.
fn check(root: &Path, model: &Model, level: Option<&str>) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let at = |name: &str| folder.path().join(name);

    let mut compile = tenon();
    compile.arg("compile").arg(root.join(&model.file)).arg("-o").arg(at("model.so"));
    compile.arg("--verify-each");
    if let Some(level) = level {
        compile.args(["--opt-level", level]);
    }
    for (name, value) in &model.dims {
        compile.arg("-D").arg(format!("{name}={value}"));
    }
    succeed(&mut compile)?;

    let mut inputs = Vec::new();
    for Input { name, shape } in &model.inputs {
        let values = fill::fill(&format!("{}/{name}", model.golden), shape.iter().product());
        inputs.push((
            name,
            shape,
            values.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>(),
        ));
    }
    let views: Vec<_> = inputs
        .iter()
        .map(|(name, shape, data)| (name.as_str(), ArrayView { dtype: NpyType::F32, shape, data }))
        .collect();
    write_npz(&at("inputs.npz"), &views)?;
    succeed(
        tenon()
            .arg("run")
            .arg(at("model.so"))
            .arg("--inputs")
            .arg(at("inputs.npz"))
            .arg("--output")
            .arg(at("outputs.npz")),
    )?;

    let golden = root.join("tests/models/goldens").join(&model.golden).with_extension("npz");
    let (expected, got) = (read_npz(&golden)?, read_npz(&at("outputs.npz"))?);
    for (name, want) in &expected {
        let Some((_, have)) = got.iter().find(|have| have.0 == *name) else {
            let names: Vec<_> = got.iter().map(|have| &have.0).collect();
            return Err(format!("no output {name}; there are {names:?}").into());
        };
        compare(have, want).map_err(|problem| format!("{name}: {problem}"))?;
    }
    if got.len() != expected.len() {
        return Err(format!("{} outputs, expected {}", got.len(), expected.len()).into());
    }
    Ok(())
}

/// Every element is within `ATOL + RTOL * |want|`, or the worst one is named.
fn compare(have: &Array, want: &Array) -> Result<(), String> {
    if (have.dtype, &have.shape) != (want.dtype, &want.shape) {
        return Err(format!(
            "{} {:?}, expected {} {:?}",
            have.dtype.name(),
            have.shape,
            want.dtype.name(),
            want.shape
        ));
    }
    let floats = |a: &Array| -> Vec<f32> {
        a.data.as_chunks().0.iter().map(|&x| f32::from_le_bytes(x)).collect()
    };
    let (h, w) = (floats(have), floats(want));
    // How many tolerances apart; not a number is infinitely far.
    let far = |h: f32, w: f32| {
        let far = (h - w).abs() / (ATOL + RTOL * w.abs());
        if far.is_nan() { f32::INFINITY } else { far }
    };
    let distances: Vec<f32> = h.iter().zip(&w).map(|(&h, &w)| far(h, w)).collect();
    let wrong = distances.iter().filter(|&&d| d > 1.0).count();
    let Some(worst) = (0..h.len()).max_by(|&a, &b| distances[a].total_cmp(&distances[b])) else {
        return Ok(());
    };
    if wrong == 0 {
        return Ok(());
    }
    Err(format!(
        "{wrong} of {} elements are off; the worst is element {worst}: {}, ONNX Runtime says {} \
         ({:.1} times what is allowed)",
        h.len(),
        h[worst],
        w[worst],
        distances[worst],
    ))
}

/// `python3 -c 'from fill import fill; print([hex(x) for x in fill("tenon", [4]).view("u4")])'`
fn fill_agrees_with_python() -> Result<(), Failed> {
    let bits: Vec<u32> = fill::fill("tenon", 4).iter().map(|x| x.to_bits()).collect();
    if bits != [0xBF24_A232, 0xBE98_20FC, 0x3EAA_BD50, 0x3F14_69BE] {
        return Err(format!("{bits:x?}").into());
    }
    Ok(())
}
