//! The process in which an isolated plugin's passes run, or those of a text: started when the first of them is needed,
//! again after it died, and ended with the registry.

use std::ffi::OsString;
use std::fmt::Display;
use std::io::{self, BufRead, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::child::{self, Child, Ending};
use super::journal::{self, Act, Doing};
use super::{Guard, LibraryFile, LoadError, Manifest, Plugin, ProbeLimits, Reason, digest};

/// The hidden command of the program.
pub const WORKER_COMMAND: &str = "plugin-worker";

/// The process of one plugin.
pub struct Worker {
    /// The program and its first arguments; the library and its digest follow.
    command: Vec<OsString>,
    library: PathBuf,
    sha256: String,
    limits: ProbeLimits,
    threads: Option<usize>,
    child: Mutex<Option<Child>>,
}

/// A pass that runs in a process of its own.
#[derive(Clone)]
pub struct IsolatedPass {
    /// The process.
    pub worker: Arc<Worker>,
    /// The pass's name.
    pub name: String,
    /// What it may take while it runs over a module.
    pub limits: PassLimits,
}

/// What a pass in a process of its own may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PassLimits {
    /// Wall time; any where there is none.
    pub time: Option<Duration>,
    /// Memory of its process's own, in bytes.
    pub memory: u64,
}

impl PassLimits {
    /// What a registry says, in seconds and MiB. Where it says nothing of memory it is half of the computer's.
    pub(super) fn new(seconds: Option<u64>, mebibytes: Option<u64>) -> PassLimits {
        let half = || {
            let system = rustix::system::sysinfo();
            system.totalram.saturating_mul(system.mem_unit.into()) / 2
        };
        let memory = mebibytes.map_or_else(half, |mebibytes| mebibytes.saturating_mul(1 << 20));
        PassLimits { time: seconds.map(Duration::from_secs), memory }
    }
}

impl IsolatedPass {
    /// Sends a line to its process and waits for the answer. When `is_cancelled`, the process is told to stop, and ended
    /// when it does not. An error says what it did instead of answering; the next request starts it anew.
    pub(crate) fn ask(
        &self,
        request: &str,
        is_cancelled: impl Fn() -> bool,
    ) -> Result<String, Reason> {
        let what = format!("pass `{}`", self.name);
        let note = Doing::new(Act::Waiting, "", &what, &self.worker.library).note();
        journal::during(&note, || self.worker.ask(request, self.limits, is_cancelled))
    }
}

/// How long a pass may go on after it was told to stop.
const GRACE: Duration = Duration::from_secs(2);

/// The line that tells a process to stop what it does.
const CANCEL: &str = "cancel";

impl Worker {
    /// The command of a guard's program.
    pub(super) fn command(guard: &Guard) -> Vec<OsString> {
        vec![guard.program().into(), WORKER_COMMAND.into()]
    }

    /// Starts the process for the library, or the text, of this digest, and waits until it is open there.
    pub(super) fn start(
        command: Vec<OsString>,
        library: &Path,
        sha256: &str,
        limits: ProbeLimits,
        threads: Option<usize>,
    ) -> Result<Worker, LoadError> {
        let worker = Worker {
            command,
            library: library.to_owned(),
            sha256: sha256.to_owned(),
            limits,
            threads,
            child: Mutex::default(),
        };
        let failed = |reason: Reason| LoadError::Incompatible {
            path: worker.library.clone(),
            reason: reason.to_string(),
        };
        let child = worker.start_child().map_err(failed)?;
        Ok(Worker { child: Mutex::new(Some(child)), ..worker })
    }

    fn ask(
        &self,
        request: &str,
        limits: PassLimits,
        is_cancelled: impl Fn() -> bool,
    ) -> Result<String, Reason> {
        let mut place = self.child.lock().unwrap_or_else(PoisonError::into_inner);
        let mut child = place.take().map_or_else(|| self.start_child(), Ok)?;
        let until = limits.time.map(|limit| Instant::now() + limit);
        let mut told: Option<Instant> = None;
        let mut is_awaited = |child: &mut Child| {
            if told.is_none() && is_cancelled() {
                told = Some(Instant::now());
                // One that does not listen is ended all the same.
                let _ = child.tell(CANCEL);
            }
            told.is_none_or(|told| told.elapsed() < GRACE)
        };
        // Why nobody listens is known when the process is waited for.
        let _ = child.tell(request);
        is_awaited(&mut child);
        match child.line(until, is_awaited) {
            // Whoever says more than was asked has forged a line, and nobody knows which.
            Ok(_) if child.has_more() => Err("its process said more than an answer".into()),
            Ok(answer) => {
                *place = Some(child);
                Ok(answer)
            }
            Err(Ending::TimedOut) => {
                let seconds = limits.time.unwrap_or_default().as_secs_f64();
                Err(format!("it came to no end within its time limit of {seconds} s").into())
            }
            // So ends who is refused memory, and who found something wrong.
            Err(Ending::Exited(status)) if status.signal() == Some(Signal::ABORT.as_raw()) => {
                Err(format!(
                    "it ended the process ({status}), whose memory is limited to {} MiB",
                    limits.memory >> 20
                )
                .into())
            }
            Err(ending) => Err(format!("it {ending}").into()),
        }
    }

