//! One file test: IR in, IR or an error out. The grammar stands in `docs/testing.md`.

use std::collections::BTreeMap;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use libtest_mimic::{Failed, Trial};
use tenon_compiler::check::{Violation, check};
use tenon_compiler::diagnostics::Source;
use tenon_compiler::infer::infer_written;
use tenon_compiler::ir::{Context, Cx, Module};
use tenon_compiler::passes;
use tenon_compiler::passes::{Instrument, PassContext, Validate, VerifyEach, plan};
use tenon_compiler::registry::Registry;
use tenon_compiler::target::Target;
use tenon_compiler::text::{NoWeights, WeightsPolicy, parse_module, print_module};
use tenon_compiler::validate::Tolerance;

/// A test for each folder of `.ir` files below some, with the passes that a registry leads to, so that files share a process. A
/// folder is named after its path from `root` on. Where `filter` is not the name of one, each file is a test of its own.
pub(crate) fn trials(
    root: &Path,
    folders: &[PathBuf],
    registry: &Path,
    filter: Option<&str>,
) -> Vec<Trial> {
    let mut files = Vec::new();
    for folder in folders {
        collect(folder, &mut files);
    }
    files.sort();
    let name = |path: &Path| path.strip_prefix(root).unwrap_or(path).display().to_string();
    let mut groups: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for path in &files {
        groups.entry(name(path.parent().unwrap_or(root))).or_default().push(path.clone());
    }
    if filter.is_some_and(|filter| !groups.contains_key(filter)) {
        groups = files.into_iter().map(|path| (name(&path), vec![path])).collect();
    }
    let trial = |(name, files): (String, Vec<PathBuf>)| {
        let registry = registry.to_owned();
        Trial::test(name, move || run_files(&registry, &files))
    };
    groups.into_iter().map(trial).collect()
}

/// Each of some files, whatever the others do.
fn run_files(registry: &Path, files: &[PathBuf]) -> Result<(), Failed> {
    let registry = Registry::open(registry)?;
    let mut wrong = Vec::new();
    for path in files {
        let said = match catch_unwind(AssertUnwindSafe(|| run_file(&registry, path))) {
            Ok(Ok(())) => continue,
            Ok(Err(failed)) => failed.message().unwrap_or("it failed").to_owned(),
            Err(_) => "it panicked".to_owned(),
        };
        wrong.push(format!("{}: {said}", path.display()));
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n\n").into()) }
}

/// The `.ir` files below a folder.
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

/// What is done with the input.
enum Directive<'a> {
    /// A pipeline runs over it, and the module is checked before and after each pass.
    Pass(&'a str),
    /// It is checked.
    Check,
}

/// A file's directive and parts.
struct FileTest<'a> {
    first: &'a str,
    directive: Directive<'a>,
    /// What it is for, where the file says it.
    target: Option<&'a str>,
    /// How much results may differ, where the file says it.
    tolerance: Option<f64>,
    /// The optimization level, where the file says it.
    opt_level: Option<u8>,
    input: &'a str,
    /// `expect` or `error`.
    kind: &'a str,
    expected: &'a str,
}

impl<'a> FileTest<'a> {
    fn parse(text: &'a str) -> Result<Self, Failed> {
        let (first, rest) = text.split_once('\n').ok_or("the file is empty")?;
        let directive = match first.strip_prefix("//! pass ") {
            Some(pipeline) => Directive::Pass(pipeline),
            None if first == "//! check" => Directive::Check,
            None => return Err("the first line is not `//! pass PIPELINE` or `//! check`".into()),
        };
        let setting = |name: &str| {
            let mut lines = rest.lines().map_while(|line| line.strip_prefix("//! "));
            lines.find_map(|line| line.strip_prefix(name)).map(str::trim)
        };
        let target = setting("target ");
        let tolerance = setting("tolerance ").map(str::parse).transpose()?;
        let opt_level = setting("opt_level ").map(str::parse).transpose()?;
        for kind in ["expect", "error"] {
            let marker = format!("//! {kind}\n");
            if let Some((input, expected)) = rest.split_once(marker.as_str()) {
                let kind = if kind == "expect" { "expect" } else { "error" };
                return Ok(Self {
                    first,
                    directive,
                    target,
                    tolerance,
                    opt_level,
                    input,
                    kind,
                    expected,
                });
            }
        }
        Err("there is no line `//! expect` or `//! error`".into())
    }
}

