//! The other end of the pipe: asks the process that takes times, waits no longer than a limit, and starts it anew when it ends.

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::message::{Answer, Candidate, Looked, Request};
use super::task::Task;
use crate::registry::Child;
use crate::target::Target;

/// The hidden command of the program.
pub const TRIAL_COMMAND: &str = "tune-trials";

/// How long a program may take to be judged.
const TO_PREPARE: Duration = Duration::from_secs(120);
/// How long a candidate may take to be scheduled.
const TO_LOOK: Duration = Duration::from_secs(10);
/// How long a candidate may take to be compiled and measured, besides some runs of what the rules choose.
const TO_MEASURE: Duration = Duration::from_secs(10);
/// Runs of what the rules choose that a candidate may take.
const RUNS: f64 = 100.0;

/// Why nothing was measured.
pub(super) enum NoTime {
    /// The candidate is to blame.
    Failed(String),
    /// The user has stopped it all.
    Stopped,
}

/// A process that takes times.
pub(super) struct Measurer {
    program: PathBuf,
    cpu: String,
    arguments: Vec<OsString>,
    cancelled: Arc<AtomicBool>,
    child: Option<Child>,
    /// The task that it knows, with its judge.
    known: Option<(usize, String)>,
}

impl Measurer {
    /// One that is started when it is first asked: a process of `program`, with what the registries in these files say.
    pub(super) fn new(
        program: PathBuf,
        registries: &[PathBuf],
        target: &Target,
        threads: NonZeroUsize,
        cancelled: Arc<AtomicBool>,
    ) -> Measurer {
        let mut arguments: Vec<OsString> =
            vec![TRIAL_COMMAND.into(), target.to_string().into(), threads.to_string().into()];
        for path in registries {
            arguments.extend(["--registry".into(), path.as_os_str().to_owned()]);
        }
        let cpu = target.cpu().to_owned();
        Measurer { program, cpu, arguments, cancelled, child: None, known: None }
    }

    /// Is stopped when this flag is set.
    pub(super) fn cancelled_by(&mut self, flag: Arc<AtomicBool>) {
        self.cancelled = flag;
    }

    /// Who judges a task. The process is told of it, unless it knows; so it is before anything else is asked, since it may have ended.
    pub(super) fn judge(&mut self, number: usize, task: &Task) -> Result<String, NoTime> {
        if let Some((known, judge)) = &self.known
            && *known == number
        {
            return Ok(judge.clone());
        }
        let Task { text, name, constants, bytes, .. } = task;
        let request = Request::Prepare {
            task: number,
            text: text.clone(),
            function: name.clone(),
            constants: constants.clone(),
            bytes: *bytes,
        };
        match self.ask(&request, TO_PREPARE)? {
            Answer::Prepared { judge } => {
                self.known = Some((number, judge.clone()));
                Ok(judge)
            }
            other => Err(NoTime::Failed(what_it_said(other))),
        }
    }

    /// The processor on which it measures.
    pub(super) fn cpu(&self) -> &str {
        &self.cpu
    }

    /// How a candidate of a task would run.
    pub(super) fn look(
        &mut self,
        number: usize,
        task: &Task,
        candidate: Candidate,
    ) -> Result<Looked, NoTime> {
        self.judge(number, task)?;
        match self.ask(&Request::Look { task: number, candidate }, TO_LOOK)? {
            Answer::Looked(looked) => Ok(looked),
            other => Err(NoTime::Failed(what_it_said(other))),
        }
    }

    /// Milliseconds that a schedule takes; `usual` are those of what the rules choose.
    pub(super) fn measure(
        &mut self,
        number: usize,
        task: &Task,
        trace: &str,
        usual: f64,
    ) -> Result<f64, NoTime> {
        self.judge(number, task)?;
        let request = Request::Measure { task: number, trace: trace.to_owned() };
        match self.ask(&request, limit(usual))? {
            Answer::Measured { ms } => Ok(ms),
            other => Err(NoTime::Failed(what_it_said(other))),
        }
    }

    /// Milliseconds that two schedules take, by turns.
    pub(super) fn pair(
        &mut self,
        number: usize,
        task: &Task,
        [first, second]: [&str; 2],
        usual: f64,
    ) -> Result<[f64; 2], NoTime> {
        self.judge(number, task)?;
        let (first, second) = (first.to_owned(), second.to_owned());
        let request = Request::Pair { task: number, first, second };
        match self.ask(&request, 2 * limit(usual))? {
            Answer::Paired { first, second } => Ok([first, second]),
            other => Err(NoTime::Failed(what_it_said(other))),
        }
    }

    fn ask(&mut self, request: &Request, limit: Duration) -> Result<Answer, NoTime> {
        if self.cancelled.load(Ordering::Relaxed) {
            return Err(NoTime::Stopped);
        }
        let text =
            serde_json::to_string(request).map_err(|error| NoTime::Failed(error.to_string()))?;
        let mut child = match self.child.take() {
            Some(child) => child,
            None => self.start().map_err(|error| NoTime::Failed(error.to_string()))?,
        };
        let cancelled = self.cancelled.clone();
        // Why nobody listens is known when the process is waited for.
        let _ = child.tell(&text);
        let is_awaited = |_: &mut Child| !cancelled.load(Ordering::Relaxed);
        let line = child.line(Some(Instant::now() + limit), is_awaited);
        match line
            .map_err(|ending| ending.to_string())
            .and_then(|line| serde_json::from_str(&line).map_err(|error| error.to_string()))
        {
            Ok(answer) => {
                self.child = Some(child);
                Ok(answer)
            }
            Err(_) if self.cancelled.load(Ordering::Relaxed) => Err(NoTime::Stopped),
            Err(why) => {
                self.known = None;
                Err(NoTime::Failed(format!("it {why}")))
            }
        }
    }

    fn start(&mut self) -> std::io::Result<Child> {
        self.known = None;
        Child::start(&self.program, &self.arguments, Stdio::piped(), Stdio::null())
    }
}

fn limit(usual: f64) -> Duration {
    TO_MEASURE + Duration::from_secs_f64((usual * RUNS / 1e3).clamp(0.0, 600.0))
}

fn what_it_said(answer: Answer) -> String {
    match answer {
        Answer::Refused { why } | Answer::Failed { why } => {
            why.lines().next().unwrap_or_default().to_owned()
        }
        _ => "it answered something else than was asked".to_owned(),
    }
}
