//! Processes of the program in which a plugin's code runs, so that whatever ends them ends nothing else.
//!
//! A child says what it has to say in lines through a pipe of its own: what a plugin prints to standard output goes to
//! standard error. It dies with the thread that started it, and with it whatever it started.

use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{self, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Resource, Rlimit, Signal, WaitId, WaitIdOptions};

/// A child, which is ended when this is dropped.
pub(super) struct Child {
    process: process::Child,
    lines: ChildStdout,
    /// What was read and is no whole line yet.
    rest: Vec<u8>,
}

/// Why no more lines come.
#[derive(Debug)]
pub(super) enum Ending {
    /// The process ended.
    Exited(ExitStatus),
    /// It was ended since the time was up.
    TimedOut,
    /// It was ended since nobody waits for it any more.
    Abandoned,
    /// The system does not say.
    Lost(io::Error),
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ending::Exited(status) => write!(f, "ended the process ({status})"),
            Ending::TimedOut => f.write_str("came to no end in time"),
            Ending::Abandoned => f.write_str("did not stop when it was told to"),
            Ending::Lost(error) => write!(f, "cannot be followed: {error}"),
        }
    }
}

/// How often a child that is waited for is looked at.
const GLANCE: Duration = Duration::from_millis(20);

impl Child {
    /// Starts the program with a hidden command and its arguments.
    pub(super) fn start(
        program: &Path,
        arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
        input: Stdio,
        complaints: Stdio,
    ) -> io::Result<Child> {
        let mut command = Command::new(program);
        // A group of its own: what a plugin starts is ended with it.
        command.args(arguments).process_group(0);
        command.stdin(input).stdout(Stdio::piped()).stderr(complaints);
        let mut process = command.spawn()?;
        let lines = process.stdout.take().expect("it is a pipe");
        Ok(Child { process, lines, rest: Vec::new() })
    }

    /// Writes a line to the child, whose input is a pipe.
    pub(super) fn tell(&mut self, line: &str) -> io::Result<()> {
        let input = self.process.stdin.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        input.write_all(format!("{line}\n").as_bytes())
    }

    /// The next line. Every now and then `is_awaited` is asked; the child is ended when nobody waits any more, or
    /// when the time is up.
    pub(super) fn line(
        &mut self,
        until: Option<Instant>,
        mut is_awaited: impl FnMut(&mut Child) -> bool,
    ) -> Result<String, Ending> {
        loop {
            if let Some(end) = self.rest.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                return Ok(String::from_utf8_lossy(&line[..end]).into_owned());
            }
            let wait = remaining(until).min(GLANCE);
            match self.poll(wait) {
                Ok(false) if remaining(until).is_zero() => return Err(self.end(Ending::TimedOut)),
                Ok(false) if !is_awaited(self) => return Err(self.end(Ending::Abandoned)),
                Ok(false) => {}
                Ok(true) => {
                    let mut bytes = [0; 4096];
                    match self.lines.read(&mut bytes) {
                        Ok(0) => return Err(self.wait(until)),
                        Ok(count) => self.rest.extend(&bytes[..count]),
                        Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                        Err(error) => return Err(self.end(Ending::Lost(error))),
                    }
                }
                Err(error) => return Err(self.end(Ending::Lost(error))),
            }
        }
    }

    /// Whether there is something to read, within a time.
    fn poll(&self, wait: Duration) -> io::Result<bool> {
        let mut fds = [PollFd::new(&self.lines, PollFlags::IN)];
        let wait = Timespec { tv_sec: 0, tv_nsec: wait.subsec_nanos().into() };
        match poll(&mut fds, Some(&wait)) {
            Ok(count) => Ok(count > 0),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits until the process has ended, and ends what it started.
    pub(super) fn wait(&mut self, until: Option<Instant>) -> Ending {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        loop {
            match rustix::process::waitid(WaitId::Pid(self.id()), options) {
                Ok(Some(_)) => break,
                Ok(None) if remaining(until).is_zero() => return self.end(Ending::TimedOut),
                Ok(None) => std::thread::sleep(Duration::from_millis(1)),
                Err(error) => return self.end(Ending::Lost(error.into())),
            }
        }
        self.kill();
        match self.process.wait() {
            Ok(status) => Ending::Exited(status),
            Err(error) => Ending::Lost(error),
        }
    }

    fn end(&mut self, how: Ending) -> Ending {
        self.kill();
        // It was killed: what it would say of itself is known.
        let _ = self.process.wait();
        how
    }

    /// Ends the process and its group. Until it is waited for, nobody else has their numbers.
    fn kill(&self) {
        // A group that is gone need not be ended.
        let _ = rustix::process::kill_process_group(self.id(), Signal::KILL);
    }

    fn id(&self) -> Pid {
        Pid::from_child(&self.process)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if let Ok(None) = self.process.try_wait() {
            self.end(Ending::Abandoned);
        }
    }
}

fn remaining(until: Option<Instant>) -> Duration {
    until.map_or(Duration::MAX, |until| until.saturating_duration_since(Instant::now()))
}

/// What a child does first: it ends with its parent, leaves no image of its memory, and takes no more memory of its
/// own than this. Gives where its lines go.
pub(super) fn begin(memory: Option<u64>) -> io::Result<File> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    let limit = |bytes| Rlimit { current: Some(bytes), maximum: Some(bytes) };
    rustix::process::setrlimit(Resource::Core, limit(0))?;
    if let Some(bytes) = memory {
        rustix::process::setrlimit(Resource::Data, limit(bytes))?;
    }
    let lines = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?;
    rustix::stdio::dup2_stdout(rustix::stdio::stderr())?;
    Ok(File::from(lines))
}
