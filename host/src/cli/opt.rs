//! `opt` and `check`.

use std::path::PathBuf;

use clap::Args;

use super::input::{Dims, parse_dim, read_model, write_module};
use super::output::{Failure, note, print};
use super::progress::Progress;
use super::{Global, input};
use crate::border::ReportLevel;
use crate::check::{Violation, check as check_module};
use crate::diagnostics::{Diagnostic, Diagnostics};
use crate::driver::{self, Target};
use crate::ir::Module;
use crate::passes::{
    Instrument, PassContext, PrintIr, PrintWhen, StepInfo, StepOutcome, Timing, Validate,
    VerifyEach, plan,
};
use crate::registry::Registry;
use crate::text::{WeightsPolicy, print_module};

#[derive(Args)]
pub(super) struct OptArgs {
    /// A module's text or an .onnx model
    file: PathBuf,
    /// A pipeline's name or text: 'FoldConstant, FuseOps{max_depth=8}'
    #[arg(long, short = 'p')]
    pipeline: String,
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

/// How passes run, for every command that runs them.
#[derive(Args)]
pub(super) struct PassArgs {
    /// The target: `llvm` is this machine; `x86_64-linux-gnu,cpu=znver4` another
    #[arg(long, default_value = "llvm")]
    pub(super) target: String,
    /// Passes above this level do not run
    #[arg(long, default_value_t = 2, value_name = "N")]
    opt_level: u8,
    /// Passes that do not run
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    disable: Vec<String>,
    /// Passes that run whatever their level
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    require: Vec<String>,
    /// Print the module before these passes, or before all
    #[arg(long, value_delimiter = ',', num_args = 0.., value_name = "NAMES")]
    print_before: Option<Vec<String>>,
    /// Print the module after these passes, or after all
    #[arg(long, value_delimiter = ',', num_args = 0.., value_name = "NAMES")]
    print_after: Option<Vec<String>>,
    /// Print the functions that these passes, or all, change
    #[arg(long, value_delimiter = ',', num_args = 0.., value_name = "NAMES")]
    print_changed: Option<Vec<String>>,
    /// Check that the module is well formed before the first pass and after each
    #[arg(long)]
    verify_each: bool,
    /// Compare what the module computes before and after each pass, on random inputs from this seed
    #[arg(long, value_name = "SEED", num_args = 0..=1, default_missing_value = "0")]
    validate: Option<u64>,
    /// Print how long each pass took
    #[arg(long)]
    pub(super) time_passes: bool,
    /// Write the module after each pass into this folder
    #[arg(long, value_name = "DIR")]
    dump_dir: Option<PathBuf>,
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
    let target = Target::parse(&args.passes.target)?;
    let module = run_passes(&registry, &args.pipeline, &module, &target, &args.passes, None)?;
    match &args.output {
        Some(path) => input::write_module(&module, path),
        None => {
            let mut policy = match args.full_constants {
                true => WeightsPolicy::inline(),
                false => WeightsPolicy::elided(64),
            };
            print(print_module(&module, &mut policy))
        }
    }
}

/// Runs a pipeline with the instruments that the arguments ask for.
pub(super) fn run_passes(
    registry: &Registry,
    pipeline: &str,
    module: &Module,
    target: &Target,
    args: &PassArgs,
    progress: Option<&Progress>,
) -> Result<Module, Failure> {
    let plan = plan(registry, pipeline)?;
    let full_names = |names: &[String]| -> Result<Vec<String>, Failure> {
        let name = |name: &String| Ok(registry.record(registry.find(name)?).name.clone());
        names.iter().map(name).collect()
    };
    let mut cx = PassContext {
        opt_level: args.opt_level,
        disabled: full_names(&args.disable)?,
        required: full_names(&args.require)?,
        target: target.attrs(module.cx()),
        ..PassContext::default()
    };
    if let Some(progress) = progress {
        cx.instruments.push(Box::new(progress.clone()));
    }
    if args.verify_each {
        cx.instruments.push(Box::new(VerifyEach::default()));
    }
    if let Some(seed) = args.validate {
        cx.instruments.push(Box::new(Validate::new(seed)));
    }
    let mut print_ir = |when: PrintWhen, names: &Option<Vec<String>>| -> Result<(), Failure> {
        if let Some(names) = names {
            let names = full_names(names)?;
            cx.instruments.push(Box::new(PrintIr { when, names }));
        }
        Ok(())
    };
    print_ir(PrintWhen::Before, &args.print_before)?;
    print_ir(PrintWhen::After, &args.print_after)?;
    print_ir(PrintWhen::Changed, &args.print_changed)?;
    if let Some(dir) = &args.dump_dir {
        std::fs::create_dir_all(dir)?;
        cx.instruments.push(Box::new(Dump { dir: dir.clone() }));
    }
    if args.time_passes {
        cx.instruments.push(Box::new(Timing::default()));
    }
    let result = driver::run_plan(registry, &plan, module, &mut cx);
    for instrument in &mut cx.instruments {
        if let Some(text) = instrument.finish() {
            note(text);
        }
    }
    for (pass, report) in &cx.reports {
        match report.level {
            ReportLevel::Error => note(format!("error: {pass}: {}", report.text)),
            ReportLevel::Warning => note(format!("warning: {pass}: {}", report.text)),
            ReportLevel::Note => note(format!("note: {pass}: {}", report.text)),
            ReportLevel::Trace => {}
        }
    }
    result.map_err(|error| Failure::from_diagnostic(error.to_diagnostic()))
}

/// Writes the module after each pass into a folder.
struct Dump {
    dir: PathBuf,
}

impl Instrument for Dump {
    fn after(
        &mut self,
        info: StepInfo<'_>,
        outcome: StepOutcome<'_>,
    ) -> Result<(), Box<Diagnostic>> {
        let StepOutcome::Ran { after, .. } = outcome else { return Ok(()) };
        let file = self.dir.join(format!("{:03}_{}.ir", info.number, info.step.name));
        write_module(after, &file)
            .map_err(|_| Diagnostic::error(format!("cannot write {}", file.display())).into())
    }
}
