//! The pass manager: runs a plan over a module.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

use rayon::prelude::*;
use tenon_plugin_api::ir::{Context, Symbol};
use thiserror::Error;

use super::context::{FunctionTime, PassContext, StepInfo, StepOutcome};
use super::options;
use super::plan::{PassStep, Plan, Reason, Step};
use crate::border::{Report, ReportLevel, Run};
use crate::diagnostics::Diagnostic;
use crate::infer::{InferError, infer_changed};
use crate::ir::{Function, Module};
use crate::registry::{LoadError, LoadedPass, PassFailure, PassId, PassKind, Registry};
use crate::text::point_at;

/// Why a run stopped. The module that was given is as it was.
#[derive(Debug, Error)]
pub enum PassError {
    /// A requirement is disabled.
    #[error("pass `{pass}` is disabled, but `{by}` requires it")]
    Disabled {
        /// The requirement.
        pass: String,
        /// The pass that requires it.
        by: String,
    },
    /// A plugin cannot be used.
    #[error("pass `{pass}`: {error}")]
    Load {
        /// The pass.
        pass: String,
        /// Why.
        error: Arc<LoadError>,
    },
    /// A pass failed.
    #[error("pass `{pass}`{}: {}", in_function(.function), .failure.message)]
    Failed {
        /// The pass.
        pass: String,
        /// The function it worked on.
        function: Option<(String, Arc<Function>)>,
        /// How.
        failure: PassFailure,
    },
    /// A pass left something that has no type.
    #[error("pass `{pass}` left something wrong in function @{function}: {error}")]
    Untyped {
        /// The pass.
        pass: String,
        /// The function.
        function: String,
        /// The function as the pass left it.
        body: Arc<Function>,
        /// What is wrong.
        error: InferError,
    },
    /// An instrument failed before the first pass or after the last.
    #[error("{when}: {}", .diagnostic.message)]
    Context {
        /// When.
        when: &'static str,
        /// What the instrument has to say.
        diagnostic: Box<Diagnostic>,
    },
    /// An instrument stopped the run.
    #[error("at pass `{pass}`: {}", .diagnostic.message)]
    Instrument {
        /// The pass.
        pass: String,
        /// What the instrument has to say.
        diagnostic: Box<Diagnostic>,
    },
}

impl PassError {
    /// The pass that it is about; none when the run did not begin or end.
    pub fn pass(&self) -> Option<&str> {
        match self {
            PassError::Context { .. } => None,
            PassError::Disabled { pass, .. }
            | PassError::Load { pass, .. }
            | PassError::Failed { pass, .. }
            | PassError::Untyped { pass, .. }
            | PassError::Instrument { pass, .. } => Some(pass),
        }
    }

    /// The error as a person reads it, with the lines of the function around the node it is about.
    pub fn to_diagnostic(&self) -> Diagnostic {
        if let PassError::Instrument { diagnostic, .. } | PassError::Context { diagnostic, .. } =
            self
        {
            return Diagnostic { message: self.to_string(), ..(**diagnostic).clone() };
        }
        let diagnostic = Diagnostic::error(self.to_string());
        let (name, function, node, source) = match self {
            PassError::Failed { pass, function: Some((name, function)), failure } => {
                let Some(node) = failure.node else { return diagnostic };
                (name, function, node, format!("@{name} before {pass}"))
            }
            PassError::Untyped { pass, function: name, body, error } => {
                (name, body, error.node, format!("@{name} after {pass}"))
            }
            _ => return diagnostic,
        };
        match point_at(source, name, function, node) {
            Some((source, place)) => diagnostic.in_source(&source).label(place, ""),
            None => diagnostic,
        }
    }

    fn untyped(pass: &str, module: &Module, errors: Vec<(Symbol, InferError)>) -> Self {
        let (name, error) = errors.into_iter().next().expect("a failure has an error");
        PassError::Untyped {
            pass: pass.to_owned(),
            function: module.cx().terms().str(name).to_owned(),
            body: module.get(name).expect("an error is about a function of the module").clone(),
            error,
        }
    }
}

fn in_function(function: &Option<(String, Arc<Function>)>) -> String {
    function.as_ref().map_or(String::new(), |(name, _)| format!(" in function @{name}"))
}

