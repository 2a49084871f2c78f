//! Processes of the program in which a plugin's code runs, so that whatever ends them ends nothing else.
//!
//! A child says what it has to say in lines through a pipe of its own: what a plugin prints to standard output goes to
//! standard error. It dies with the process that started it, and with it whatever it started.

use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{self, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Resource, Rlimit, Signal, WaitId, WaitIdOptions, WaitIdStatus};

/// A child, which is ended when this is dropped.
pub(crate) struct Child {
    process: process::Child,
    lines: ChildStdout,
    /// What was read behind the last line.
    rest: Vec<u8>,
    /// So many bytes of it are known to hold no end of a line.
    searched: usize,
}

/// Why no more lines come.
#[derive(Debug)]
pub(crate) enum Ending {
    /// The process ended.
    Exited(ExitStatus),
    /// It was ended since the time was up.
    TimedOut,
    /// It was ended since nobody waits for it any more.
    Abandoned,
    /// It was ended since it said more than anybody reads.
    TooLong,
    /// The system does not say.
    Lost(io::Error),
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ending::Exited(status) => write!(f, "ended the process ({status})"),
            Ending::TimedOut => f.write_str("came to no end in time"),
            Ending::Abandoned => f.write_str("did not stop when it was told to"),
            Ending::TooLong => write!(f, "said more than {} MiB at once", LONGEST_LINE >> 20),
            Ending::Lost(error) => write!(f, "cannot be followed: {error}"),
        }
    }
}

/// How often a child that is waited for is looked at.
const GLANCE: Duration = Duration::from_millis(20);

/// The longest line that is read: reports of a pass over a million functions are shorter.
const LONGEST_LINE: usize = 64 << 20;

/// Bytes that a child that tries a library out may write to any file, its complaints included.
const LONGEST_FILE: u64 = 64 << 20;

impl Child {
    /// Starts the program with a hidden command and its arguments.
    pub(crate) fn start(
        program: &Path,
        arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
        input: Stdio,
        complaints: Stdio,
    ) -> io::Result<Child> {
        let mut command = Command::new(program);
        // A group of its own: what a plugin starts is ended with it.
        command.args(arguments).process_group(0);
        command.stdin(input).stdout(Stdio::piped()).stderr(complaints);
        let mut process = spawned(command)?;
        let lines = process.stdout.take().expect("it is a pipe");
        Ok(Child { process, lines, rest: Vec::new(), searched: 0 })
    }

    /// Writes a line to the child, whose input is a pipe.
    pub(crate) fn tell(&mut self, line: &str) -> io::Result<()> {
        let input = self.process.stdin.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        input.write_all(format!("{line}\n").as_bytes())
    }

    /// The next line. Every now and then `is_awaited` is asked, however much the child says; it is ended when nobody
    /// waits any more, or when the time is up.
    pub(crate) fn line(
        &mut self,
        until: Option<Instant>,
        mut is_awaited: impl FnMut(&mut Child) -> bool,
    ) -> Result<String, Ending> {
        let mut glanced = Instant::now();
        let mut is_late = false;
        loop {
            if let Some(line) = self.take_line() {
                return Ok(line);
            }
            if remaining(until).is_zero() {
                if is_late {
                    return Err(self.end(Ending::TimedOut));
                }
                // Where this process was stopped meanwhile, the line may be there.
                is_late = true;
            }
            if glanced.elapsed() >= GLANCE {
                glanced = Instant::now();
                if !is_awaited(self) {
                    return Err(self.end(Ending::Abandoned));
                }
            }
            match self.read(remaining(until).min(GLANCE)) {
                // What it started may hold its end of the pipe for ever.
                Ok(None) if self.has_ended() && !matches!(self.poll(Duration::ZERO), Ok(true)) => {
                    return Err(self.wait(until));
                }
                Ok(None) => {}
                Ok(Some(0)) => return Err(self.wait(until)),
                Ok(Some(_)) if self.rest.len() > LONGEST_LINE => {
                    return Err(self.end(Ending::TooLong));
                }
                Ok(Some(_)) => {}
                Err(error) => return Err(self.end(Ending::Lost(error))),
            }
        }
    }

