//! Running passes for a command: their arguments, instruments, and what is said when one fails.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use clap::Args;

use super::CANCELLED;
use super::argument::{ArgumentError, parse_dim};
use super::compiled;
use super::complete;
use super::explain;
use super::input::{Model, read_model, read_reproducer, write_module_below};
use super::interrupt::Watchful;
use super::output::{Failure, note, warn_of_plugins};
use super::patience::limit_evaluations;
use super::progress::Progress;
use super::reproducers;
use crate::border::ReportLevel;
use crate::driver;
use crate::io::{InputFiles, Outputs};
use crate::ir::{Function, Module};
use crate::passes::{
    Dump, FromPlugin, Hashes, PassContext, PassError, PassLimit, Plan, PrintIr, PrintWhen, Record,
    Reproducer, Settings, Snapshot, Statistics, Timing, Trace, Validate, VerifyEach, plan_with,
};
use crate::registry::Registry;
use crate::target::Target;

const DEFAULT_TARGET: &str = "native";
/// All levels but that of what may cost more than it brings.
const DEFAULT_LEVEL: u8 = 3;

/// Weights of so many bytes are written only where a user asked for them.
const LARGE_WEIGHTS: usize = 64 << 20;

/// What passes run on, and which ones: for every command whose pipeline a reproducer may bring.
#[derive(Args)]
pub(super) struct Job {
    /// A module's text or an .onnx model
    pub(super) file: PathBuf,
    /// A pipeline's name or text: 'default', or 'NAME, NAME{OPTION=VALUE}'; a reproducer brings its own
    #[arg(long, short = 'p', add = complete::pipeline())]
    pipeline: Option<String>,
    /// Bind a symbolic dimension of an ONNX model
    #[arg(short = 'D', value_name = "NAME=VALUE", value_parser = parse_dim)]
    dims: Vec<(String, i64)>,
    #[command(flatten)]
    passes: PassArgs,
}

impl Job {
    /// The module, and what it was read from.
    pub(super) fn read(&self, registry: &Registry) -> Result<Model, Failure> {
        read_model(registry, &self.file, self.dims.iter().cloned().collect())
    }

    /// Whether texts say what nodes came from.
    pub(super) fn prints_sources(&self) -> bool {
        self.passes.print_sources
    }

    /// The pipeline that a user gave, or the one of a reproducer with its level and target.
    pub(super) fn pipeline(&self, registry: &Registry) -> Result<(String, PassArgs), Failure> {
        let mut passes = self.passes.clone();
        if let Some(pipeline) = &self.pipeline {
            return Ok((pipeline.clone(), passes));
        }
        let Some(reproducer) = read_reproducer(&self.file) else {
            let file = self.file.display();
            return Err(Failure::new(format!("no pipeline is given, and {file} is no reproducer"))
                .help("name one: --pipeline default"));
        };
        note(format!("reproducer of: {}", reproducer.error));
        for plugin in reproducer.other_plugins(registry) {
            note(format!("note: plugin {} {} is another file now", plugin.id, plugin.version));
        }
        (passes.opt_level, passes.target) = (reproducer.opt_level, reproducer.target);
        passes.disable.extend(reproducer.disable);
        passes.require.extend(reproducer.require);
        passes.instrument.extend(reproducer.instrument);
        passes.verify_each |= reproducer.verify_each;
        passes.validate = passes.validate.or(reproducer.validate.map(Validation::Passes));
        Ok((reproducer.pipeline, passes))
    }
}

