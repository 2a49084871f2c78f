//! Running passes for a command: their arguments, instruments, and what is said when one fails.

use std::path::PathBuf;

use clap::Args;

use super::argument::{DimValue, numbers_and_ranges, parse_dim_or_range, parse_validation};
use super::complete;
use super::explain::{self, Explained};
use super::input::read_reproducer;
use super::interrupt::Watchful;
use super::output::{Failure, note};
use super::patience::limit_evaluations;
use super::progress::Progress;
use tenon_compiler::border::{Report, ReportLevel};
use tenon_compiler::executable::CompileError;
use tenon_compiler::ir::Module;
use tenon_compiler::passes::{
    Dump, Hashes, Instrument, PassContext, PassError, Plan, PrintIr, PrintWhen, Statistics, Timing,
    Trace,
};
use tenon_compiler::plan::{DimRanges, check_ranges};
use tenon_compiler::registry::Registry;
use tenon_compiler::session::{
    Model, Observer, Options, Pipeline, ReproducerPlace, Session, Validation, Watch,
};
use tenon_compiler::target::{Target, Targets};

const DEFAULT_TARGET: &str = "native";
/// All levels but that of what may cost more than it brings.
const DEFAULT_LEVEL: u8 = 3;

/// What passes run on, and which ones: for every command whose pipeline a reproducer may bring.
#[derive(Args)]
pub(super) struct Job {
    /// A module's text or an .onnx model
    pub(super) file: PathBuf,
    /// A pipeline's name or text: 'default', or 'NAME, NAME{OPTION=VALUE}'; a reproducer brings its own
    #[arg(long, short = 'p', add = complete::pipeline())]
    pipeline: Option<String>,
    /// Bind a symbolic dimension of an ONNX model; a range, 1..512, is that of one that stays open
    #[arg(short = 'D', value_name = "NAME=VALUE", value_parser = parse_dim_or_range)]
    dims: Vec<(String, DimValue)>,
    #[command(flatten)]
    passes: PassArgs,
}

impl Job {
    /// The module, and what it was read from.
    pub(super) fn read(&self, session: &Session) -> Result<Model, Failure> {
        let (dims, ranges) = numbers_and_ranges(&self.dims);
        let model = session.read(&self.file, &dims)?;
        check_ranges(&model.module, &ranges).map_err(CompileError::Plan)?;
        Ok(model)
    }

    /// The ranges of dimensions that stay open.
    pub(super) fn ranges(&self) -> DimRanges {
        numbers_and_ranges(&self.dims).1
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
    /// What code is made for: `native` is this machine, `znver4` or `aarch64-linux-gnu` another (`tenon targets list`); a
    /// library may be for several processors, `x86-64-v2/x86-64-v3`
    #[arg(long, default_value = DEFAULT_TARGET, add = complete::targets())]
    pub(super) target: String,
    /// Passes above this level do not run
    #[arg(long, default_value_t = DEFAULT_LEVEL, value_name = "N")]
    pub(super) opt_level: u8,
    /// Values of options: 'acme.Fuse.depth=8, print.elements=10'; `tenon options list` shows all
    #[arg(long, value_name = "KEY=VALUE,…", add = complete::config())]
    config: Vec<String>,
    /// Schedule programs as was measured best: a file that `tenon tune` has written
    #[arg(long, value_name = "FILE")]
    tune_db: Option<PathBuf>,
    /// Store constant weights of products in fewer bits: int8, int4, or with so many elements that share a scale, int4:32
    #[arg(long, value_name = "WIDTH")]
    weights: Option<String>,
    /// Compute in these floats what gains by it
    #[arg(long, value_name = "DTYPE", value_parser = ["f16", "bf16"])]
    precision: Option<String>,
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
    #[arg(long, value_name = "SEED|compiled", num_args = 0..=1, require_equals = true, default_missing_value = "0", value_parser = parse_validation)]
    validate: Option<Validation>,
    /// Print how long each pass took
    #[arg(long)]
    pub(super) time_passes: bool,
    /// Say of each program how it was scheduled: by which rule, with which knobs, why, and what it is thought to cost; with
    /// `=declined` also which rules were asked before and did not match
    #[arg(
        long,
        value_name = "WHAT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "chosen"
    )]
    pub(super) explain_schedules: Option<Explained>,
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

