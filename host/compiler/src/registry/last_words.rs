//! What is said and noted when the program dies in a plugin's code: which pass it was. The process ends as it would
//! have, but never with success.
//!
//! A fault (segmentation fault, `abort`, an exception that nobody catches) raises a signal, whose handler runs wherever
//! the fault was: it takes no lock and no memory, and only reads and stores atomics and writes to standard error. A call
//! of `exit` comes by a function that was registered for it, and one of `_exit` by a function of the program's that stands
//! before that of the C library. Who ends the process by a system call of its own says nothing; the [`journal`] does.

use std::mem::MaybeUninit;
use std::path::Path;
use std::process;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use libc::{c_int, c_void, siginfo_t};

use super::journal::{self, Entry, death};

/// The signals that a fault raises, and what they are called.
const FAULTS: [(c_int, &[u8]); 6] = [
    (libc::SIGSEGV, b"SIGSEGV, a segmentation fault"),
    (libc::SIGBUS, b"SIGBUS, a bus error"),
    (libc::SIGILL, b"SIGILL, an illegal instruction"),
    (libc::SIGFPE, b"SIGFPE, an arithmetic error"),
    (libc::SIGABRT, b"SIGABRT, as by abort() or an exception that nobody catches"),
    (libc::SIGSYS, b"SIGSYS, a forbidden system call"),
];

/// The signals by which somebody else ends a program.
const REQUESTS: [c_int; 3] = [libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];

const REMEDY: &[u8] = b". With `isolate = true` in registry.toml it runs in a process of its own\n";

/// This process: those that a plugin makes of it by `fork` have all that follows as well.
static PROCESS: AtomicI32 = AtomicI32::new(0);

/// What was to be done at each signal before.
static BEFORE: OnceLock<Vec<(c_int, libc::sigaction)>> = OnceLock::new();

/// Set when the program ends by itself, whatever runs.
static IS_LEAVING: AtomicBool = AtomicBool::new(false);

/// The thread that says what ended the program; others that die meanwhile wait for the end, rather than speak into its words.
static SPEAKER: AtomicI32 = AtomicI32::new(0);

/// The process in which a library is tried out, if there is one.
static CHILD: AtomicI32 = AtomicI32::new(0);

/// Sees to it that a death in a plugin's code is told. For the program `tenon` alone: it takes signals.
pub fn prepare() {
    PROCESS.store(process::id() as i32, Ordering::Relaxed);
    let signals = FAULTS.iter().map(|(signal, _)| *signal).chain(REQUESTS);
    let before: Vec<(c_int, libc::sigaction)> =
        signals.filter_map(|signal| Some((signal, set_handler(signal)?))).collect();
    BEFORE.get_or_init(|| before);
    // SAFETY: the function may be called at any time, and the program's code is there as long as it runs. Registered
    // before any library is opened, it runs behind all that these register.
    let registered = unsafe { libc::atexit(on_exit) };
    // It fails when memory is short: then a pass that exits says nothing.
    let _ = registered;
}

/// Ends the program, which is nobody's fault.
pub fn leave(code: i32) -> ! {
    IS_LEAVING.store(true, Ordering::Relaxed);
    process::exit(code)
}

/// While `act` runs, a signal of this process is its library's.
pub(super) fn during_trial<T>(child: u32, act: impl FnOnce() -> T) -> T {
    CHILD.store(child as i32, Ordering::Relaxed);
    let done = act();
    CHILD.store(0, Ordering::Relaxed);
    done
}

/// What is running now, as a message names it.
pub fn at_hand() -> Vec<String> {
    let mut all: Vec<String> = journal::at_hand()
        .into_iter()
        .map(|doing| match (doing.what, Path::new(&doing.file).file_name()) {
            (what, Some(library)) if !what.is_empty() => {
                format!("{what} of {}", library.to_string_lossy())
            }
            (_, _) => doing.file,
        })
        .collect();
    all.sort();
    all.dedup();
    all
}

/// Sets the handler of a signal, unless the signal is ignored. Gives what was to be done before.
fn set_handler(signal: c_int) -> Option<libc::sigaction> {
    let handler: extern "C" fn(c_int, *mut siginfo_t, *mut c_void) = on_signal;
    let (mut action, mut before) = (default_action(), default_action());
    action.sa_sigaction = handler as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    // SAFETY: the handler does what a handler may do, on the stack for signals that the standard library gives each
    // thread, and the records live during the calls.
    unsafe {
        libc::sigfillset(&raw mut action.sa_mask);
        let is_known = libc::sigaction(signal, ptr::null(), &raw mut before) == 0;
        let is_set = is_known
            && before.sa_sigaction != libc::SIG_IGN
            && libc::sigaction(signal, &raw const action, ptr::null_mut()) == 0;
        is_set.then_some(before)
    }
}

fn default_action() -> libc::sigaction {
    // SAFETY: zeros are a value of this record, and stand for the default.
    unsafe { MaybeUninit::zeroed().assume_init() }
}