    fn start_child(&self) -> Result<Child, Reason> {
        let (program, arguments) = self.command.split_first().expect("a command has a program");
        let arguments = arguments.iter().cloned();
        let arguments = arguments.chain([self.library.clone().into(), self.sha256.clone().into()]);
        let threads = self.threads.map(|threads| OsString::from(threads.to_string()));
        let arguments: Vec<OsString> = arguments.chain(threads).collect();
        let program = Path::new(program);
        let mut child = Child::start(program, arguments, Stdio::piped(), Stdio::inherit())
            .map_err(|error| {
                Reason::from(format!("{} cannot be started: {error}", program.display()))
            })?;
        let until = Some(Instant::now() + self.limits.time);
        let greeting = child
            .line(until, |_| true)
            .map_err(|ending| format!("when it was opened in a process of its own, it {ending}"))
            .map_err(Reason::from)?;
        match serde_json::from_str::<Option<String>>(&greeting) {
            Ok(None) => Ok(child),
            Ok(Some(refused)) => Err(refused.into()),
            Err(_) => Err(format!("its process said `{greeting}`").into()),
        }
    }
}

/// What the process does: opens the library, says so, and answers requests as long as there are any. A request that is
/// cancelled sets the flag.
pub fn serve(
    library: &Path,
    sha256: &str,
    mut answer: impl FnMut(&Plugin, &Manifest, &str, &Arc<AtomicBool>) -> String,
) -> ExitCode {
    let open = || open(library, sha256);
    match serve_opened(open, |(plugin, manifest), line, flag| answer(plugin, manifest, line, flag))
    {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// The same of a text, in a process of whoever runs it. `open` is given what was checked.
pub fn serve_text<T, E: From<LoadError> + Display>(
    file: &Path,
    sha256: &str,
    open: impl FnOnce(&str, &Manifest) -> Result<T, E>,
    mut answer: impl FnMut(&T, &Manifest, &str, &Arc<AtomicBool>) -> String,
) -> io::Result<()> {
    let opened = || {
        let (text, manifest) = read_text(file, sha256)?;
        Ok::<_, E>((open(&text, &manifest)?, manifest))
    };
    serve_opened(opened, |(opened, manifest): &(T, Manifest), line, flag| {
        answer(opened, manifest, line, flag)
    })
}

fn serve_opened<T, E: Display>(
    open: impl FnOnce() -> Result<T, E>,
    mut answer: impl FnMut(&T, &str, &Arc<AtomicBool>) -> String,
) -> io::Result<()> {
    let mut lines = child::begin()?;
    let opened = open();
    let refused = opened.as_ref().err().map(E::to_string);
    writeln!(lines, "{}", serde_json::to_string(&refused)?)?;
    let Ok(opened) = opened else { return Ok(()) };
    let cancelled = Arc::new(AtomicBool::new(false));
    for request in requests(&cancelled) {
        writeln!(lines, "{}", answer(&opened, &request, &cancelled))?;
    }
    Ok(())
}

/// The text of this digest, and its manifest.
fn read_text(file: &Path, sha256: &str) -> Result<(String, Manifest), LoadError> {
    let replaced = || LoadError::Replaced { path: file.to_owned() };
    let held = LibraryFile::open(file)?;
    let manifest = held.manifest().map_err(|_| replaced())?;
    let bytes = held.bytes()?;
    if digest::of(bytes.as_slice()).ok().as_deref() != Some(sha256) {
        return Err(replaced());
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok((text, manifest)),
        Err(_) => Err(LoadError::Incompatible {
            path: file.to_owned(),
            reason: "it is not written in UTF-8".to_owned(),
        }),
    }
}

fn open(library: &Path, sha256: &str) -> Result<(Plugin, Manifest), LoadError> {
    let file = LibraryFile::open(library)?;
    let replaced = || LoadError::Replaced { path: library.to_owned() };
    let manifest = file.manifest().map_err(|_| replaced())?;
    if file.sha256()? != sha256 {
        return Err(replaced());
    }
    Ok((Plugin::open(&file, &manifest)?, manifest))
}

/// The requests as they come in; the flag is set while one is to be stopped.
fn requests(cancelled: &Arc<AtomicBool>) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    let cancelled = cancelled.clone();
    thread::spawn(move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            cancelled.store(line == CANCEL, Ordering::Relaxed);
            if line != CANCEL && sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}
