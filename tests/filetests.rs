//! File tests: IR in, a pipeline, IR or an error out.
//!
//! Each `.ir` file under `plugins/*/tests/` and `tests/ir/` is a test. The grammar stands in
//! `docs/testing.md`. With `TENON_BLESS=1` the expected parts are rewritten.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};
use tenon_host::diagnostics::Source;
use tenon_host::driver::run_plan;
use tenon_host::infer::infer_module;
use tenon_host::ir::{Context, Cx, Module};
use tenon_host::passes::{PassContext, plan};
use tenon_host::registry::Registry;
use tenon_host::text::{NoWeights, WeightsPolicy, parse_module, print_module};

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    collect(&root.join("plugins"), &mut files);
    collect(&root.join("tests/ir"), &mut files);
    files.sort();
    let trials = files
        .into_iter()
        .map(|path| {
            let name = path.strip_prefix(root).unwrap_or(&path).display().to_string();
            Trial::test(name, move || check(root, &path))
        })
        .collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// The `.ir` files below a folder that lie in a folder called `tests` or `ir`.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for path in entries.filter_map(|entry| entry.ok()).map(|entry| entry.path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "ir") {
                files.push(path);
            }
        }
    }
}

/// A file's directive and parts.
struct FileTest<'a> {
    pipeline: &'a str,
    input: &'a str,
    /// `expect` or `error`.
    kind: &'a str,
    expected: &'a str,
}

impl<'a> FileTest<'a> {
    fn parse(text: &'a str) -> Result<Self, Failed> {
        let (first, rest) = text.split_once('\n').ok_or("the file is empty")?;
        let pipeline =
            first.strip_prefix("//! pass ").ok_or("the first line is not `//! pass PIPELINE`")?;
        for kind in ["expect", "error"] {
            let marker = format!("//! {kind}\n");
            if let Some((input, expected)) = rest.split_once(marker.as_str()) {
                let kind = if kind == "expect" { "expect" } else { "error" };
                return Ok(Self { pipeline, input, kind, expected });
            }
        }
        Err("there is no line `//! expect` or `//! error`".into())
    }
}

fn check(root: &Path, path: &Path) -> Result<(), Failed> {
    let text = fs::read_to_string(path)?;
    let test = FileTest::parse(&text)?;
    let (kind, found) = match run(root, path, &test) {
        Ok(module) => ("expect", print_module(&module, &mut WeightsPolicy::inline())),
        Err(error) => ("error", error),
    };
    let found = found.trim_end();
    if kind == test.kind && found == test.expected.trim_end() {
        return Ok(());
    }
    if std::env::var_os("TENON_BLESS").is_some() {
        let blessed = format!("//! pass {}\n{}//! {kind}\n{found}\n", test.pipeline, test.input);
        fs::write(path, blessed)?;
        return Ok(());
    }
    let expected = test.expected.trim_end();
    Err(format!("expected ({}):\n{expected}\n\nfound ({kind}):\n{found}", test.kind).into())
}

fn run(root: &Path, path: &Path, test: &FileTest<'_>) -> Result<Module, String> {
    let registry =
        Registry::open(&root.join("registry.toml")).map_err(|error| error.to_string())?;
    let cx = Cx::new();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let source = Source::new(name, test.input);
    let module =
        parse_module(&cx, &source, &mut NoWeights).map_err(|errors| errors.render(false))?;
    let module = infer_module(&module).map_err(|errors| errors[0].1.to_string())?;
    let plan = plan(&registry, test.pipeline).map_err(|error| error.to_string())?;
    // A fixed target: what a fixture shows does not depend on the machine.
    let target = cx.attrs(&[
        ("kind", "cpu".into()),
        ("vector_bits", 512i64.into()),
        ("vector_registers", 32i64.into()),
    ]);
    let mut context = PassContext { target, ..PassContext::default() };
    run_plan(&registry, &plan, &module, &mut context).map_err(|error| error.to_string())
}
