//! How a model is compiled.

use std::path::PathBuf;
use std::sync::Arc;

use super::{Session, SessionError};
use crate::diagnostics::Diagnostic;
use crate::executable::CompileOptions;
use crate::ir::Module;
use crate::passes::{
    FromPlugin, Pass, PassContext, PassLimit, Plan, PlanError, Settings, Validate, VerifyEach,
    plan_with, plan_with_own,
};
use crate::registry::OptionValue;
use crate::target::Target;
use crate::tune::{Laboratory, Measuring};

/// The level of all passes but those that may cost more than they bring.
const DEFAULT_LEVEL: u8 = 3;

/// The option of passes that read what was measured of schedules.
pub(super) const TUNE_DB: &str = "tune_db";
/// The option by which passes are told how constant weights are stored.
const WEIGHTS: &str = "weights";
/// The option by which passes are told in which floats to compute.
const PRECISION: &str = "precision";

/// The option by which passes are told to say which rules of schedules did not match.
const EXPLAIN_SCHEDULES: &str = "explain_schedules";

/// How a model is compiled. The default is what `tenon compile` does without options.
#[derive(Clone, Debug)]
pub struct Options {
    /// The passes that run.
    pub pipeline: Pipeline,
    /// Passes above this level do not run.
    pub opt_level: u8,
    /// Values of options, as `acme.Fuse.depth=8, print.elements=10`.
    pub config: Vec<String>,
    /// What was measured of schedules: a file that `tenon tune` has written. It is the option `tune_db` of all passes that have
    /// one.
    pub tune_db: Option<PathBuf>,
    /// Whether passes that ask for it may have schedules measured. What is measured is compiled without, and such passes leave it as it
    /// is.
    pub measures: bool,
    /// How constant weights of products are stored, such as `int8` or `int4:32`. It is the option `weights` of all passes that
    /// have one.
    pub weights: Option<String>,
    /// The floats in which is computed what gains by it: `f16`, `bf16`. It is the option `precision` of all passes that have one.
    pub precision: Option<String>,
    /// Whether programs say which rules of schedules were asked and did not match. It is the option `explain_schedules` of all
    /// passes that have one.
    pub explain_schedules: bool,
    /// Passes that do not run, by name or alias; this wins over everything.
    pub disabled: Vec<String>,
    /// Passes that run whatever their level, by name or alias.
    pub required: Vec<String>,
    /// Instruments of plugins that watch the passes, by name.
    pub instruments: Vec<String>,
    /// Whether the module is checked before the first pass and after each.
    pub verify_each: bool,
    /// Whether what the module computes is compared with what it computed at first.
    pub validate: Option<Validation>,
    /// How many passes run at most.
    pub pass_limit: Option<usize>,
    /// Where a module goes with which a pass is seen to fail again.
    pub reproducer: ReproducerPlace,
    /// A folder with what was compiled before, for files that are compiled to files ([`Session::compile_file`]); without one
    /// nothing is looked up and nothing kept.
    pub cache: Option<PathBuf>,
    /// How code is made of what the passes leave.
    pub code: CompileOptions,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            pipeline: Pipeline::Auto,
            opt_level: DEFAULT_LEVEL,
            config: Vec::new(),
            tune_db: None,
            measures: true,
            weights: None,
            precision: None,
            explain_schedules: false,
            disabled: Vec::new(),
            required: Vec::new(),
            instruments: Vec::new(),
            verify_each: false,
            validate: None,
            pass_limit: None,
            reproducer: ReproducerPlace::Nowhere,
            cache: None,
            code: CompileOptions::default(),
        }
    }
}

/// The passes that make of a module what code is generated from.
#[derive(Clone, Debug, Default)]
pub enum Pipeline {
    /// The one that suits the target: `default`, whose passes ask the target what to do.
    #[default]
    Auto,
    /// None: the module is lowered already.
    None,
    /// A pipeline's name in the registry, or its text: `acme.Tidy, acme.Fuse{depth=8}`.
    Text(String),
    /// A pass, which may be a sequence of others.
    Pass(Pass),
}

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Validation {
    /// What the evaluator makes of the module, between passes, on inputs from this seed.
    Passes(u64),
    /// What compiled code computes, with the evaluator.
    Compiled,
}

