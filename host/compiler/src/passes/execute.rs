//! Runs passes: one over the module, or some over each function.
//!
//! Functions are worked on in parallel, and each goes through all of the passes. A pass sees the module as it was
//! before the first of them, so that neither the threads nor the order of the functions matter. What is said of
//! functions, errors included, is in the order of the functions.
//!
//! A pass that is isolated is given the module as a whole, and passes that go with it run one by one.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::context::PassContext;
use super::error::PassError;
use super::instrument::FunctionTime;
use super::manager::Manager;
use super::pass::{Body, Pass, run_own};
use super::plan::PassStep;
use super::skipped::{Spared, is_skipped, spare};
use super::sources::with_sources_of_programs;
use super::{isolated, options};
use crate::border::{Report, ReportLevel, Run};
use crate::infer::{InferError, infer, infer_changed, signature};
use crate::ir::{Attrs, Context, Function, Module, Symbol};
use crate::parallel;
use crate::registry::{IsolatedPass, LoadedPass, PassFailure, PassKind, Plugin, Registry};
use crate::target::TargetsOfFunctions;

/// What a pass has done.
pub(super) struct Ran {
    pub(super) after: Module,
    pub(super) wall: Duration,
    pub(super) functions: Vec<FunctionTime>,
    /// Whether no function was left alone.
    pub(super) is_whole: bool,
}

/// Runs the steps of these numbers: one, or passes over functions.
pub(super) fn run(manager: &mut Manager<'_>, numbers: &[usize]) -> Result<Vec<Ran>, PassError> {
    let Manager { registry, plan, choice, loaded, module, cx, .. } = manager;
    let link = |&number: &usize| {
        let (step, level) = (plan.step(number), choice.level(number));
        Link::new(registry, step, level, loaded[number].as_ref(), module)
    };
    let links: Vec<Link<'_>> = numbers.iter().map(link).collect();
    if !links.iter().any(|link| link.isolated().is_some()) {
        return run_together(&links, module, cx);
    }
    let mut module = module.clone();
    let mut ran = Vec::with_capacity(links.len());
    for link in links {
        ran.extend(match link.isolated() {
            Some(pass) => vec![timed(&link, &module, || over_isolated(&link, pass, &module, cx))?],
            None => run_together(&[link], &module, cx)?,
        });
        module = ran.last().map_or(module, |ran: &Ran| ran.after.clone());
    }
    Ok(ran)
}

/// Runs passes in this process: one, or passes over functions.
fn run_together(
    links: &[Link<'_>],
    module: &Module,
    cx: &mut PassContext,
) -> Result<Vec<Ran>, PassError> {
    match links {
        [] => Ok(Vec::new()),
        [link] if link.kind == PassKind::Module => {
            Ok(vec![timed(link, module, || over_module(link, module, cx))?])
        }
        links => over_functions(links, module, cx),
    }
}

fn timed(
    link: &Link<'_>,
    module: &Module,
    run: impl FnOnce() -> Result<Module, PassError>,
) -> Result<Ran, PassError> {
    let start = Instant::now();
    let after = run()?;
    let (wall, is_whole) = (start.elapsed(), link.is_for_all(module));
    Ok(Ran { after, wall, functions: Vec::new(), is_whole })
}

/// A pass that is about to run.
struct Link<'a> {
    step: &'a PassStep,
    kind: PassKind,
    /// Where it is not 0, some functions are left alone.
    level: u8,
    /// The plugin's pass, where it is one's.
    loaded: Option<&'a LoadedPass>,
    options: Attrs,
    /// Whose code generators it may ask for.
    registry: &'a Registry,
}

impl<'a> Link<'a> {
    fn new(
        registry: &'a Registry,
        step: &'a PassStep,
        level: u8,
        loaded: Option<&'a LoadedPass>,
        module: &Module,
    ) -> Self {
        let kind = match step.pass.body() {
            Body::Plugin { id, .. } => registry.record(*id).kind,
            Body::Function(kind, _) => *kind,
            Body::Module(_) | Body::Group(..) => PassKind::Module,
        };
        let options = options::to_attrs(module.cx(), &step.options);
        Self { step, kind, level, loaded, options, registry }
    }

    /// The state for a run of it over a module.
    fn run(&self, module: &Module, cx: &PassContext) -> Arc<Run> {
        let targets = Arc::new(TargetsOfFunctions::new(cx.target));
        self.run_for(module, &targets, cx)
    }