/// How passes run, for every command that runs them.
#[derive(Args, Clone)]
pub(super) struct PassArgs {
    /// What code is made for: `native` is this machine, `znver4` or `aarch64-linux-gnu` another; `tenon targets list`
    #[arg(long, default_value = DEFAULT_TARGET, add = complete::targets())]
    pub(super) target: String,
    /// Passes above this level do not run
    #[arg(long, default_value_t = DEFAULT_LEVEL, value_name = "N")]
    pub(super) opt_level: u8,
    /// Values of options: 'acme.Fuse.depth=8, print.elements=10'; `tenon options list` shows all
    #[arg(long, value_name = "KEY=VALUE,…", add = complete::config())]
    config: Vec<String>,
    /// Passes that do not run
    #[arg(long, value_delimiter = ',', value_name = "NAMES", add = complete::pass_list())]
    disable: Vec<String>,
    /// Passes that run whatever their level
    #[arg(long, value_delimiter = ',', value_name = "NAMES", add = complete::pass_list())]
    require: Vec<String>,
    /// Print the module before these passes, or before all
    #[arg(long, value_delimiter = ',', num_args = 0.., require_equals = true, value_name = "NAMES", add = complete::pass_list())]
    print_before: Option<Vec<String>>,
    /// Print the module after these passes, or after all
    #[arg(long, value_delimiter = ',', num_args = 0.., require_equals = true, value_name = "NAMES", add = complete::pass_list())]
    print_after: Option<Vec<String>>,
    /// Print what these passes, or all, change, as unified diffs
    #[arg(long, value_delimiter = ',', num_args = 0.., require_equals = true, value_name = "NAMES", add = complete::pass_list())]
    print_changed: Option<Vec<String>>,
    /// Print what each binding came from as well, wherever a module is printed or written as text
    #[arg(long)]
    pub(super) print_sources: bool,
    /// Check that the module is well formed before the first pass and after each
    #[arg(long)]
    verify_each: bool,
    /// Compare what the module computes before and after each pass, on random inputs from this seed; or, behind the
    /// last pass, what is compiled of it with what it computed at first
    #[arg(long, value_name = "SEED|compiled", num_args = 0..=1, require_equals = true, default_missing_value = "0")]
    validate: Option<Validation>,
    /// Print how long each pass took
    #[arg(long)]
    pub(super) time_passes: bool,
    /// Say of each program how it was scheduled: by which rule, with which knobs, why, and what it is thought to cost
    #[arg(long)]
    pub(super) explain_schedules: bool,
    /// Write when passes and functions began and ended, for trace viewers
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Print how many functions, nodes and bytes there are after each pass
    #[arg(long)]
    stats: bool,
    /// Print the structural hash of the module after each pass
    #[arg(long)]
    hashes: bool,
    /// Instruments of plugins that watch the passes
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    instrument: Vec<String>,
    /// Run no pass after the first so many
    #[arg(long, value_name = "N")]
    pass_limit: Option<usize>,
    /// Write the module after each pass into this folder
    #[arg(long, value_name = "DIR")]
    dump_dir: Option<PathBuf>,
    /// Where the reproducer goes when a pass fails: a module that `tenon opt` sees fail again. By default a
    /// file among the temporary ones, if the weights are small
    #[arg(long, value_name = "FILE")]
    reproducer: Option<PathBuf>,
}

/// What is compared.
#[derive(Clone, Copy)]
enum Validation {
    /// What the evaluator makes of the module, between passes, on inputs from this seed.
    Passes(u64),
    /// What compiled code computes, with the evaluator.
    Compiled,
}

impl FromStr for Validation {
    type Err = ArgumentError;

    fn from_str(text: &str) -> Result<Self, ArgumentError> {
        match text {
            "compiled" => Ok(Validation::Compiled),
            _ => text.parse().map(Validation::Passes).map_err(|_| ArgumentError::NoSeed),
        }
    }
}

impl PassArgs {
    /// The seed of random inputs.
    pub(super) fn seed(&self) -> u64 {
        self.seed_between_passes().unwrap_or(0)
    }

    /// The seed with which results are compared between passes, if they are.
    fn seed_between_passes(&self) -> Option<u64> {
        match self.validate {
            Some(Validation::Passes(seed)) => Some(seed),
            Some(Validation::Compiled) | None => None,
        }
    }
}

