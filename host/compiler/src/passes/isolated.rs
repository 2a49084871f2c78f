//! A pass in a process of its own: the module goes there as text, its weights in a file beside it, and comes back
//! in the same way. What the plugin does to its process, it does not do to this one.
//!
//! Options and target travel as attributes of the module, since these can be whatever a term can be. A function
//! that the pass left alone is the very function that it was. A plugin that is a text is run in the same way, by whoever reads its
//! language.

use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};
use tenon_plugin_api::ir::{AttrValue, Attrs, Context, Expr, Term};
use thiserror::Error;

use super::execute::{Failed, apply_here, apply_own};
use super::pass::Pass;
use crate::border::{PassFailure, Report, ReportLevel, Run};
use crate::diagnostics::Diagnostics;
use crate::infer::{InferError, infer_module};
use crate::io::FileError;
use crate::ir::{Cx, Module, Origin, Symbol};
use crate::registry::{
    IsolatedPass, LoadError, Manifest, ManifestError, PassRecord, Registry, limit_memory, serve,
    serve_text,
};
use crate::text::{TextForm, read_module, write_module};
use crate::tune::Measuring;

/// How a module travels: constants of up to 64 elements stand in the text.
const FORM: TextForm = TextForm { inline_limit: 64, has_sources: true };

/// The keys of what travels as the module's attributes.
const MODULE: &str = "module";
const OPTIONS: &str = "options";
const TARGET: &str = "target";

#[derive(Serialize, Deserialize)]
struct Request {
    pass: String,
    /// The module that the pass works on.
    before: PathBuf,
    /// Where it goes.
    after: PathBuf,
    /// Whether it is to stop before it begins.
    is_cancelled: bool,
    edit_limit: Option<u32>,
    /// Bytes of memory that the process may take.
    memory: u64,
    /// The libraries that operators are from.
    operators: Origin,
    /// Who measures schedules for it.
    measuring: Measuring,
}

#[derive(Serialize, Deserialize)]
struct Answer {
    reports: Vec<(ReportLevel, String)>,
    outcome: Outcome,
}

#[derive(Serialize, Deserialize)]
enum Outcome {
    /// Nothing changed.
    Same,
    /// The file holds the module; these functions are as they were.
    Changed { same: Vec<String> },
    /// The pass failed.
    Failed {
        function: Option<String>,
        message: String,
        node: Option<u32>,
        is_cancelled: bool,
        is_panic: bool,
        by_host: bool,
    },
}

/// Runs a pass over a module in its process.
pub(super) fn apply(pass: &IsolatedPass, run: &Run, module: &Module) -> Result<Module, Failed> {
    let failed = |message: String| Failed::of_module(PassFailure::refused(&message));
    let folder = tempfile::tempdir().map_err(|error| failed(error.to_string()))?;
    let request = Request {
        pass: pass.name.clone(),
        before: folder.path().join("before.ir"),
        after: folder.path().join("after.ir"),
        is_cancelled: run.is_cancelled(),
        edit_limit: run.edit_limit(),
        memory: pass.limits.memory,
        operators: run.cx.operators().origin(),
        measuring: run.measuring().for_another_process(),
    };
    write_module(&packed(module, run), &request.before, FORM)
        .map_err(|error| failed(format!("the module cannot be sent to its process: {error}")))?;
    let line = serde_json::to_string(&request).map_err(|error| failed(error.to_string()))?;
    let answer = pass.ask(&line, || run.is_cancelled());
    let answer = answer.map_err(|what| match run.is_cancelled() {
        true => Failed::of_module(PassFailure::cancelled(what.text())),
        false => failed(what.text().to_owned()),
    })?;
    let answer: Answer = serde_json::from_str(&answer)
        .map_err(|error| failed(format!("its process answered what cannot be read: {error}")))?;
    for (level, text) in answer.reports {
        run.report(level, text);
    }
    match answer.outcome {
        Outcome::Same => Ok(module.clone()),
        Outcome::Changed { same } => {
            let mut after = read_module(module.cx(), &request.after)
                .map_err(|error| failed(format!("its module cannot be read: {error}")))?;
            for name in same {
                let name = module.cx().symbol(&name);
                match module.get(name) {
                    Some(function) => after.insert(name, function.clone()),
                    None => return Err(failed("its process named no function".to_owned())),
                }
            }
            Ok(after)
        }
        Outcome::Failed { function, message, node, is_cancelled, is_panic, by_host } => {
            let function = function.and_then(|name| {
                let found = module.get_str(&name)?.clone();
                Some((name, found))
            });
            let node = node.map(Expr);
            let program = None;
            let failure = PassFailure { message, node, program, is_cancelled, is_panic, by_host };
            Err(Failed { function, failure })
        }
    }
}

/// The module with all that the pass is given.
fn packed(module: &Module, run: &Run) -> Module {
    let mut packed = module.clone();
    let dict = |attrs: Attrs| AttrValue::Term(Term(attrs.0));
    let parts = [(MODULE, module.attrs), (OPTIONS, run.options), (TARGET, run.target)];
    let parts: Vec<(&str, AttrValue)> = parts
        .into_iter()
        .filter(|(_, attrs)| *attrs != Attrs::NONE)
        .map(|(key, attrs)| (key, dict(attrs)))
        .collect();
    packed.attrs = module.cx().attrs(&parts);
    packed
}