    /// The same, where the targets of the functions are looked up once for several passes.
    fn run_for(
        &self,
        module: &Module,
        targets: &Arc<TargetsOfFunctions>,
        cx: &PassContext,
    ) -> Arc<Run> {
        let cancelled = cx.cancelled.clone();
        let run = Run::of_module(module.cx().clone(), self.options, targets, cancelled);
        let run = run.with_generators(Arc::new(self.registry.clone())).with_module(module.clone());
        let run = run.with_measuring(cx.measuring.clone());
        let run = match self.step.pass.id() {
            Some(id) => run.with_asks(&self.registry.record(id).asks),
            None => run,
        };
        Arc::new(run.with_edit_limit(cx.edit_limit))
    }

    /// The pass in its own process, where it is kept in one.
    fn isolated(&self) -> Option<&'a IsolatedPass> {
        match self.loaded {
            Some(LoadedPass::Isolated(pass)) => Some(pass),
            _ => None,
        }
    }

    /// Whether it works on a function.
    fn takes(&self, function: &Function) -> bool {
        function.is_prim() == (self.kind == PassKind::Prim)
            && (self.level == 0 || !is_skipped(function))
    }

    /// Whether it leaves no function of the module alone.
    fn is_for_all(&self, module: &Module) -> bool {
        self.level == 0 || !module.iter().any(|(_, function)| is_skipped(function))
    }

    /// What a pass over modules made, but for the functions that it leaves alone.
    fn spare(&self, before: &Module, after: Module, cx: &mut PassContext) -> Module {
        if self.level == 0 {
            return after;
        }
        match spare(before, &after) {
            Spared::AsItIs => after,
            Spared::PutBack(module) => module,
            Spared::Misfit(name) => {
                let name = before.cx().terms().str(name);
                let text = format!(
                    "it changed what @{name} calls or is called by, and @{name} is not to be optimized: \
                     the module stays as it was"
                );
                let report = Report { level: ReportLevel::Warning, text };
                cx.reports.push((self.step.name.clone(), report));
                before.clone()
            }
        }
    }

    fn failed(&self, function: Option<(String, Arc<Function>)>, failure: PassFailure) -> PassError {
        PassError::Failed { pass: self.step.name.clone(), function, failure }
    }

    fn take_reports(&self, run: &Run) -> impl Iterator<Item = (String, Report)> {
        run.take_reports().into_iter().map(|report| (self.step.name.clone(), report))
    }
}

fn over_module(
    link: &Link<'_>,
    module: &Module,
    cx: &mut PassContext,
) -> Result<Module, PassError> {
    let run = link.run(module, cx);
    let result = match (link.step.pass.body(), link.loaded) {
        (Body::Module(body), _) => {
            run_own(|| body(module, &run), |after| after.cx().is_same(module.cx()))
        }
        (_, Some(LoadedPass::Here { plugin, index })) => plugin.run_on_module(*index, &run, module),
        _ => unreachable!("a plugin's pass was loaded"),
    };
    cx.reports.extend(link.take_reports(&run));
    let after = unless_refused(&run, result).map_err(|failure| link.failed(None, failure))?;
    // Most passes find nothing to do, and what follows looks at every function.
    if after.is_identical(module) {
        return Ok(after);
    }
    let after = infer_changed(module, &after)
        .map_err(|errors| PassError::untyped(&link.step.name, module, &after, errors))?;
    Ok(link.spare(module, with_sources_of_programs(module, after), cx))
}

/// Runs a pass that is kept in its own process. Functions that it does not take are as they were.
fn over_isolated(
    link: &Link<'_>,
    pass: &IsolatedPass,
    module: &Module,
    cx: &mut PassContext,
) -> Result<Module, PassError> {
    let run = link.run(module, cx);
    let result = isolated::apply(pass, &run, module);
    cx.reports.extend(link.take_reports(&run));
    let mut after =
        result.map_err(|Failed { function, failure }| link.failed(function, failure))?;
    if link.kind != PassKind::Module {
        let left = module.iter().filter(|(_, function)| !link.takes(function));
        left.for_each(|(name, function)| after.insert(name, function.clone()));
    }
    let after = infer_changed(module, &after)
        .map_err(|errors| PassError::untyped(&link.step.name, module, &after, errors))?;
    Ok(link.spare(module, with_sources_of_programs(module, after), cx))
}

/// How a pass failed, and on what.
pub(super) struct Failed {
    pub(super) function: Option<(String, Arc<Function>)>,
    pub(super) failure: PassFailure,
}

impl Failed {
    /// A failure that is about no function.
    pub(super) fn of_module(failure: PassFailure) -> Self {
        Self { function: None, failure }
    }
}