/// Runs a plan. Every plugin that it needs is opened before the first pass runs.
pub fn run(
    registry: &Registry,
    plan: &Plan,
    module: &Module,
    cx: &mut PassContext,
) -> Result<Module, PassError> {
    let loaded = load_all(registry, plan, cx)?;
    enter(cx, module)?;
    let result = run_steps(registry, plan, &loaded, module, cx);
    let mut failed = cx.instruments.iter_mut().filter_map(|each| each.exit().err());
    // All are exited; the first error is told, and a pass's own before it.
    let first = failed.next();
    failed.for_each(drop);
    match (result, first) {
        (Ok(_), Some(diagnostic)) => {
            Err(PassError::Context { when: "at the end of the run", diagnostic })
        }
        (result, _) => result,
    }
}

/// Enters the instruments. When one fails, those before it are exited from the last to the first, and none is
/// left in the context.
fn enter(cx: &mut PassContext, module: &Module) -> Result<(), PassError> {
    for number in 0..cx.instruments.len() {
        if let Err(diagnostic) = cx.instruments[number].enter(module) {
            for entered in cx.instruments[..number].iter_mut().rev() {
                // What brought the run to an end is told.
                let _ = entered.exit();
            }
            cx.instruments.clear();
            return Err(PassError::Context { when: "before the first pass", diagnostic });
        }
    }
    Ok(())
}

fn run_steps(
    registry: &Registry,
    plan: &Plan,
    loaded: &[Option<LoadedPass>],
    module: &Module,
    cx: &mut PassContext,
) -> Result<Module, PassError> {
    let mut module = module.clone();
    // Passes whose effect still holds.
    let mut holding: HashSet<PassId> = HashSet::new();
    let total = plan.steps.len();
    for (number, step) in plan.steps.iter().enumerate() {
        let step = match step {
            Step::Phase(phase) => {
                module.attrs = module.cx().with_attr(module.attrs, "phase", phase.as_str().into());
                continue;
            }
            Step::Pass(step) => step,
        };
        let info = StepInfo { step, number, total };
        let record = registry.record(step.id);
        let skip = match step.reason {
            Reason::Required { .. } if holding.contains(&step.id) => Some("it still holds"),
            Reason::Required { .. } => None,
            _ if cx.is_enabled(&step.name, record.opt_level) => None,
            _ => Some("it is above the optimization level or disabled"),
        };
        let skip = match skip {
            None if is_refused(cx, info, &module)? => Some("an instrument refused it"),
            skip => skip,
        };
        if let Some(why) = skip {
            notify(cx, info, StepOutcome::Skipped(why))?;
            continue;
        }
        for instrument in &mut cx.instruments {
            instrument.before(info, &module).map_err(|error| stopped(info, error))?;
        }
        let pass = loaded[number].as_ref().expect("a pass that is enabled was loaded");
        let mut functions = Vec::new();
        let start = Instant::now();
        let after = apply(pass, record.kind, step, registry, &module, cx, &mut functions).and_then(
            |after| {
                infer_changed(&module, &after)
                    .map_err(|errors| PassError::untyped(&step.name, &after, errors))
            },
        );
        let after = match after {
            Ok(after) => after,
            Err(error) => {
                // The pass's own error comes first; an instrument's would only hide it.
                let _ = notify(cx, info, StepOutcome::Failed);
                return Err(error);
            }
        };
        let wall = start.elapsed();
        let functions = &functions;
        notify(cx, info, StepOutcome::Ran { before: &module, after: &after, wall, functions })?;
        if !after.is_identical(&module) {
            holding.clear();
        }
        holding.insert(step.id);
        module = after;
    }
    Ok(module)
}

/// Asks every instrument, but about passes that the context requires.
fn is_refused(
    cx: &mut PassContext,
    info: StepInfo<'_>,
    module: &Module,
) -> Result<bool, PassError> {
    if cx.required.contains(&info.step.name) {
        return Ok(false);
    }
    let mut is_refused = false;
    for instrument in &mut cx.instruments {
        let may_run = instrument.should_run(info, module).map_err(|error| stopped(info, error))?;
        is_refused |= !may_run;
    }
    if let (true, Reason::Required { by }) = (is_refused, &info.step.reason) {
        let text = format!("an instrument refused it, though `{by}` requires it");
        let report = Report { level: ReportLevel::Warning, text };
        cx.reports.push((info.step.name.clone(), report));
    }
    Ok(is_refused)
}