/// Where reproducers go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ReproducerPlace {
    /// None is written.
    #[default]
    Nowhere,
    /// Among the temporary files, if the weights are small; old ones go.
    Temporary,
    /// To this file.
    File(PathBuf),
}

impl Options {
    /// The seed with which results are compared between passes, if they are.
    pub fn seed_between_passes(&self) -> Option<u64> {
        match self.validate {
            Some(Validation::Passes(seed)) => Some(seed),
            Some(Validation::Compiled) | None => None,
        }
    }
}

impl Session {
    /// The values of options.
    pub fn settings(&self, options: &Options) -> Result<Settings, PlanError> {
        let mut settings = Settings::default();
        for text in &options.config {
            settings.set_text(&self.registry, text)?;
        }
        let tune_db = options.tune_db.as_ref().map(|path| path.display().to_string());
        for (name, value, what) in [
            (TUNE_DB, tune_db, "reads a tuning database"),
            (WEIGHTS, options.weights.clone(), "stores weights otherwise"),
            (PRECISION, options.precision.clone(), "computes in other floats"),
        ] {
            let Some(value) = value else { continue };
            let text = format!("{name} = {value}");
            let value = OptionValue::Str(value);
            if settings.set_of_all(&self.registry, name, &value, &text) == 0 {
                let text = format!("no pass that is known {what}: none has the option `{name}`");
                return Err(Diagnostic::error(text).into());
            }
        }
        if options.explain_schedules {
            let (value, text) = (OptionValue::Bool(true), format!("{EXPLAIN_SCHEDULES} = true"));
            settings.set_of_all(&self.registry, EXPLAIN_SCHEDULES, &value, &text);
        }
        Ok(settings)
    }

    /// The passes that would run, in order.
    pub fn plan(&self, options: &Options) -> Result<Plan, PlanError> {
        let settings = self.settings(options)?;
        match &options.pipeline {
            Pipeline::Auto => plan_with(&self.registry, "default", &settings),
            Pipeline::None => Ok(Plan::default()),
            Pipeline::Text(text) => plan_with_own(&self.registry, &self.own, text, &settings),
            Pipeline::Pass(pass) => Plan::of_own(&self.registry, &self.own, pass, &settings),
        }
    }

    /// Who measures for passes.
    fn measuring(&self, target: &Target, options: &Options) -> Measuring {
        match &self.installation {
            _ if !options.measures => Measuring::Candidate,
            None => Measuring::Nobody,
            Some(installation) => Measuring::By(Laboratory {
                installation: installation.clone(),
                registries: self.registry.config().files.clone(),
                target: target.to_string(),
            }),
        }
    }

    /// The context in which passes run, with the instruments that may stop a run.
    pub fn pass_context(
        &self,
        module: &Module,
        target: &Target,
        options: &Options,
    ) -> Result<PassContext, SessionError> {
        let mut cx = PassContext {
            opt_level: options.opt_level,
            disabled: options.disabled.clone(),
            required: options.required.clone(),
            settings: self.settings(options)?,
            target: target.attrs(module.cx()),
            cancelled: self.cancelled.clone(),
            measuring: Arc::new(self.measuring(target, options)),
            ..PassContext::default()
        };
        if let Some(count) = options.pass_limit {
            cx.instruments.push(Box::new(PassLimit::new(count)));
        }
        if options.verify_each {
            cx.instruments.push(Box::new(VerifyEach::default()));
        }
        if let Some(seed) = options.seed_between_passes() {
            let limits = Validate::limits(&cx.settings);
            cx.instruments.push(Box::new(Validate::new(seed).with_limits(limits)));
        }
        for name in &options.instruments {
            let instrument = FromPlugin::new(&self.registry, name);
            let instrument = instrument.map_err(|error| SessionError::Instrument(error.into()))?;
            cx.instruments.push(Box::new(instrument));
        }
        Ok(cx)
    }
}