    /// The number of the process.
    pub(super) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Whether it said more than the lines that were asked for.
    pub(super) fn has_more(&self) -> bool {
        !self.rest.is_empty()
    }

    fn take_line(&mut self) -> Option<String> {
        let found = self.rest[self.searched..].iter().position(|&byte| byte == b'\n');
        let Some(end) = found.map(|at| self.searched + at) else {
            self.searched = self.rest.len();
            return None;
        };
        let line = String::from_utf8_lossy(&self.rest[..end]).into_owned();
        self.rest.drain(..=end);
        self.searched = 0;
        Some(line)
    }

    /// Reads what there is, within a time. Gives how much; nothing when there was none, 0 at the end.
    fn read(&mut self, wait: Duration) -> io::Result<Option<usize>> {
        if !self.poll(wait)? {
            return Ok(None);
        }
        let mut bytes = [0; 1 << 16];
        match self.lines.read(&mut bytes) {
            Ok(count) => {
                self.rest.extend(&bytes[..count]);
                Ok(Some(count))
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(None),
            Err(error) => Err(error),
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
        loop {
            match self.glance() {
                Ok(Some(_)) => break,
                Ok(None) if remaining(until).is_zero() => return self.end(Ending::TimedOut),
                Ok(None) => thread::sleep(Duration::from_millis(1)),
                Err(error) => return self.end(Ending::Lost(error.into())),
            }
        }
        self.kill();
        match self.process.wait() {
            Ok(status) => Ending::Exited(status),
            Err(error) => Ending::Lost(error),
        }
    }

    /// How the process ended, if it has. It stays to be waited for.
    fn glance(&self) -> rustix::io::Result<Option<WaitIdStatus>> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        rustix::process::waitid(WaitId::Pid(self.pid()), options)
    }

    fn has_ended(&self) -> bool {
        matches!(self.glance(), Ok(Some(_)))
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
        let _ = rustix::process::kill_process_group(self.pid(), Signal::KILL);
    }

    fn pid(&self) -> Pid {
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

/// Starts a process on a thread that lives as long as this process: a child ends with the thread that started it.
fn spawned(command: Command) -> io::Result<process::Child> {
    type Order = (Command, Sender<io::Result<process::Child>>);
    static ORDERS: LazyLock<Mutex<Sender<Order>>> = LazyLock::new(|| {
        let (sender, orders) = channel::<Order>();
        thread::spawn(move || {
            for (mut command, answer) in orders {
                // Whoever asked waits for it.
                let _ = answer.send(command.spawn());
            }
        });
        Mutex::new(sender)
    });
    let (sender, answer) = channel();
    let orders = ORDERS.lock().unwrap_or_else(PoisonError::into_inner).clone();
    // Where the thread is gone nobody answers.
    let _ = orders.send((command, sender));
    answer.recv().unwrap_or_else(|_| Err(io::ErrorKind::BrokenPipe.into()))
}

fn remaining(until: Option<Instant>) -> Duration {
    until.map_or(Duration::MAX, |until| until.saturating_duration_since(Instant::now()))
}

/// What a child does first: it ends with its parent, and leaves no image of its memory. Gives where its lines go.
pub(crate) fn begin() -> io::Result<File> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    limit(Resource::Core, 0)?;
    let lines = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?;
    rustix::stdio::dup2_stdout(rustix::stdio::stderr())?;
    Ok(File::from(lines))
}

/// Takes no more memory of its own than this from now on, and fills no disk. Files that are only read are no matter.
pub(super) fn begin_trial(memory: u64) -> io::Result<()> {
    limit(Resource::Data, memory)?;
    limit(Resource::Fsize, LONGEST_FILE)
}

fn limit(resource: Resource, bytes: u64) -> io::Result<()> {
    let limit = Rlimit { current: Some(bytes), maximum: Some(bytes) };
    Ok(rustix::process::setrlimit(resource, limit)?)
}

/// Takes no more memory of its own than this, until another limit is set.
pub(crate) fn limit_memory(bytes: u64) -> io::Result<()> {
    let maximum = rustix::process::getrlimit(Resource::Data).maximum;
    let current = Some(maximum.map_or(bytes, |most| bytes.min(most)));
    Ok(rustix::process::setrlimit(Resource::Data, Rlimit { current, maximum })?)
}