/// Runs one pass of a plugin, of which nothing but its kind is known.
pub(super) fn apply_here(
    plugin: &Plugin,
    index: u32,
    kind: PassKind,
    run: &Arc<Run>,
    module: &Module,
) -> Result<Module, Failed> {
    if kind == PassKind::Module {
        let result = unless_refused(run, plugin.run_on_module(index, run, module));
        return result.map_err(Failed::of_module);
    }
    let body = |function: &Arc<Function>, run: &Arc<Run>| {
        plugin.run_on_function(index, run, function, module)
    };
    apply_to_functions(kind, run, module, body)
}

/// Runs one pass that is a closure; none for another.
pub(super) fn apply_own(
    pass: &Pass,
    run: &Arc<Run>,
    module: &Module,
) -> Option<Result<Module, Failed>> {
    match pass.body() {
        Body::Module(body) => {
            let result = run_own(|| body(module, run), |after| after.cx().is_same(module.cx()));
            Some(unless_refused(run, result).map_err(Failed::of_module))
        }
        Body::Function(kind, body) => {
            let body = |function: &Arc<Function>, run: &Arc<Run>| {
                run_own(|| body(function, module, run), |after| after.cx().is_same(module.cx()))
            };
            Some(apply_to_functions(*kind, run, module, body))
        }
        Body::Plugin { .. } | Body::Group(..) => None,
    }
}

fn apply_to_functions(
    kind: PassKind,
    run: &Arc<Run>,
    module: &Module,
    body: impl Fn(&Arc<Function>, &Arc<Run>) -> Result<Arc<Function>, PassFailure> + Sync,
) -> Result<Module, Failed> {
    let is_taken =
        |(_, function): &(Symbol, &Arc<Function>)| function.is_prim() == (kind == PassKind::Prim);
    let functions: Vec<(Symbol, &Arc<Function>)> = module.iter().filter(is_taken).collect();
    let over_one = |&(_, function): &(Symbol, &Arc<Function>)| {
        let own = Arc::new(run.for_function(function));
        let result = body(function, &own);
        (unless_refused(&own, result), own.take_reports())
    };
    let results = parallel::map(&functions, over_one);
    let mut after = module.clone();
    for ((name, function), (result, reports)) in functions.into_iter().zip(results) {
        reports.into_iter().for_each(|report| run.report(report.level, report.text));
        match result {
            Ok(new) if Arc::ptr_eq(&new, function) => {}
            Ok(new) => after.insert(name, new),
            Err(failure) => {
                let name = module.cx().terms().str(name).to_owned();
                return Err(Failed { function: Some((name, function.clone())), failure });
            }
        }
    }
    Ok(after)
}

/// What follows from something that was refused would only hide it.
fn unless_refused<T>(run: &Run, result: Result<T, PassFailure>) -> Result<T, PassFailure> {
    match run.refused() {
        Some(what) => Err(PassFailure::refused(what)),
        None => result,
    }
}

/// What the passes over one function came to.
struct Way {
    /// The function behind each pass.
    after: Vec<Arc<Function>>,
    times: Vec<Option<FunctionTime>>,
    reports: Vec<(String, Report)>,
    /// The pass that failed is the one behind those of `after`.
    failure: Option<Fault>,
}

enum Fault {
    Failed(PassFailure),
    Untyped(Arc<Function>, InferError),
}

