//! Running the passes: what is told of them, and what is left behind when one fails.

use super::{
    Model, Observer, Options, Pipeline, ReproducerPlace, Session, SessionError, Validation, Watch,
    write_reproducer,
};
use crate::executable::CompileError;
use crate::ir::Module;
use crate::passes::{
    PassContext, PassError, Plan, Record, Reproducer, Settings, Snapshot, Step, Validate, run,
};
use crate::plan::functions_of;
use crate::target::Target;
use crate::validate::{CompiledError, Reference, Tolerance, compare_compiled};

impl Session {
    /// Runs the passes of `options.pipeline` over a model.
    pub fn lower(
        &self,
        model: &Model,
        target: &Target,
        options: &Options,
        watch: &mut Watch<'_>,
    ) -> Result<Module, SessionError> {
        let module = &model.module;
        model.notes.iter().for_each(|note| watch.observer.warns(note));
        if let Pipeline::None = options.pipeline {
            return Ok(module.clone());
        }
        if let ReproducerPlace::File(path) = &options.reproducer {
            model.files.refuse(path)?;
        }
        let plan = self.plan(options)?;
        let record = Record::default();
        let mut cx = self.pass_context(module, target, options)?;
        cx.instruments.insert(0, Box::new(record.clone()));
        cx.instruments.append(&mut watch.instruments);
        if let Some(flag) = &watch.cancelled {
            cx.cancelled = flag.clone();
        }
        let result = self.run(&plan, module, &mut cx);
        self.tell(&mut cx, &mut *watch.observer);
        let lowered = result.map_err(|error| {
            let failed = Failed { session: self, model, target, options, plan: &plan };
            failed.explain(&error, &record)
        })?;
        if options.validate == Some(Validation::Compiled) {
            watch.observer.begins("comparing compiled code");
            let compared = compare((module, &lowered), &plan, &cx.settings, target, options);
            for text in compared.map_err(Box::new)? {
                watch.observer.says(&format!("validate: {text}"));
            }
        }
        Ok(lowered)
    }

    /// Runs a plan over a module, with nothing but what the context says.
    pub fn run(
        &self,
        plan: &Plan,
        module: &Module,
        cx: &mut PassContext,
    ) -> Result<Module, PassError> {
        run(&self.registry, plan, module, cx)
    }

    /// Tells what is to be told of plugins, by instruments and by passes.
    fn tell(&self, cx: &mut PassContext, observer: &mut dyn Observer) {
        let warnings = self.registry.take_warnings();
        for warning in warnings.into_iter().chain(self.registry.choices_of_nothing()) {
            observer.warns(&warning);
        }
        for instrument in &mut cx.instruments {
            if let Some(text) = instrument.report() {
                observer.says(&text);
            }
        }
        for (pass, report) in &cx.reports {
            observer.reports(pass, report);
        }
    }

    /// What stands above the module that a plan failed with at a step.
    pub fn reproducer(
        &self,
        plan: &Plan,
        target: &Target,
        options: &Options,
        step: usize,
        error: String,
    ) -> Reproducer {
        let how = Reproducer {
            opt_level: options.opt_level,
            disable: options.disabled.clone(),
            require: options.required.clone(),
            instrument: options.instruments.clone(),
            verify_each: options.verify_each,
            validate: options.seed_between_passes(),
            target: target.to_string(),
            error,
            ..Reproducer::default()
        };
        how.with_plan(&self.registry, plan, step)
    }
}

/// A run that failed.
struct Failed<'a> {
    session: &'a Session,
    model: &'a Model,
    target: &'a Target,
    options: &'a Options,
    plan: &'a Plan,
}

impl Failed<'_> {
    /// What to tell, with the file in which it can be seen again.
    fn explain(&self, error: &PassError, record: &Record) -> SessionError {
        let diagnostic = error.to_diagnostic();
        let is_cancelled = error.is_cancelled();
        let diagnostic =
            match self.failed_with(error, record).filter(|_| !is_cancelled) {
                None => diagnostic,
                Some(failed) => {
                    let error = error.to_string();
                    let Failed { session, target, options, plan, .. } = self;
                    let above = session.reproducer(plan, target, options, failed.step, error);
                    let files = &self.model.files;
                    match write_reproducer(&above, &failed, &options.reproducer, files) {
                        Ok(Some(path)) => diagnostic
                            .help(format!("to see it again: tenon opt {}", path.display())),
                        Ok(None) if options.reproducer == ReproducerPlace::Nowhere => diagnostic,
                        Ok(None) => diagnostic
                            .help("--reproducer FILE writes a module to see it again with"),
                        Err(error) => {
                            diagnostic.note(format!("the reproducer was not written: {error}"))
                        }
                    }
                }
            };
        SessionError::Passes { diagnostic: Box::new(diagnostic), is_cancelled }
    }

    /// The module before the step that failed. Where an instrument stops it all before a pass begins, that is the module
    /// as it was given.
    fn failed_with(&self, error: &PassError, record: &Record) -> Option<Snapshot> {
        let given =
            || Snapshot { step: 0, pass: "start".to_owned(), module: self.model.module.clone() };
        let given = || error.is_of_instrument().then(given);
        error.stopped_at().or_else(|| record.before()).or_else(given)
    }
}

/// Compares what is compiled of a lowered module with what the module before the pipeline computes, on inputs of seed 0, as
/// closely as the passes that ran allow: the function that is named, or all that are compiled. What is to be said of each.
fn compare(
    (before, lowered): (&Module, &Module),
    plan: &Plan,
    settings: &Settings,
    target: &Target,
    options: &Options,
) -> Result<Vec<String>, CompiledError> {
    let mut reference = Reference::with_limits(before, 0, Validate::limits(settings));
    let parts = plan.steps.iter().filter_map(|step| match step {
        Step::Pass(step) => step.pass.tolerance(),
        _ => None,
    });
    parts.for_each(|part| reference.tolerate(Tolerance::part(part)));
    let (functions, has_default) = match &options.code.function {
        Some(name) => (vec![name.clone()], true),
        None => functions_of(lowered).map_err(CompileError::Plan)?,
    };
    let mut said = Vec::with_capacity(functions.len());
    for (at, function) in functions.iter().enumerate() {
        said.push(match compare_compiled(&reference, lowered, target, function) {
            Ok(()) => format!("what was compiled of @{function} computes what the evaluator does"),
            // Of others than the one that is meant.
            Err(error @ CompiledError::NoReference(..)) if at > 0 || !has_default => {
                error.to_string()
            }
            Err(error) => return Err(error),
        });
    }
    Ok(said)
}
