//! What passes ask for: schedules of the programs of a module are measured while a pass waits.
//!
//! Who asks is a plugin, and cannot compile. What it names, a file and how much is measured, comes with the question; what measures, processes of
//! an installation for the target at hand, was told to whoever runs the passes. Both are data, so a pass in a process of its own
//! is answered there in the same way.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenon_plugin_api::ir::{AttrValue, Attrs, AttrsView, Context, Term, TermView, Terms};
use thiserror::Error;

use super::search::Strategy;
use super::tuning::{Budget, Outcome, TaskReport, TuneError, Tuning};
use crate::border::Run;
use crate::ir::{Cx, Module};
use crate::registry::ConfigError;
use crate::session::{Installation, Session};
use crate::target::{Target, TargetError};

/// Who measures schedules for passes that ask for it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub enum Measuring {
    /// Nobody: who runs the passes knows no program that could.
    #[default]
    Nobody,
    /// Nobody, since what is compiled is a candidate itself, or a model whose programs somebody else looks for.
    Candidate,
    /// Processes of an installation.
    By(Laboratory),
}

/// What starts processes that measure.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Laboratory {
    /// Whose program it is.
    pub installation: Installation,
    /// The files of the registry.
    pub registries: Vec<PathBuf>,
    /// What is compiled for, as a text.
    pub target: String,
}

impl Measuring {
    /// The same for another process, in which the kernel's name of this program's file is that of another one.
    pub(crate) fn for_another_process(&self) -> Measuring {
        let mut measuring = self.clone();
        if let Measuring::By(Laboratory { installation, .. }) = &mut measuring
            && let Ok(program) = installation.program.canonicalize()
        {
            installation.program = program;
        }
        measuring
    }
}

/// Why nothing is measured for a pass.
#[derive(Debug, Error)]
pub enum MeasuringError {
    /// The passes are run without a session.
    #[error(
        "nobody measures schedules here: these passes are not run by a session, which knows the program that does"
    )]
    Nobody,
    /// The pass said what makes no sense.
    #[error("`{key}` of what is to be measured {what}")]
    Asked {
        /// The key of the dictionary.
        key: &'static str,
        /// What is wrong.
        what: &'static str,
    },
    /// It was stopped. What was found is kept.
    #[error("the measuring was stopped")]
    Stopped,
    /// The registry cannot be read again.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// It is none of this program's targets.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The tuner's own.
    #[error(transparent)]
    Tune(#[from] TuneError),
}

/// Measures schedules of the programs of a module that say what they are known by, for a pass that runs. The answer says what came of
/// it; none where the module is a candidate's.
///
/// # Errors
/// When nobody measures, the database cannot be used, code for the target does not run here, or the run is stopped.
pub(crate) fn measure_for_pass(
    run: &Run,
    module: &Module,
    how: Attrs,
) -> Result<Option<Attrs>, MeasuringError> {
    let laboratory = match run.measuring() {
        Measuring::Nobody => return Err(MeasuringError::Nobody),
        Measuring::Candidate => return Ok(None),
        Measuring::By(laboratory) => laboratory,
    };
    let how = run.cx.terms().attrs(how);
    let Laboratory { installation, registries, target } = laboratory;
    let session = Session::open(installation, registries)?;
    let target = Target::parse(target)?;
    let database = match how.str("tune_db") {
        None | Some("") => return Err(asked("tune_db", "names no file")),
        Some(path) => Path::new(path),
    };
    let threads = threads(number(how, "threads")?.unwrap_or(0));
    let strategy =
        if how.bool("random") == Some(true) { Strategy::Random } else { Strategy::Model };
    let seconds = number(how, "seconds")?.filter(|&seconds| seconds > 0);
    let budget = Budget {
        trials: number(how, "trials")?.map(|trials| trials as usize),
        time: seconds.map(Duration::from_secs),
    };
    let tuning = Tuning::new(&session, installation, registries, &target, threads, database);
    let tuning = tuning.within(budget).by(strategy).seeded(number(how, "seed")?.unwrap_or(0));
    let tuning = tuning.only(texts(run.cx.terms(), how, "only")?);
    let mut tuning = tuning.cancelled_by(run.cancelled.clone());
    let outcome = tuning.run_marked(module, &mut |_| {})?;
    match outcome.is_stopped {
        true => Err(MeasuringError::Stopped),
        false => Ok(Some(answer(&run.cx, &outcome))),
    }
}

fn asked(key: &'static str, what: &'static str) -> MeasuringError {
    MeasuringError::Asked { key, what }
}

fn number(how: AttrsView<'_>, key: &'static str) -> Result<Option<u64>, MeasuringError> {
    match how.get(key) {
        None => Ok(None),
        Some(TermView::Int(value)) => {
            u64::try_from(value).map(Some).map_err(|_| asked(key, "is less than nothing"))
        }
        Some(_) => Err(asked(key, "is no number")),
    }
}

fn texts(
    terms: Terms<'_>,
    how: AttrsView<'_>,
    key: &'static str,
) -> Result<Vec<String>, MeasuringError> {
    let text = |&item: &Term| match terms.view(item) {
        TermView::Str(text) => Ok(text.to_owned()),
        _ => Err(asked(key, "is no list of texts")),
    };
    match how.get(key) {
        None => Ok(Vec::new()),
        Some(TermView::List(items)) => items.iter().map(text).collect(),
        Some(_) => Err(asked(key, "is no list of texts")),
    }
}

/// Threads that work on a run; 0 is one for each core.
fn threads(wanted: u64) -> NonZeroUsize {
    let all = || std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    usize::try_from(wanted).ok().and_then(NonZeroUsize::new).unwrap_or_else(all)
}

/// What came of it, as a pass reads it.
fn answer(cx: &Cx, outcome: &Outcome) -> Attrs {
    let sum = |ms: fn(&TaskReport) -> Option<f64>| -> f64 {
        let all = outcome.tasks.iter();
        all.filter_map(|task| Some(task.weight as f64 * ms(task)?)).sum()
    };
    let is_faster = |task: &&TaskReport| task.best_ms < task.default_ms;
    let tried: usize = outcome.tasks.iter().map(|task| task.tried).sum();
    let skipped = outcome.skipped.iter().map(|(name, why)| format!("@{name}: {why}"));
    let failed = outcome.tasks.iter().filter_map(|task| {
        let why = task.why_not.as_ref()?;
        Some(format!("@{}: {why}", task.name))
    });
    let left_out: Vec<Term> = skipped.chain(failed).map(|text| cx.symbol(&text).into()).collect();
    cx.attrs(&[
        ("programs", (outcome.tasks.len() as i64).into()),
        ("trials", (tried as i64).into()),
        ("faster", (outcome.tasks.iter().filter(is_faster).count() as i64).into()),
        ("before_ms", sum(|task| task.default_ms).into()),
        ("now_ms", sum(|task| task.best_ms).into()),
        ("left_out", AttrValue::Term(cx.list(&left_out))),
    ])
}