fn over_functions(
    links: &[Link<'_>],
    module: &Module,
    cx: &mut PassContext,
) -> Result<Vec<Ran>, PassError> {
    let start = Instant::now();
    let is_watched = cx.instruments.iter().any(|instrument| instrument.times_functions());
    let is_timed = is_watched || links.len() > 1;
    let taken =
        |(_, function): &(Symbol, &Arc<Function>)| links.iter().any(|link| link.takes(function));
    let functions: Vec<(Symbol, &Arc<Function>)> = module.iter().filter(taken).collect();
    let targets = Arc::new(TargetsOfFunctions::new(cx.target));
    let runs: Vec<Arc<Run>> = links.iter().map(|link| link.run_for(module, &targets, cx)).collect();
    let go = |&(name, function): &(Symbol, &Arc<Function>)| {
        let new_run = |link: usize| Arc::new(runs[link].for_function(function));
        go_through(links, name, function, module, new_run, is_timed)
    };
    let ways = parallel::map(&functions, go);
    let wall = start.elapsed();

    let mut fault = None;
    let mut times: Vec<Vec<FunctionTime>> = links.iter().map(|_| Vec::new()).collect();
    let mut layers: Vec<Vec<Arc<Function>>> = links.iter().map(|_| Vec::new()).collect();
    for (at, way) in ways.into_iter().enumerate() {
        cx.reports.extend(way.reports);
        if let Some(failure) = way.failure {
            let (name, function) = functions[at];
            let before = way.after.last().unwrap_or(function).clone();
            fault.get_or_insert((&links[way.after.len()], name, before, failure));
            continue;
        }
        for (link, (after, time)) in way.after.into_iter().zip(way.times).enumerate() {
            layers[link].push(after);
            times[link].extend(time);
        }
    }
    if let Some((link, name, before, failure)) = fault {
        return Err(match failure {
            Fault::Failed(failure) => {
                let name = module.cx().terms().str(name).to_owned();
                link.failed(Some((name, before)), failure)
            }
            Fault::Untyped(body, error) => {
                PassError::untyped_function(&link.step.name, module, (name, body), error)
            }
        });
    }
    let last = layers.len() - 1;
    let mut before = module.clone();
    let mut ran = Vec::with_capacity(links.len());
    let shares = shares(wall, &times);
    for (number, (layer, (times, wall))) in
        layers.into_iter().zip(times.into_iter().zip(shares)).enumerate()
    {
        let mut after = before.clone();
        for ((name, _), function) in functions.iter().zip(layer) {
            if !before.get(*name).is_some_and(|old| Arc::ptr_eq(old, &function)) {
                after.insert(*name, function);
            }
        }
        if number == last {
            // The types of calls between functions that changed both.
            after = infer_changed(module, &after).map_err(|errors| {
                PassError::untyped(&links[number].step.name, module, &after, errors)
            })?;
        }
        before = after.clone();
        let functions = if is_watched { times } else { Vec::new() };
        let is_whole = links[number].is_for_all(module);
        ran.push(Ran { after, wall, functions, is_whole });
    }
    Ok(ran)
}

/// The time of several passes that ran in one go, shared out by what each took of the functions' times.
fn shares(wall: Duration, times: &[Vec<FunctionTime>]) -> Vec<Duration> {
    if times.len() == 1 {
        return vec![wall];
    }
    let sum = |times: &Vec<FunctionTime>| times.iter().map(|time| time.wall).sum::<Duration>();
    let all: Duration = times.iter().map(sum).sum();
    let part = |times| sum(times).as_secs_f64() / all.as_secs_f64().max(f64::MIN_POSITIVE);
    times.iter().map(|times| wall.mul_f64(part(times))).collect()
}

fn go_through(
    links: &[Link<'_>],
    name: Symbol,
    function: &Arc<Function>,
    module: &Module,
    new_run: impl Fn(usize) -> Arc<Run>,
    is_timed: bool,
) -> Way {
    let mut way = Way { after: Vec::new(), times: Vec::new(), reports: Vec::new(), failure: None };
    let mut at = function.clone();
    for (number, link) in links.iter().enumerate() {
        let mut time = None;
        if link.takes(&at) {
            let run = new_run(number);
            let start = is_timed.then(Instant::now);
            let result = over_function(link, &run, &at, module);
            time = start.map(|start| {
                let thread = rayon::current_thread_index().unwrap_or(0);
                FunctionTime { name, start, wall: start.elapsed(), thread }
            });
            way.reports.extend(link.take_reports(&run));
            let after = unless_refused(&run, result).map_err(Fault::Failed);
            // The next pass reads types. Those of other functions are as they were.
            let is_last = number + 1 == links.len();
            let after = after.and_then(|after| match is_last || Arc::ptr_eq(&after, &at) {
                true => Ok(after),
                false => typed(after, module),
            });
            match after {
                Ok(after) => at = after,
                Err(fault) => {
                    way.failure = Some(fault);
                    return way;
                }
            }
        }
        way.after.push(at.clone());
        way.times.push(time);
    }
    way
}

fn typed(function: Arc<Function>, module: &Module) -> Result<Arc<Function>, Fault> {
    if function.is_prim() {
        return Ok(function);
    }
    infer(&function, &|callee| module.get(callee).and_then(|callee| signature(callee))).map_err(
        |errors| {
            let error = errors.into_iter().next().expect("a failure has an error");
            Fault::Untyped(function.clone(), error)
        },
    )
}

fn over_function(
    link: &Link<'_>,
    run: &Arc<Run>,
    function: &Arc<Function>,
    module: &Module,
) -> Result<Arc<Function>, PassFailure> {
    match (link.step.pass.body(), link.loaded) {
        (Body::Function(_, body), _) => {
            run_own(|| body(function, module, run), |after| after.cx().is_same(module.cx()))
        }
        (_, Some(LoadedPass::Here { plugin, index })) => {
            plugin.run_on_function(*index, run, function, module)
        }
        _ => unreachable!("a plugin's pass was loaded"),
    }
}