impl PassArgs {
    /// An option that says how something is compiled, where one is given.
    pub(super) fn first_given(&self) -> Option<&'static str> {
        let all = [
            ("--target", self.target != DEFAULT_TARGET),
            ("--opt-level", self.opt_level != DEFAULT_LEVEL),
            ("--config", !self.config.is_empty()),
            ("--tune-db", self.tune_db.is_some()),
            ("--weights", self.weights.is_some()),
            ("--precision", self.precision.is_some()),
            ("--disable", !self.disable.is_empty()),
            ("--require", !self.require.is_empty()),
            ("--validate", self.validate.is_some()),
        ];
        all.into_iter().find(|(_, is_given)| *is_given).map(|(name, _)| name)
    }

    /// What code is made for, where that is one target.
    pub(super) fn target(&self) -> Result<Target, Failure> {
        Ok(self.targets()?.one()?.clone())
    }

    /// What code is made for: a target, or several processors.
    pub(super) fn targets(&self) -> Result<Targets, Failure> {
        Ok(Targets::parse(&self.target)?)
    }

    /// How a session runs `pipeline`.
    pub(super) fn options(&self, pipeline: &str) -> Options {
        Options {
            pipeline: Pipeline::Text(pipeline.to_owned()),
            opt_level: self.opt_level,
            config: self.config.clone(),
            tune_db: self.tune_db.clone(),
            weights: self.weights.clone(),
            precision: self.precision.clone(),
            explain_schedules: self.explain_schedules == Some(Explained::Declined),
            disabled: self.disable.clone(),
            required: self.require.clone(),
            instruments: self.instrument.clone(),
            verify_each: self.verify_each,
            validate: self.validate,
            pass_limit: self.pass_limit,
            reproducer: reproducer_place(self.reproducer.clone()),
            ..Options::default()
        }
    }

    /// Whether passes are to be seen, or what they make.
    pub(super) fn shows_passes(&self) -> bool {
        let prints = [&self.print_before, &self.print_after, &self.print_changed];
        let writes = [&self.trace, &self.dump_dir, &self.reproducer];
        let explains = self.explain_schedules.is_some();
        let shows = [self.print_sources, self.time_passes, explains, self.stats];
        prints.iter().any(|it| it.is_some())
            || writes.iter().any(|it| it.is_some())
            || shows.contains(&true)
            || self.hashes
            || self.verify_each
    }

    /// The seed of random inputs.
    pub(super) fn seed(&self) -> u64 {
        self.options("").seed_between_passes().unwrap_or(0)
    }

    /// The instruments that print and write.
    fn printers(&self, session: &Session) -> Result<Vec<Box<dyn Instrument>>, Failure> {
        let mut printers: Vec<Box<dyn Instrument>> = Vec::new();
        let settings = session.settings(&self.options(""))?;
        let (elements, has_sources) = (PrintIr::elements(&settings), self.print_sources);
        let asked = [
            (PrintWhen::Before, &self.print_before),
            (PrintWhen::After, &self.print_after),
            (PrintWhen::Changed, &self.print_changed),
        ];
        for (when, names) in asked {
            let Some(names) = names else { continue };
            let names = full_names(session.registry(), names)?;
            printers.push(Box::new(PrintIr { when, names, elements, has_sources }));
        }
        if let Some(dir) = &self.dump_dir {
            printers.push(Box::new(Dump::new(dir.clone(), has_sources)));
        }
        if self.time_passes {
            printers.push(Box::new(Timing::default()));
        }
        if let Some(path) = &self.trace {
            printers.push(Box::new(Trace::new(path.clone())));
        }
        if self.stats {
            printers.push(Box::new(Statistics::default()));
        }
        if self.hashes {
            printers.push(Box::new(Hashes::default()));
        }
        Ok(printers)
    }
}

/// Where a reproducer goes when a user names a file, or none.
pub(super) fn reproducer_place(file: Option<PathBuf>) -> ReproducerPlace {
    file.map_or(ReproducerPlace::Temporary, ReproducerPlace::File)
}

/// Tells a user what a session does.
struct Told<'a>(Option<&'a Progress>);

impl Observer for Told<'_> {
    fn begins(&mut self, what: &str) {
        if let Some(progress) = self.0 {
            progress.say(what);
        }
    }

    fn warns(&mut self, warning: &str) {
        note(format!("warning: {warning}"));
    }

    fn reports(&mut self, pass: &str, report: &Report) {
        let level = match report.level {
            ReportLevel::Error => "error",
            ReportLevel::Warning => "warning",
            ReportLevel::Note => "note",
            ReportLevel::Trace => return,
        };
        note(format!("{level}: {pass}: {}", report.text));
    }

    fn says(&mut self, text: &str) {
        note(text);
    }
}

/// Runs the passes with the instruments that the arguments ask for.
pub(super) fn run_passes(
    session: &Session,
    model: &Model,
    target: &Target,
    options: &Options,
    args: &PassArgs,
    progress: Option<&Progress>,
) -> Result<Module, Failure> {
    args.trace.iter().try_for_each(|output| model.files.refuse(output))?;
    limit_evaluations(&session.settings(options)?);
    let mut instruments: Vec<Box<dyn Instrument>> = vec![Box::new(Watchful)];
    if let Some(progress) = progress {
        instruments.push(Box::new(progress.clone()));
    }
    instruments.extend(args.printers(session)?);
    let mut watch = Watch { instruments, observer: Box::new(Told(progress)), ..Watch::default() };
    let lowered = session.lower(model, target, options, &mut watch)?;
    if args.explain_schedules.is_some() {
        note(explain::text(&lowered).trim_end());
    }
    Ok(lowered)
}

/// Runs a plan, and stops when the user asks for it.
pub(super) fn run_plan(
    session: &Session,
    plan: &Plan,
    module: &Module,
    cx: &mut PassContext,
) -> Result<Module, PassError> {
    limit_evaluations(&cx.settings);
    cx.instruments.push(Box::new(Watchful));
    session.run(plan, module, cx)
}

fn full_names(registry: &Registry, names: &[String]) -> Result<Vec<String>, Failure> {
    let name = |name: &String| Ok(registry.record(registry.find(name)?).name.clone());
    names.iter().map(name).collect()
}