/// Runs a pipeline with the instruments that the arguments ask for.
pub(super) fn run_passes(
    registry: &Registry,
    pipeline: &str,
    model: &Model,
    target: &Target,
    args: &PassArgs,
    progress: Option<&Progress>,
) -> Result<Module, Failure> {
    let module = &model.module;
    for output in [&args.trace, &args.reproducer].into_iter().flatten() {
        model.files.refuse(output)?;
    }
    let plan = plan_with(registry, pipeline, &settings(registry, args)?)?;
    let record = Record::default();
    let mut cx = context(registry, module, target, args)?;
    cx.instruments.insert(0, Box::new(record.clone()));
    let full_names = |names: &[String]| full_names(registry, names);
    if let Some(progress) = progress {
        cx.instruments.push(Box::new(progress.clone()));
    }
    let (elements, has_sources) = (PrintIr::elements(&cx.settings), args.print_sources);
    let mut print_ir = |when: PrintWhen, names: &Option<Vec<String>>| -> Result<(), Failure> {
        if let Some(names) = names {
            let names = full_names(names)?;
            cx.instruments.push(Box::new(PrintIr { when, names, elements, has_sources }));
        }
        Ok(())
    };
    print_ir(PrintWhen::Before, &args.print_before)?;
    print_ir(PrintWhen::After, &args.print_after)?;
    print_ir(PrintWhen::Changed, &args.print_changed)?;
    if let Some(dir) = &args.dump_dir {
        cx.instruments.push(Box::new(Dump::new(dir.clone(), has_sources)));
    }
    if args.time_passes {
        cx.instruments.push(Box::new(Timing::default()));
    }
    if let Some(path) = &args.trace {
        cx.instruments.push(Box::new(Trace::new(path.clone())));
    }
    if args.stats {
        cx.instruments.push(Box::new(Statistics::default()));
    }
    if args.hashes {
        cx.instruments.push(Box::new(Hashes::default()));
    }
    let result = run_plan(registry, &plan, module, &mut cx);
    warn_of_plugins(registry);
    for instrument in &mut cx.instruments {
        if let Some(text) = instrument.report() {
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
    let result = result.map_err(|error| {
        let diagnostic = error.to_diagnostic();
        if error.is_cancelled() {
            return Failure::from_diagnostic(diagnostic);
        }
        // Where an instrument stops it all before a pass begins, that is the module as it was given.
        let given = || Snapshot { step: 0, pass: "start".to_owned(), module: module.clone() };
        let given = || error.is_of_instrument().then(given);
        let Some(failed) = error.stopped_at().or_else(|| record.before()).or_else(given) else {
            return Failure::from_diagnostic(diagnostic);
        };
        let comments = reproducer(registry, &plan, args, failed.step, error.to_string());
        let path = args.reproducer.as_deref();
        let written = write_reproducer(&comments, &failed, path, &model.files);
        Failure::from_diagnostic(match written {
            Ok(Some(path)) => {
                diagnostic.help(format!("to see it again: tenon opt {}", path.display()))
            }
            Ok(None) => diagnostic.help("--reproducer FILE writes a module to see it again with"),
            Err(failure) => diagnostic.note(format!("the reproducer was not written: {failure}")),
        })
    })?;
    if matches!(args.validate, Some(Validation::Compiled)) {
        if let Some(progress) = progress {
            progress.say("comparing compiled code");
        }
        compiled::validate(module, &result, &plan, &cx.settings, target)?;
    }
    if args.explain_schedules {
        note(explain::text(&result).trim_end());
    }
    Ok(result)
}

/// Runs a plan, and stops when the user asks for it.
pub(super) fn run_plan(
    registry: &Registry,
    plan: &Plan,
    module: &Module,
    cx: &mut PassContext,
) -> Result<Module, PassError> {
    limit_evaluations(&cx.settings);
    let _watchful = Watchful::new();
    driver::run_plan(registry, plan, module, cx)
}

/// The values of options that the arguments give.
pub(super) fn settings(registry: &Registry, args: &PassArgs) -> Result<Settings, Failure> {
    let mut settings = Settings::default();
    for text in &args.config {
        settings.set_text(registry, text)?;
    }
    Ok(settings)
}

/// The context that the arguments ask for, with the instruments that may stop a run.
pub(super) fn context(
    registry: &Registry,
    module: &Module,
    target: &Target,
    args: &PassArgs,
) -> Result<PassContext, Failure> {
    let mut cx = PassContext {
        opt_level: args.opt_level,
        disabled: args.disable.clone(),
        required: args.require.clone(),
        settings: settings(registry, args)?,
        target: target.attrs(module.cx()),
        cancelled: CANCELLED.clone(),
        ..PassContext::default()
    };
    if let Some(count) = args.pass_limit {
        cx.instruments.push(Box::new(PassLimit::new(count)));
    }
    if args.verify_each {
        cx.instruments.push(Box::new(VerifyEach::default()));
    }
    if let Some(seed) = args.seed_between_passes() {
        let limits = Validate::limits(&cx.settings);
        cx.instruments.push(Box::new(Validate::new(seed).with_limits(limits)));
    }
    for name in &args.instrument {
        let instrument = FromPlugin::new(registry, name).map_err(Failure::from_diagnostic)?;
        cx.instruments.push(Box::new(instrument));
    }
    Ok(cx)
}

fn full_names(registry: &Registry, names: &[String]) -> Result<Vec<String>, Failure> {
    let name = |name: &String| Ok(registry.record(registry.find(name)?).name.clone());
    names.iter().map(name).collect()
}

/// What stands above the module that a plan failed with at a step.
pub(super) fn reproducer(
    registry: &Registry,
    plan: &Plan,
    args: &PassArgs,
    step: usize,
    error: String,
) -> Reproducer {
    let how = Reproducer {
        opt_level: args.opt_level,
        disable: args.disable.clone(),
        require: args.require.clone(),
        instrument: args.instrument.clone(),
        verify_each: args.verify_each,
        validate: args.seed_between_passes(),
        target: args.target.clone(),
        error,
        ..Reproducer::default()
    };
    how.with_plan(registry, plan, step)
}

/// Writes the module before a pass that failed. Without a path it goes to the temporary files, unless its
/// weights are large: then nothing is written.
pub(super) fn write_reproducer(
    reproducer: &Reproducer,
    failed: &Snapshot,
    path: Option<&Path>,
    inputs: &InputFiles,
) -> Result<Option<PathBuf>, Failure> {
    let weights = |function: &Arc<Function>| {
        function.constants().iter().map(|constant| constant.data.len()).sum::<usize>()
    };
    let size: usize = failed.module.iter().map(|(_, function)| weights(function)).sum();
    let path = match path {
        Some(path) => path.to_owned(),
        None if size > LARGE_WEIGHTS => return Ok(None),
        None => reproducers::place(&failed.pass),
    };
    write_module_below(
        &reproducer.to_comments(),
        &failed.module,
        &path,
        true,
        Outputs::sparing(inputs.clone()),
    )
    .map(|()| Some(path))
}
