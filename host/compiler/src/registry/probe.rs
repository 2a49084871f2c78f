//! A library is first opened in a process of its own, as the host would open it. What happens there is known before
//! it can happen here.

use std::error::Error;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ExitCode, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde::{Deserialize, Serialize};

use super::child::{self, Child, Ending};
use super::last_words::during_trial;
use super::{Config, LibraryFile, Plugin, Reason};

/// The hidden command of the program.
pub const PROBE_COMMAND: &str = "plugin-probe";

/// The signals by which somebody ends a process, who need not be the process.
const REQUESTS: [i32; 7] = {
    use Signal as S;
    let [hup, int, quit] = [S::HUP.as_raw(), S::INT.as_raw(), S::QUIT.as_raw()];
    let [kill, term] = [S::KILL.as_raw(), S::TERM.as_raw()];
    [hup, int, quit, kill, term, S::USR1.as_raw(), S::USR2.as_raw()]
};

/// What a library may take until it is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeLimits {
    /// Wall time.
    pub time: Duration,
    /// Memory of its own, in bytes.
    pub memory: u64,
}

impl Default for ProbeLimits {
    fn default() -> Self {
        Self { time: Duration::from_secs(10), memory: 1 << 30 }
    }
}

/// How it went.
pub(super) enum Verdict {
    /// It can be opened here.
    Harmless,
    /// It is no plugin for this host, and says why.
    Refused(String),
    /// It did harm to its process.
    Harmful(String),
}

/// What the child says when the library is open.
#[derive(Serialize, Deserialize)]
struct Report {
    /// The digest of what it opened.
    sha256: String,
    /// Why the host refuses it.
    refused: Option<String>,
}

/// Opens the library of this digest in a child of the program, within the limits of a registry. An error says what
/// it did, or why it is no plugin for this host.
pub fn try_out(
    config: &Config,
    program: &Path,
    library: &Path,
    sha256: &str,
) -> Result<(), Reason> {
    match probe(program, library, sha256, config.probe_limits())? {
        Verdict::Harmless => Ok(()),
        Verdict::Refused(reason) | Verdict::Harmful(reason) => Err(reason.into()),
    }
}

/// Opens the library of this digest in a child of the program. An error says why that cannot be done.
pub(super) fn probe(
    program: &Path,
    library: &Path,
    sha256: &str,
    limits: ProbeLimits,
) -> Result<Verdict, Reason> {
    let mut complaints = tempfile::tempfile().map_err(|error| Reason::from(error.to_string()))?;
    let stderr = complaints.try_clone().map_err(|error| Reason::from(error.to_string()))?;
    let arguments = [PROBE_COMMAND.as_ref(), library.as_os_str()];
    let memory = limits.memory.to_string();
    let arguments = arguments.into_iter().chain([memory.as_ref()]);
    let until = Some(Instant::now() + limits.time);
    let mut child =
        Child::start(program, arguments, Stdio::null(), stderr.into()).map_err(|error| {
            Reason::from(format!("{} cannot be started: {error}", program.display()))
        })?;
    let line = match during_trial(child.id(), || child.line(until, |_| true)) {
        Ok(line) => line,
        Err(ending) => return harm("when it was opened, it", &ending, limits, &mut complaints),
    };
    let report: Report = serde_json::from_str(&line)
        .map_err(|_| Reason::from(format!("the child said `{line}`")))?;
    if report.sha256 != sha256 {
        return Err("it was replaced meanwhile".into());
    }
    match child.wait(until) {
        Ending::Exited(status) if status.success() => {}
        ending => return harm("when the program ended, it", &ending, limits, &mut complaints),
    }
    Ok(report.refused.map_or(Verdict::Harmless, Verdict::Refused))
}

fn harm(
    when: &str,
    ending: &Ending,
    limits: ProbeLimits,
    complaints: &mut File,
) -> Result<Verdict, Reason> {
    let mut reason = match ending {
        Ending::TimedOut => format!("{when} {ending}, which was {} s", limits.time.as_secs_f64()),
        Ending::Lost(_) => return Err(ending.to_string().into()),
        // Who sent such a signal is not known, and a fault raises others.
        Ending::Exited(status) if status.signal().is_some_and(|it| REQUESTS.contains(&it)) => {
            return Err(format!("its process was ended ({status}); run the command again").into());
        }
        _ => format!("{when} {ending}"),
    };
    if let Some(last) = last_line(complaints) {
        reason.push_str(&format!(" and said: {last}"));
    }
    Ok(Verdict::Harmful(reason))
}

/// The last thing that a process said before it ended.
fn last_line(complaints: &mut File) -> Option<String> {
    const END: u64 = 4096;
    const LONGEST: usize = 200;
    let size = complaints.metadata().ok()?.len();
    complaints.seek(SeekFrom::Start(size.saturating_sub(END))).ok()?;
    let mut bytes = Vec::new();
    complaints.take(END).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let line = text.lines().map(str::trim).rfind(|line| !line.is_empty())?;
    Some(line.chars().take(LONGEST).collect())
}

/// What the child does: opens the library with all that belongs to it, says so, and ends as any program does.
pub fn probe_here(library: &Path, memory: u64) -> ExitCode {
    let opened = child::begin().and_then(|mut lines| {
        child::begin_trial(memory)?;
        let report = report(library);
        writeln!(lines, "{}", serde_json::to_string(&report)?)
    });
    match opened {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn report(library: &Path) -> Report {
    let mut sha256 = String::new();
    let mut open = || -> Result<(), Box<dyn Error>> {
        let file = LibraryFile::open(library)?;
        sha256 = file.sha256()?;
        let manifest = file.manifest()?;
        Plugin::open(&file, &manifest)?;
        Ok(())
    };
    let refused = open().err().map(|error| error.to_string());
    Report { sha256, refused }
}