extern "C" fn on_signal(signal: c_int, info: *mut siginfo_t, _: *mut c_void) {
    // SAFETY: the kernel gives a record that lives during the call; who sent the signal is in it when somebody did.
    let (code, sender) = unsafe { ((*info).si_code, (*info).si_pid()) };
    let fault = FAULTS.iter().find(|(fault, _)| *fault == signal);
    // Those of a terminal come from the kernel too.
    let is_sent = code <= 0 || fault.is_none();
    // SAFETY: it only asks.
    let this = unsafe { libc::getpid() };
    if !is_this_process() {
        // A plugin's own process, which has this handler and shares the journal.
    } else if !is_sent || sender == this {
        speak_alone();
        tell(b" ended the program by ", fault.map_or(b"a signal of its own", |(_, name)| name));
        note(signal);
    } else if sender != 0 && sender == CHILD.load(Ordering::Relaxed) {
        note(death::BY_CHILD);
    } else {
        note(death::ELSEWHERE);
    }
    let known = BEFORE.get().and_then(|all| all.iter().find(|(other, _)| *other == signal));
    let action = match known {
        // A stack that overflowed has a message of the standard library's.
        Some((_, before)) if !is_sent => *before,
        _ => default_action(),
    };
    // SAFETY: it was the signal's action before, or is the default. A fault is met again when this returns, and a signal
    // that was sent is sent again: the process dies of it.
    unsafe {
        libc::sigaction(signal, &raw const action, ptr::null_mut());
        if is_sent {
            libc::raise(signal);
        }
    }
}

/// Returns on the first thread that comes here, as often as it does; any other stays until the process has ended.
fn speak_alone() {
    // SAFETY: it only asks.
    let this = unsafe { libc::syscall(libc::SYS_gettid) } as i32;
    let first = SPEAKER.compare_exchange(0, this, Ordering::Relaxed, Ordering::Relaxed);
    while first.is_err_and(|first| first != this) {
        // SAFETY: it waits, with all signals blocked, for the end that the first thread brings.
        unsafe { libc::pause() };
    }
}

extern "C" fn on_exit() {
    if is_ended_by_plugin() {
        tell(b" ended the program by ", b"exit()");
        note(death::EXIT);
        end_process(1);
    }
    if is_this_process() {
        journal::end();
    }
}

/// Ends the process as `_exit` does, and not with success while a plugin's code runs. For the program's own function
/// of that name.
pub fn exit_at_once(code: c_int) -> ! {
    if is_ended_by_plugin() {
        tell(b" ended the program by ", b"_exit()");
        note(death::EXIT);
        end_process(code.max(1));
    }
    end_process(code)
}

fn is_ended_by_plugin() -> bool {
    let is_busy = || journal::entries().iter().any(Entry::is_busy);
    is_this_process() && !IS_LEAVING.load(Ordering::Relaxed) && is_busy()
}

fn is_this_process() -> bool {
    // SAFETY: it only asks.
    unsafe { libc::getpid() == PROCESS.load(Ordering::Relaxed) }
}

fn end_process(code: c_int) -> ! {
    loop {
        // SAFETY: it ends the process at once, which is meant.
        unsafe { libc::syscall(libc::SYS_exit_group, code) };
    }
}

/// Notes a death with what this thread does, or else with the only thing that is done; with all else that it came
/// from elsewhere.
fn note(death: i32) {
    let entries = journal::entries();
    let is_one = entries.iter().filter(|entry| entry.is_busy()).count() == 1;
    for entry in entries.iter().filter(|entry| entry.is_busy()) {
        let is_this = entry.is_mine() || is_one;
        entry.set_death(if is_this { death } else { death::ELSEWHERE });
    }
}

/// Says what this thread does, or else all that is done.
fn tell(how: &[u8], name: &[u8]) {
    let busy = || journal::entries().iter().filter(|entry| entry.is_busy());
    let is_one = busy().count() == 1;
    if let Some(entry) = busy().find(|entry| is_one || entry.is_mine()) {
        say(b"error: ");
        say_what(entry);
        say(how);
        say(name);
        return say(if is_pass(entry) { REMEDY } else { b"\n" });
    }
    for (number, entry) in busy().enumerate() {
        if number == 0 {
            say(b"error: one of these");
            say(how);
            say(name);
        }
        say(if number == 0 { b": " } else { b", " });
        say_what(entry);
    }
    say(if busy().next().is_some() { b"\n" } else { b"" });
}

/// Whether a pass runs: nothing else can be kept out of this process.
fn is_pass(entry: &Entry) -> bool {
    let mut bytes = (0..).map_while(|at| entry.byte(at));
    let is_second_line_over = |_| bytes.by_ref().any(|byte| byte == b'\n');
    (0..2).all(is_second_line_over) && bytes.by_ref().take(5).eq(*b"pass ")
}

/// The last two lines of an entry: what of a library runs, and the library.
fn say_what(entry: &Entry) {
    let mut line = 0;
    let mut has_what = false;
    for byte in (0..).map_while(|at| entry.byte(at)) {
        if byte == b'\n' && line < 3 {
            line += 1;
            say(if line == 3 && has_what { b" of " } else { b"" });
        } else if line >= 2 {
            has_what |= line == 2;
            // A name of a file may have anything in it.
            say(if byte.is_ascii_control() { b"?" } else { std::slice::from_ref(&byte) });
        }
    }
}

fn say(mut rest: &[u8]) {
    while !rest.is_empty() {
        match rustix::io::write(rustix::stdio::stderr(), rest) {
            Ok(count) => rest = &rest[count..],
            Err(rustix::io::Errno::INTR) => {}
            // Nobody is left to tell when standard error is closed.
            Err(_) => return,
        }
    }
}