fn stopped(info: StepInfo<'_>, diagnostic: Box<Diagnostic>) -> PassError {
    PassError::Instrument { pass: info.step.name.clone(), diagnostic }
}

fn load_all(
    registry: &Registry,
    plan: &Plan,
    cx: &PassContext,
) -> Result<Vec<Option<LoadedPass>>, PassError> {
    plan.steps
        .iter()
        .map(|step| match step {
            Step::Pass(PassStep { name, reason: Reason::Required { by }, .. })
                if cx.disabled.contains(name) =>
            {
                Err(PassError::Disabled { pass: name.clone(), by: by.clone() })
            }
            Step::Pass(step)
                if matches!(step.reason, Reason::Required { .. })
                    || cx.is_enabled(&step.name, registry.record(step.id).opt_level) =>
            {
                registry
                    .load(step.id)
                    .map(Some)
                    .map_err(|error| PassError::Load { pass: step.name.clone(), error })
            }
            _ => Ok(None),
        })
        .collect()
}

fn notify(
    cx: &mut PassContext,
    info: StepInfo<'_>,
    outcome: StepOutcome<'_>,
) -> Result<(), PassError> {
    for instrument in &mut cx.instruments {
        instrument.after(info, outcome).map_err(|error| stopped(info, error))?;
    }
    Ok(())
}

/// Runs one pass. Functions are worked on in parallel, and each sees the module as it was before.
fn apply(
    pass: &LoadedPass,
    kind: PassKind,
    step: &PassStep,
    registry: &Registry,
    module: &Module,
    cx: &mut PassContext,
    times: &mut Vec<FunctionTime>,
) -> Result<Module, PassError> {
    let options = options::to_attrs(module.cx(), &step.options);
    let run = Run::new(module.cx().clone(), options, cx.target, cx.cancelled.clone());
    let run = Arc::new(run.with_generators(Arc::new(registry.clone())));
    let failed = |function: Option<(String, Arc<Function>)>, failure| PassError::Failed {
        pass: step.name.clone(),
        function,
        failure,
    };
    let result = if kind == PassKind::Module {
        pass.plugin.run_on_module(pass.index, &run, module).map_err(|failure| failed(None, failure))
    } else {
        let units: Vec<(Symbol, &Arc<Function>)> = module
            .iter()
            .filter(|(_, function)| function.is_prim() == (kind == PassKind::Prim))
            .collect();
        let run_on = |function: &Arc<Function>| {
            pass.plugin.run_on_function(pass.index, &run, function, module)
        };
        let results: Vec<Result<Arc<Function>, PassFailure>>;
        if cx.instruments.iter().any(|instrument| instrument.times_functions()) {
            let timed = |&(name, function): &(Symbol, &Arc<Function>)| {
                let start = Instant::now();
                let result = run_on(function);
                let thread = rayon::current_thread_index().unwrap_or(0);
                (result, FunctionTime { name, start, wall: start.elapsed(), thread })
            };
            (results, *times) = units.par_iter().map(timed).unzip();
        } else {
            results = units.par_iter().map(|&(_, function)| run_on(function)).collect();
        }
        collect(module, &units, results, failed)
    };
    // What follows from something that was refused would only hide it.
    let result = match run.refused() {
        Some(what) => Err(failed(None, PassFailure::refused(what))),
        None => result,
    };
    cx.reports.extend(run.take_reports().into_iter().map(|report| (step.name.clone(), report)));
    result
}

/// The module with the functions that changed, or the first failure in the order of the functions.
fn collect(
    module: &Module,
    units: &[(Symbol, &Arc<Function>)],
    results: Vec<Result<Arc<Function>, PassFailure>>,
    failed: impl Fn(Option<(String, Arc<Function>)>, PassFailure) -> PassError,
) -> Result<Module, PassError> {
    let mut after = module.clone();
    for ((name, function), result) in units.iter().zip(results) {
        match result {
            Ok(new) if Arc::ptr_eq(&new, function) => {}
            Ok(new) => after.insert(*name, new),
            Err(failure) => {
                let name = module.cx().terms().str(*name).to_owned();
                return Err(failed(Some((name, (*function).clone())), failure));
            }
        }
    }
    Ok(after)
}
