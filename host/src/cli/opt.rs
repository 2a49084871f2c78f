//! `opt` and `check`.

use std::path::{Path, PathBuf};

use clap::Args;

use super::Global;
use super::input::{Dims, parse_dim, read_model, read_reproducer, write_module};
use super::output::{Failure, note, print};
use super::run_passes::{PassArgs, run_passes};
use crate::check::{Violation, check as check_module};
use crate::diagnostics::Diagnostics;
use crate::driver::Target;
use crate::registry::Registry;
use crate::text::{WeightsPolicy, print_module};

#[derive(Args)]
pub(super) struct OptArgs {
    /// A module's text or an .onnx model
    file: PathBuf,
    /// A pipeline's name or text: 'FoldConstant, FuseOps{max_depth=8}'; a reproducer brings its own
    #[arg(long, short = 'p')]
    pipeline: Option<String>,
    /// Where the module goes; standard output when left out
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    passes: PassArgs,
    /// Bind a symbolic dimension of an ONNX model
    #[arg(short = 'D', value_name = "NAME=VALUE", value_parser = parse_dim)]
    dims: Vec<(String, i64)>,
    /// Write large constants out in full on standard output
    #[arg(long)]
    full_constants: bool,
}

#[derive(Args)]
pub(super) struct CheckArgs {
    /// A module's text or an .onnx model
    file: PathBuf,
}

pub(super) fn check(global: &Global, args: &CheckArgs) -> Result<(), Failure> {
    let module = read_model(&args.file, Dims::new())?;
    // A text was checked when it was read; an imported model is now.
    let violations = check_module(&module);
    if !violations.is_empty() {
        let diagnostics = violations.iter().map(Violation::to_diagnostic).collect();
        return Err(Failure::from_diagnostics(Diagnostics(diagnostics)));
    }
    if global.json {
        let phase = module.phase().to_owned();
        return super::output::print_json(
            &serde_json::json!({ "functions": module.len(), "phase": phase }),
        );
    }
    print(format!(
        "{}: {} functions in phase {}, well formed\n",
        args.file.display(),
        module.len(),
        module.phase()
    ))
}

pub(super) fn opt(global: &Global, args: &OptArgs) -> Result<(), Failure> {
    let registry = global.open_registry()?;
    let module = read_model(&args.file, args.dims.iter().cloned().collect())?;
    let (pipeline, passes) = pipeline_of(&registry, &args.file, &args.pipeline, &args.passes)?;
    let target = Target::parse(&passes.target)?;
    let module = run_passes(&registry, &pipeline, &module, &target, &passes, None)?;
    match &args.output {
        Some(path) => write_module(&module, path),
        None => {
            let mut policy = match args.full_constants {
                true => WeightsPolicy::inline(),
                false => WeightsPolicy::elided(64),
            };
            print(print_module(&module, &mut policy))
        }
    }
}

/// The pipeline that a user gave, or the one of a reproducer with its level and target.
pub(super) fn pipeline_of(
    registry: &Registry,
    file: &Path,
    given: &Option<String>,
    passes: &PassArgs,
) -> Result<(String, PassArgs), Failure> {
    if let Some(pipeline) = given {
        return Ok((pipeline.clone(), passes.clone()));
    }
    let Some(reproducer) = read_reproducer(file) else {
        let message = format!("no pipeline is given, and {} is no reproducer", file.display());
        return Err(Failure::new(message).help("name one: --pipeline default"));
    };
    note(format!("reproducer of: {}", reproducer.error));
    for plugin in reproducer.other_plugins(registry) {
        note(format!("note: plugin {} {} is another file now", plugin.id, plugin.version));
    }
    let mut passes = passes.clone();
    (passes.opt_level, passes.target) = (reproducer.opt_level, reproducer.target);
    Ok((reproducer.pipeline, passes))
}