fn run_file(registry: &Registry, path: &Path) -> Result<(), Failed> {
    let text = fs::read_to_string(path)?;
    let test = FileTest::parse(&text)?;
    let (kind, found) = match run(registry, path, &test) {
        Ok(found) => ("expect", found),
        Err(error) => ("error", error),
    };
    let found = found.trim_end();
    if kind == test.kind && found == test.expected.trim_end() {
        return Ok(());
    }
    if std::env::var_os("TENON_BLESS").is_some() {
        let blessed = format!("{}\n{}//! {kind}\n{found}\n", test.first, test.input);
        fs::write(path, blessed)?;
        return Ok(());
    }
    let expected = test.expected.trim_end();
    Err(format!("expected ({}):\n{expected}\n\nfound ({kind}):\n{found}", test.kind).into())
}

/// What the test finds: the text of the module that came out, or of the error.
fn run(registry: &Registry, path: &Path, test: &FileTest<'_>) -> Result<String, String> {
    let cx = context(registry, path);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let source = Source::new(name, test.input);
    let module =
        parse_module(&cx, &source, &mut NoWeights).map_err(|errors| errors.render(false))?;
    let module = infer_written(&module)
        .map_err(|errors| errors[0].1.to_diagnostic(&source).render(false))?;
    match test.directive {
        Directive::Pass(pipeline) => run_passes(registry, pipeline, test, &module)
            .map(|module| print_module(&module, &mut WeightsPolicy::inline())),
        Directive::Check => {
            let violations = check(&module);
            let text = |violation: &Violation| violation.in_text(&source).render(false);
            match violations.is_empty() {
                true => Ok("well formed".to_owned()),
                false => Err(violations.iter().map(text).collect::<Vec<_>>().join("\n\n")),
            }
        }
    }
}

/// The operators and rules that a test sees: those that are linked into this program, or for a plugin whose rules are asked by
/// passes of others all that a registry has.
fn context(registry: &Registry, path: &Path) -> Cx {
    let asks = |part: std::path::Component<'_>| {
        ["schedule-cpu", "schedule-cuda"].iter().any(|plugin| part.as_os_str() == *plugin)
    };
    if !path.components().any(asks) {
        return tenon_compiler::testing::cx();
    }
    Cx::with_operators(registry.operators())
}

fn run_passes(
    registry: &Registry,
    pipeline: &str,
    test: &FileTest<'_>,
    module: &Module,
) -> Result<Module, String> {
    let plan = plan(registry, pipeline).map_err(|error| error.to_string())?;
    // A fixed target: what a fixture shows does not depend on the machine.
    let target = match test.target {
        Some(named) => Target::parse(named).map_err(|error| error.to_string())?.attrs(module.cx()),
        None => module.cx().attrs(&[
            ("kind", "cpu".into()),
            ("vector_bits", 512i64.into()),
            ("vector_registers", 32i64.into()),
            ("threads", 4i64.into()),
        ]),
    };
    let mut instruments: Vec<Box<dyn Instrument>> = vec![Box::new(VerifyEach::default())];
    if test.tolerance != Some(f64::INFINITY) {
        let tolerance = test.tolerance.map_or_else(Tolerance::default, Tolerance::part);
        instruments.push(Box::new(Validate::new(0).with_tolerance(tolerance)));
    }
    let mut context =
        PassContext { target, instruments, opt_level: u8::MAX, ..PassContext::default() };
    if let Some(level) = test.opt_level {
        context.opt_level = level;
    }
    passes::run(registry, &plan, module, &mut context)
        .map_err(|error| error.to_diagnostic().render(false))
}