/// What the process of a plugin does.
pub fn serve_passes(library: &Path, sha256: &str, threads: Option<usize>) -> ExitCode {
    if let Some(threads) = threads {
        // It fails only where there are threads already, and then these do.
        let _ = rayon::ThreadPoolBuilder::new().num_threads(threads).build_global();
    }
    serve(library, sha256, |plugin, manifest, request, cancelled| {
        let apply = |record: &PassRecord, run: &Arc<Run>, module: &Module| {
            let index = plugin.index_of(&record.name)?;
            Some(apply_here(plugin, index, record.kind, run, module))
        };
        answer_line(manifest, request, cancelled, apply)
    })
}

/// What the process of a text does, in whatever language: `open` is given the text that was checked, and makes its passes, by their
/// names in the manifest.
///
/// # Errors
/// When the process cannot speak with the one that started it.
pub fn serve_passes_of_text<E: From<LoadError> + Display>(
    file: &Path,
    sha256: &str,
    open: impl FnOnce(&str, &Manifest) -> Result<Vec<Pass>, E>,
) -> io::Result<()> {
    serve_text(file, sha256, open, |passes, manifest, request, cancelled| {
        let apply = |record: &PassRecord, run: &Arc<Run>, module: &Module| {
            let pass = passes.iter().find(|pass| pass.name() == record.name)?;
            apply_own(pass, run, module)
        };
        answer_line(manifest, request, cancelled, apply)
    })
}

fn answer_line(
    manifest: &Manifest,
    request: &str,
    cancelled: &Arc<AtomicBool>,
    apply: impl FnOnce(&PassRecord, &Arc<Run>, &Module) -> Option<Result<Module, Failed>>,
) -> String {
    let answer = answer(manifest, request, cancelled, apply).unwrap_or_else(|error| {
        let failure = PassFailure::refused(&error.to_string());
        Answer { reports: Vec::new(), outcome: failed(None, failure) }
    });
    serde_json::to_string(&answer).expect("texts and numbers have a place in JSON")
}

/// Why there is no answer of the pass's.
#[derive(Debug, Error)]
enum AnswerError {
    #[error(transparent)]
    Request(#[from] serde_json::Error),
    #[error(transparent)]
    Memory(#[from] io::Error),
    #[error("there is no pass `{0}`")]
    NoPass(String),
    #[error(transparent)]
    Operators(#[from] ManifestError),
    #[error(transparent)]
    Text(#[from] Diagnostics),
    #[error(transparent)]
    File(#[from] FileError),
    #[error("{}", .0.first().map_or(String::new(), |(_, error)| error.to_string()))]
    Untyped(Vec<(Symbol, InferError)>),
}

/// `apply` runs a pass, where there is one.
fn answer(
    manifest: &Manifest,
    request: &str,
    cancelled: &Arc<AtomicBool>,
    apply: impl FnOnce(&PassRecord, &Arc<Run>, &Module) -> Option<Result<Module, Failed>>,
) -> Result<Answer, AnswerError> {
    let request: Request = serde_json::from_str(request)?;
    cancelled.fetch_or(request.is_cancelled, Ordering::Relaxed);
    limit_memory(request.memory)?;
    let unknown = || AnswerError::NoPass(request.pass.clone());
    let record = manifest.passes.iter().find(|pass| pass.name == request.pass);
    let record = record.ok_or_else(unknown)?;
    let operators = Registry::of_origin(&request.operators)?;
    let cx = Cx::with_operators(operators.operators());
    let mut before = read_module(&cx, &request.before)?;
    let part = |key| {
        let term = cx.terms().attrs(before.attrs).term(key);
        term.map_or(Attrs::NONE, |term| Attrs(term.0))
    };
    let (attrs, options, target) = (part(MODULE), part(OPTIONS), part(TARGET));
    before.attrs = attrs;
    let before = infer_module(&before).map_err(AnswerError::Untyped)?;
    let run = Run::new(cx.clone(), options, target, cancelled.clone());
    let run = run.with_edit_limit(request.edit_limit).with_module(before.clone());
    let run = Arc::new(run.with_asks(&record.asks).with_measuring(Arc::new(request.measuring)));
    let outcome = match apply(record, &run, &before).ok_or_else(unknown)? {
        Ok(after) if after.is_identical(&before) => Outcome::Same,
        Ok(after) => {
            write_module(&after, &request.after, FORM)?;
            let same = after
                .iter()
                .filter(|(name, new)| before.get(*name).is_some_and(|old| Arc::ptr_eq(old, new)))
                .map(|(name, _)| cx.terms().str(name).to_owned());
            Outcome::Changed { same: same.collect() }
        }
        Err(Failed { function, failure }) => failed(function.map(|(name, _)| name), failure),
    };
    let reports = run.take_reports().into_iter().map(|Report { level, text }| (level, text));
    Ok(Answer { reports: reports.collect(), outcome })
}

fn failed(function: Option<String>, failure: PassFailure) -> Outcome {
    let PassFailure { message, node, program, is_cancelled, is_panic, by_host } = failure;
    // A node of a program that the other process made says nothing here.
    let node = node.filter(|_| program.is_none()).map(|node| node.0);
    Outcome::Failed { function, message, node, is_cancelled, is_panic, by_host }
}
