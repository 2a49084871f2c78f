//! The whole of it: which program of a model is looked at next, until nothing is hoped for, or the time is up.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use serde::Serialize;
use tenon_tuning::{Appender, Best, Database, Found, Line, digest};
use thiserror::Error;

use super::measurer::{Measurer, NoTime};
use super::message::{Candidate, Looked};
use super::search::{Search, Strategy};
use super::task::{Task, Tasks};
use crate::ir::Module;
use crate::session::{Installation, Model, Options, Pipeline, Session, SessionError, Watch};
use crate::target::Target;

/// The pipeline, of the registry, behind which programs say what they are known by.
const TASKS: &str = "tasks";
/// What a schedule has to gain, measured by turns with what the rules choose, to be kept.
const GAIN: f64 = 0.98;
/// Milliseconds that a program may take of which nothing is known.
const UNKNOWN: f64 = 1000.0;

/// When it ends.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Schedules that are measured, of all programs together.
    pub trials: Option<usize>,
    /// Time.
    pub time: Option<Duration>,
}

/// Why nothing is tuned.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum TuneError {
    #[error(transparent)]
    Session(#[from] SessionError),
    #[error("the tuning database {} cannot be {what}: {error}", path.display())]
    Database { path: PathBuf, what: &'static str, error: std::io::Error },
    #[error("code for {0} cannot be run on this machine, so nothing can be measured")]
    OtherMachine(String),
    #[error("the model has no program that is known by {0}")]
    Unknown(String),
    #[error("the model has no program that could be tuned{}", reasons(.0))]
    Nothing(Vec<(String, &'static str)>),
}

fn reasons(skipped: &[(String, &'static str)]) -> String {
    let one = |(name, why): &(String, &str)| format!("; @{name}: {why}");
    skipped.iter().map(one).collect()
}

/// What happens, for who watches.
#[derive(Clone, Debug)]
pub enum Event<'a> {
    /// So many different programs are tuned.
    Begins { tasks: usize, skipped: &'a [(String, &'static str)] },
    /// One is being measured.
    At { task: &'a str, op: &'a str },
    /// How far it is: schedules measured, milliseconds of all programs at first and now.
    Progress { trials: usize, before: f64, now: f64 },
    /// A faster schedule was found.
    Better { task: &'a str, op: &'a str, before: f64, now: f64, knobs: String },
}

/// What became of a program.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TaskReport {
    /// Its name in the model.
    #[serde(rename = "program")]
    pub name: String,
    /// What it is known by in a database.
    pub key: String,
    /// What it computes.
    pub op: String,
    /// How often the model calls it.
    #[serde(rename = "calls")]
    pub weight: usize,
    /// Milliseconds with what the rules choose; none where that could not be measured.
    pub default_ms: Option<f64>,
    /// Milliseconds with the best schedule that is known.
    pub best_ms: Option<f64>,
    /// The digest of that.
    pub schedule: String,
    /// Schedules that were measured.
    pub tried: usize,
    /// Those of them that failed.
    pub failed: usize,
    /// Candidates that were refused before.
    pub refused: usize,
    /// Whether there is nothing left to be tried.
    pub exhausted: bool,
    /// Why it was not measured, where it was not.
    pub why_not: Option<String>,
}

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Outcome {
    /// Each program.
    pub tasks: Vec<TaskReport>,
    /// Programs that are not tuned, with the reason.
    pub skipped: Vec<(String, &'static str)>,
    /// Whether the user has stopped it.
    #[serde(rename = "stopped")]
    pub is_stopped: bool,
}

/// How a model is tuned.
pub struct Tuning<'s> {
    session: &'s Session,
    target: Target,
    budget: Budget,
    strategy: Strategy,
    measurer: Measurer,
    database: PathBuf,
    only: Vec<String>,
    seed: u64,
}

/// A program while it is tuned.
struct Job {
    task: Task,
    judge: String,
    search: Option<Search>,
    tried: usize,
    failed: usize,
    why_not: Option<String>,
}

impl<'s> Tuning<'s> {
    /// Measures with processes of an installation, on this machine, and keeps what it finds in the file `database`.
    pub fn new(
        session: &'s Session,
        installation: &Installation,
        registries: &[PathBuf],
        target: &Target,
        threads: NonZeroUsize,
        database: &Path,
    ) -> Self {
        let program = installation.program.clone();
        let cancelled = session.cancelled().clone();
        let measurer = Measurer::new(program, registries, target, threads, cancelled);
        Tuning {
            session,
            target: target.clone(),
            budget: Budget { trials: None, time: None },
            strategy: Strategy::default(),
            measurer,
            database: database.to_owned(),
            only: Vec::new(),
            seed: 0,
        }
    }

    /// The same, which ends when a budget is spent.
    pub fn within(self, budget: Budget) -> Self {
        Self { budget, ..self }
    }

    /// The same, which picks candidates in this way.
    pub fn by(self, strategy: Strategy) -> Self {
        Self { strategy, ..self }
    }

    /// The same, which draws candidates from this seed on.
    pub fn seeded(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// The same, of the programs alone that are known by these keys; of all where there are none.
    pub fn only(self, keys: Vec<String>) -> Self {
        Self { only: keys, ..self }
    }

    /// The same, stopped when this flag is set, and not by that of the session.
    pub fn cancelled_by(mut self, flag: Arc<AtomicBool>) -> Self {
        self.measurer.cancelled_by(flag);
        self
    }

    /// The programs that would be tuned. Nothing is measured.
    ///
    /// # Errors
    /// As those of [`Tuning::run`].
    pub fn list(&self, model: &Model, options: &Options) -> Result<Outcome, TuneError> {
        let Tasks { tasks, skipped } = self.tasks(model, options)?;
        let tasks = tasks.into_iter().map(|task| Job::new(task).report()).collect();
        Ok(Outcome { tasks, skipped, is_stopped: false })
    }

    /// Tunes the programs of a model. What was found is in the database whenever it is stopped.
    ///
    /// # Errors
    /// When the model has no programs, the database cannot be used, or code for the target does not run here.
    pub fn run(
        &mut self,
        model: &Model,
        options: &Options,
        watch: &mut dyn FnMut(Event<'_>),
    ) -> Result<Outcome, TuneError> {
        let start = Instant::now();
        let files = self.open()?;
        let found = self.tasks(model, options)?;
        self.measure(found, files, start, watch)
    }

    /// Tunes the programs of a module that say what they are known by; where there are none, nothing is done.
    ///
    /// # Errors
    /// When the database cannot be used, or code for the target does not run here.
    pub fn run_marked(
        &mut self,
        module: &Module,
        watch: &mut dyn FnMut(Event<'_>),
    ) -> Result<Outcome, TuneError> {
        let start = Instant::now();
        let files = self.open()?;
        let found = Tasks::of(module);
        if found.tasks.is_empty() {
            return Ok(Outcome { skipped: found.skipped, ..Outcome::default() });
        }
        let found = self.chosen(found)?;
        self.measure(found, files, start, watch)
    }

    /// The database, to be read and to be appended to.
    fn open(&self) -> Result<(Appender, Database), TuneError> {
        if !self.target.runs_here() {
            return Err(TuneError::OtherMachine(self.target.to_string()));
        }
        let appender = Appender::open(&self.database).map_err(self.failed("opened"))?;
        let database = Database::read(&self.database).map_err(self.failed("read"))?;
        Ok((appender, database))
    }

    fn failed(&self, what: &'static str) -> impl Fn(std::io::Error) -> TuneError + use<> {
        let path = self.database.clone();
        move |error| TuneError::Database { path: path.clone(), what, error }
    }

    fn measure(
        &mut self,
        Tasks { tasks, skipped }: Tasks,
        (mut appender, database): (Appender, Database),
        start: Instant,
        watch: &mut dyn FnMut(Event<'_>),
    ) -> Result<Outcome, TuneError> {
        watch(Event::Begins { tasks: tasks.len(), skipped: &skipped });
        let mut jobs: Vec<Job> = tasks.into_iter().map(Job::new).collect();
        let done = self.search(&mut jobs, &database, &mut appender, start, watch);
        let is_stopped = match done {
            Ok(()) => false,
            Err(Ends::Stopped) => true,
            Err(Ends::Database(error)) => return Err(self.failed("written")(error)),
        };
        let tasks = jobs.into_iter().map(Job::report).collect();
        Ok(Outcome { tasks, skipped, is_stopped })
    }

    /// The different programs of a model.
    fn tasks(&self, model: &Model, options: &Options) -> Result<Tasks, TuneError> {
        // What a pass of that pipeline would measure is measured here.
        let pipeline = Pipeline::Text(TASKS.to_owned());
        let options = Options { pipeline, measures: false, ..options.clone() };
        let lowered = self.session.lower(model, &self.target, &options, &mut Watch::default())?;
        let found = Tasks::of(&lowered);
        match found.tasks.is_empty() {
            true => Err(TuneError::Nothing(found.skipped)),
            false => self.chosen(found),
        }
    }

    /// Those of them that are to be tuned.
    fn chosen(&self, mut found: Tasks) -> Result<Tasks, TuneError> {
        if !self.only.is_empty() {
            found.tasks.retain(|task| self.only.contains(&task.keys.program));
        }
        match found.tasks.is_empty() {
            true => Err(TuneError::Unknown(self.only.join(", "))),
            false => Ok(found),
        }
    }

    fn search(
        &mut self,
        jobs: &mut [Job],
        database: &Database,
        appender: &mut Appender,
        start: Instant,
        watch: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), Ends> {
        for (number, job) in jobs.iter_mut().enumerate() {
            watch(Event::At { task: &job.task.name, op: &job.task.op });
            self.begin(number, job, database)?;
        }
        loop {
            let trials = jobs.iter().map(|job| job.tried).sum();
            let [before, now] = sums(jobs);
            watch(Event::Progress { trials, before, now });
            let left = self.left(trials, start);
            if left == 0 {
                return Ok(());
            }
            let hope = |job: &Job| {
                job.search.as_ref().map_or(0.0, |search| search.hope() * job.task.weight as f64)
            };
            let best = (0..jobs.len()).max_by(|&a, &b| hope(&jobs[a]).total_cmp(&hope(&jobs[b])));
            let Some(number) = best.filter(|&number| hope(&jobs[number]) > 0.0) else {
                return Ok(());
            };
            watch(Event::At { task: &jobs[number].task.name, op: &jobs[number].task.op });
            self.round(number, &mut jobs[number], left, appender, watch)?;
        }
    }

    /// How many schedules may still be measured.
    fn left(&self, trials: usize, start: Instant) -> usize {
        match self.budget.time {
            Some(most) if start.elapsed() >= most => 0,
            _ => self.budget.trials.map_or(usize::MAX, |most| most.saturating_sub(trials)),
        }
    }

    /// Measures what the rules choose for a program, and takes up what was found of it before.
    fn begin(&mut self, number: usize, job: &mut Job, database: &Database) -> Result<(), Ends> {
        let measurer = &mut self.measurer;
        let mut measured = || {
            let judge = measurer.judge(number, &job.task)?;
            let default = measurer.look(number, &job.task, Candidate::Default)?;
            let ms = measurer.measure(number, &job.task, &default.trace, UNKNOWN)?;
            Ok((judge, default, ms))
        };
        let (judge, default, ms) = match measured() {
            Ok(measured) => measured,
            Err(NoTime::Stopped) => return Err(Ends::Stopped),
            Err(NoTime::Failed(why)) => {
                job.why_not = Some(why);
                return Ok(());
            }
        };
        let Task { op, keys, target, .. } = &job.task;
        let registry = self.session.registry();
        // Another run is to draw other candidates, beginning where the last one ended.
        let lines = database.found(&keys.program, target);
        let seed = self.seed.wrapping_add(lines.len() as u64);
        let mut search = Search::new(registry, op, default, ms, self.strategy, seed);
        search.go_on(&lines);
        (job.judge, job.search) = (judge, Some(search));
        Ok(())
    }

    /// Measures some schedules of a program, as many as are left at most.
    fn round(
        &mut self,
        number: usize,
        job: &mut Job,
        left: usize,
        appender: &mut Appender,
        watch: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), Ends> {
        let Some(search) = &mut job.search else { return Ok(()) };
        let measurer = &mut self.measurer;
        let task = &job.task;
        let candidates =
            search.round(|candidate| match measurer.look(number, task, candidate) {
                Ok(looked) => Ok(Some(looked)),
                Err(NoTime::Failed(_)) => Ok(None),
                Err(NoTime::Stopped) => Err(Ends::Stopped),
            })?;
        let before = search.best_ms;
        let mut lines = Vec::new();
        for looked in candidates.into_iter().take(left) {
            let found = try_one(measurer, number, job, &looked)?;
            let Some(found) = found else { continue };
            if let Found::Best(best) = &found {
                let (task, op) = (job.task.name.as_str(), job.task.op.as_str());
                let knobs = knobs_text(best);
                watch(Event::Better { task, op, before: best.default_ms, now: best.ms, knobs });
            }
            let line = Line::new(&job.task.keys, &job.task.target, found);
            // At once: whatever ends this process, nothing is lost.
            appender.append([&line]).map_err(Ends::Database)?;
            lines.push(line);
        }
        if let Some(search) = &mut job.search {
            search.in_vain = if search.best_ms < before { 0 } else { search.in_vain + 1 };
        }
        Ok(())
    }
}

/// Why a search ends before its time.
enum Ends {
    Stopped,
    Database(std::io::Error),
}

/// Measures a schedule of a program, and if it is faster than any before, by turns with what the rules choose.
fn try_one(
    measurer: &mut Measurer,
    number: usize,
    job: &mut Job,
    looked: &Looked,
) -> Result<Option<Found>, Ends> {
    let Some(search) = &mut job.search else { return Ok(None) };
    let schedule = digest(looked.trace.as_bytes());
    let mut measured = || {
        let ms = measurer.measure(number, &job.task, &looked.trace, search.default_ms)?;
        if ms >= search.best_ms * GAIN.max(search.best_ms / search.default_ms) {
            return Ok((ms, None));
        }
        let traces = [search.default.trace.as_str(), looked.trace.as_str()];
        let [default_ms, ms] = measurer.pair(number, &job.task, traces, search.default_ms)?;
        Ok((ms, Some(default_ms)))
    };
    job.tried += 1;
    match measured() {
        Err(NoTime::Stopped) => Err(Ends::Stopped),
        Err(NoTime::Failed(why)) => {
            job.failed += 1;
            Ok(Some(Found::Failed { schedule, why }))
        }
        Ok((ms, Some(default_ms)))
            if ms < default_ms * GAIN && ms / default_ms < search.best_ms / search.default_ms =>
        {
            (search.best, search.best_ms) = (looked.clone(), ms / default_ms * search.default_ms);
            Ok(Some(Found::Best(Best {
                schedule,
                op: job.task.op.clone(),
                rule: looked.rule.clone(),
                knobs: looked.knobs.clone(),
                trace: looked.trace.clone(),
                ms,
                default_ms,
                judge: job.judge.clone(),
                cpu: measurer.cpu().to_owned(),
                tenon: env!("CARGO_PKG_VERSION").to_owned(),
            })))
        }
        Ok((ms, _)) => Ok(Some(Found::Tried { schedule, ms })),
    }
}

fn knobs_text(best: &Best) -> String {
    match best.knobs.is_empty() {
        true => "its trace in another way".to_owned(),
        false => {
            let knobs = best.knobs.iter().map(|(name, value)| format!("{name} = {value}"));
            knobs.collect::<Vec<_>>().join(", ")
        }
    }
}

/// Milliseconds of all programs, as often as they are called, at first and now.
fn sums(jobs: &[Job]) -> [f64; 2] {
    let searches =
        jobs.iter().filter_map(|job| Some((job.task.weight as f64, job.search.as_ref()?)));
    searches.fold([0.0, 0.0], |[before, now], (weight, search)| {
        [before + weight * search.default_ms, now + weight * search.best_ms]
    })
}

impl Job {
    fn new(task: Task) -> Job {
        Job { task, judge: String::new(), search: None, tried: 0, failed: 0, why_not: None }
    }

    fn report(self) -> TaskReport {
        let Task { name, op, weight, keys, .. } = self.task;
        let search = self.search.as_ref();
        TaskReport {
            name,
            key: keys.program,
            op,
            weight,
            default_ms: search.map(|search| search.default_ms),
            best_ms: search.map(|search| search.best_ms),
            schedule: search.map_or(String::new(), |search| digest(search.best.trace.as_bytes())),
            tried: self.tried,
            failed: self.failed,
            refused: search.map_or(0, |search| search.refused),
            exhausted: search.is_some_and(Search::is_exhausted),
            why_not: self.why_not,
        }
    }
}
