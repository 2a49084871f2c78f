//! Plugins that do harm when they are opened, and when they run in a process of their own: each is told of, and
//! the good plugin beside it works.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use libtest_mimic::{Failed, Trial};

use crate::program::{run, succeed, tenon};

const MODEL: &str = "fn @main(%x: f32[4]) -> f32[4] {\n  %a = exp(%x)\n  ret %a\n}\n";

/// What a plugin does when it is opened or closed, and a part of what is said of it.
const AT_OPENING: &[(&str, &str, &str)] = &[
    (
        "OPENING",
        "ABORT",
        "when it was opened, it ended the process (signal: 6 (SIGABRT)) and said: this is the end",
    ),
    ("OPENING", "SEGFAULT", "when it was opened, it ended the process (signal: 11 (SIGSEGV))"),
    ("OPENING", "EXIT", "when it was opened, it ended the process (exit status: 0)"),
    ("OPENING", "HANG", "when it was opened, it came to no end in time, which was 2 s"),
    ("OPENING", "HOG", "when it was opened, it ended the process (signal: 6 (SIGABRT))"),
    (
        "OPENING",
        "DOUBLE_FREE",
        "when it was opened, it ended the process (signal: 6 (SIGABRT)) and said: free()",
    ),
    ("OPENING", "FLOOD", "when it was opened, it "),
    ("OPENING", "CHATTER", "when it was opened, it ended the process (signal: 25 (SIGXFSZ))"),
    ("CLOSING", "SEGFAULT", "when the program ended, it ended the process (signal: 11 (SIGSEGV))"),
    ("CLOSING", "HANG", "when the program ended, it came to no end in time, which was 2 s"),
];

/// What is no harm when a library is opened.
const HARMLESS: &[&str] = &["NOTHING", "THREAD", "TALK", "FORK", "SLOW", "FORK_AND_EXIT"];

/// What a pass does that ends the program, and a part of what the program says with its last words.
const LAST_WORDS: &[(&str, &str)] = &[
    ("SEGFAULT", "SIGSEGV, a segmentation fault"),
    ("ABORT", "SIGABRT, as by abort() or an exception that nobody catches"),
    ("DOUBLE_FREE", "SIGABRT, as by abort() or an exception that nobody catches"),
    ("EXIT", "exit()"),
    ("EXIT_IN_THREAD", "exit()"),
    ("LEAVE", "_exit()"),
    // On a thread that the host lends the pass.
    ("IN_PARALLEL", "SIGABRT, as by abort() or an exception that nobody catches"),
];

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for &(when, harm, said) in AT_OPENING {
        let name = format!("harm::{}::{}", when.to_lowercase(), harm.to_lowercase());
        trials.push(Trial::test(name, move || is_quarantined(when, harm, said)));
    }
    for &harm in HARMLESS {
        let name = format!("harm::opening::{}", harm.to_lowercase());
        trials.push(Trial::test(name, move || works(harm)));
    }
    trials.push(Trial::test("harm::opening::replace", replaced));
    for &(harm, said) in LAST_WORDS {
        let name = format!("harm::running::{}", harm.to_lowercase());
        trials.push(Trial::test(name, move || is_named(harm, said)));
    }
    trials.push(Trial::test("harm::running::system_call", leaves_without_a_word));
    trials.push(Trial::test("harm::running::fork", forks));
    trials.push(Trial::test("harm::running::paint", paints));
    trials.push(Trial::test("harm::isolated", isolated));
    trials.push(Trial::test("harm::opening::host_dies", host_dies));
    trials.push(Trial::test("harm::opening::host_exits", host_exits));
    trials.push(Trial::test("harm::opening::kill_self", kills_itself));
    trials.push(Trial::test("harm::opening::kill_parent", kills_its_parent));
    trials.push(Trial::test("harm::signals_from_outside", signals_from_outside));
    trials.push(Trial::test("harm::opening::state_cannot_be_written", without_state));
    trials.push(Trial::test("harm::opening::tried_once", tried_once));
    trials
}

/// A folder with a registry, a plugin that may do harm, a good one, and a state of its own.
pub(crate) struct House {
    folder: tempfile::TempDir,
}

impl House {
    pub(crate) fn new(when: &str, harm: &str) -> Result<Self, Failed> {
        let house = Self { folder: tempfile::tempdir()? };
        fs::create_dir(house.path("plugins"))?;
        compile(
            &["-DWHEN=RUNNING", "-DHARM=NOTHING", "-DID=\"test.good\"", "-DPASS=\"test.Good\""],
            &house.path("plugins/libgood.so"),
        )?;
        compile(&[&format!("-DWHEN={when}"), &format!("-DHARM={harm}")], &house.harmful())?;
        house.set_registry("[trust]\ntime_limit = 2\nmemory_limit = 256\n")?;
        fs::write(house.path("model.ir"), MODEL)?;
        Ok(house)
    }

    pub(crate) fn set_registry(&self, more: &str) -> Result<(), Failed> {
        let text = "schema = 1\n[[plugins.dir]]\npath = \"plugins\"\nenable = \"all\"\n";
        Ok(fs::write(self.path("registry.toml"), format!("{text}{more}"))?)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn harmful(&self) -> PathBuf {
        self.path("plugins/libharmful.so")
    }

    pub(crate) fn tenon(&self, arguments: &[&str]) -> Result<Output, Failed> {
        run(&mut self.command(arguments))
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = tenon();
        command.args(arguments).current_dir(self.folder.path());
        command.env("TENON_REGISTRY", self.path("registry.toml"));
        command.env("TENON_STATE", self.path("state"));
        command
    }

    pub(crate) fn opt(&self, pass: &str) -> Result<Output, Failed> {
        self.tenon(&["opt", "model.ir", "--pipeline", pass])
    }

    /// The good plugin's pass runs.
    pub(crate) fn works(&self) -> Result<(), Failed> {
        expect_success(&self.opt("test.Good")?)
    }
}

/// Compiles tests/registry/harmful.c into a library.
fn compile(flags: &[&str], library: &Path) -> Result<(), Failed> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-I"]);
    cc.arg(root.join("plugin-api/include")).args(flags).arg("-o").arg(library);
    succeed(cc.arg(root.join("tests/registry/harmful.c")).args(["-ldl", "-lpthread"]))
}

pub(crate) fn expect_success(output: &Output) -> Result<(), Failed> {
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("{}: {}", output.status, complaints(output)).into()),
    }
}

pub(crate) fn complaints(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The command failed as it should, and said this.
pub(crate) fn expect_failure(output: &Output, wanted: &str) -> Result<(), Failed> {
    let said = complaints(output);
    match output.status.code() == Some(1) && said.contains(wanted) {
        true => Ok(()),
        false => Err(format!("`{wanted}` is not said: {}: {said}", output.status).into()),
    }
}

fn expect(holds: bool, what: &str) -> Result<(), Failed> {
    if holds { Ok(()) } else { Err(what.into()) }
}

fn is_quarantined(when: &str, harm: &str, said: &str) -> Result<(), Failed> {
    let house = House::new(when, harm)?;
    let wanted = format!("libharmful.so: it is in quarantine: {said}");
    expect_failure(&house.opt("test.Harm")?, &wanted)?;
    let start = Instant::now();
    expect_failure(&house.opt("test.Harm")?, &wanted)?;
    expect(start.elapsed() < Duration::from_secs(2), "it is not tried again")?;
    house.works()?;
    is_listed_and_cleared(&house, said)
}

fn is_listed_and_cleared(house: &House, reason: &str) -> Result<(), Failed> {
    let json = |arguments: &[&str]| -> Result<serde_json::Value, Failed> {
        let output = house.tenon(&[arguments, &["--json"]].concat())?;
        expect_success(&output)?;
        Ok(serde_json::from_slice(&output.stdout)?)
    };
    let is_reason =
        |said: &serde_json::Value| said.as_str().is_some_and(|said| said.starts_with(reason));
    let plugins = json(&["plugins", "list"])?;
    let quarantined = |index: usize| &plugins["plugins"][index]["quarantined"];
    expect(quarantined(0).is_null() && is_reason(quarantined(1)), &plugins.to_string())?;
    let listed = json(&["plugins", "quarantine", "list"])?;
    expect(is_reason(&listed["quarantine"][0]["reason"]), &listed.to_string())?;
    let wrong = house.tenon(&["plugins", "quarantine", "clear", "libgood.so"])?;
    expect_failure(&wrong, "`libgood.so` is not in quarantine")?;
    let cleared = json(&["plugins", "quarantine", "clear", "plugins/libharmful.so"])?;
    expect(is_reason(&cleared["cleared"][0]["reason"]), &cleared.to_string())?;
    let listed = json(&["plugins", "quarantine", "list"])?;
    expect(listed["quarantine"] == serde_json::json!([]), &listed.to_string())
}

fn works(harm: &str) -> Result<(), Failed> {
    let house = House::new("OPENING", harm)?;
    expect_success(&house.opt("test.Harm")?)?;
    expect_success(&house.opt("test.Harm")?)?;
    house.works()
}

/// The library puts another one into its place while it is opened: neither is used.
fn replaced() -> Result<(), Failed> {
    let house = House::new("OPENING_IN_HOST", "REPLACE")?;
    let other = house.path("plugins/libharmful.so.other");
    fs::copy(house.path("plugins/libgood.so"), &other)?;
    expect_failure(&house.opt("test.Harm")?, "it was replaced while it was looked at or opened")?;
    expect(!other.exists(), "it was replaced")?;
    fs::remove_file(house.harmful())?;
    house.works()
}

/// A library that does no harm in the child and kills the program itself is named by the next one.
fn host_dies() -> Result<(), Failed> {
    let house = House::new("OPENING_IN_HOST", "SEGFAULT")?;
    let dead = house.opt("test.Harm")?;
    expect(dead.status.code().is_none(), "it killed the program")?;
    let words = "libharmful.so ended the program by SIGSEGV, a segmentation fault";
    expect(complaints(&dead).contains(words), &complaints(&dead))?;
    let next = house.opt("test.Good")?;
    expect_success(&next)?;
    let reason = "it ended the program that opened it (signal: 11 (SIGSEGV))";
    let warning = format!("libharmful.so: {reason}; it is in quarantine");
    expect(complaints(&next).contains(&warning), &complaints(&next))?;
    expect(!complaints(&house.opt("test.Good")?).contains(reason), "it is named once")?;
    expect_failure(&house.opt("test.Harm")?, reason)
}

fn host_exits() -> Result<(), Failed> {
    let house = House::new("OPENING_IN_HOST", "EXIT")?;
    expect_failure(&house.opt("test.Harm")?, "libharmful.so ended the program by exit()")?;
    let reason = "it ended the program that opened it (it called exit())";
    expect_failure(&house.opt("test.Harm")?, reason)
}

/// Whoever sent the signal that ended a trial: the library is not opened, nor condemned.
fn kills_itself() -> Result<(), Failed> {
    let house = House::new("OPENING", "KILL_SELF")?;
    for _ in 0..2 {
        let said = "cannot be opened in a child process: its process was ended (signal: 9";
        expect_failure(&house.opt("test.Harm")?, said)?;
    }
    expect_nothing_quarantined(&house)
}

/// A constructor that kills the program leaves a trace, and is in quarantine where it is known who it was.
fn kills_its_parent() -> Result<(), Failed> {
    let house = House::new("OPENING", "KILL_PARENT")?;
    for _ in 0..2 {
        let dead = house.opt("test.Harm")?;
        expect(dead.status.signal() == Some(9), "it killed the program")?;
        let said = complaints(&house.opt("test.Good")?);
        expect(said.contains("libharmful.so: the program was ended while it opened"), &said)?;
        let said = complaints(&house.opt("test.Good")?);
        expect(!said.contains("libharmful.so"), "it is told once")?;
    }
    expect_nothing_quarantined(&house)?;
    let house = House::new("OPENING", "TERMINATE_PARENT")?;
    let dead = house.opt("test.Harm")?;
    expect(dead.status.signal() == Some(15), "it ended the program")?;
    let reason = "libharmful.so: it is in quarantine: when it was tried out, it ended the program";
    expect_failure(&house.opt("test.Harm")?, reason)
}

fn expect_nothing_quarantined(house: &House) -> Result<(), Failed> {
    let listed = house.tenon(&["plugins", "quarantine", "list"])?;
    expect_success(&listed)?;
    expect(listed.stdout.is_empty(), &String::from_utf8_lossy(&listed.stdout))
}

/// Signals of somebody else's, at any time of a command's life, known libraries or not: nothing is condemned, nothing
/// is left lying about, and the next command works.
fn signals_from_outside() -> Result<(), Failed> {
    let house = House::new("OPENING", "NOTHING")?;
    for round in 0..90 {
        if round % 30 == 0 {
            // Tried out anew, or known.
            let _ = fs::remove_dir_all(house.path("state/known"));
        }
        let mut command = house.command(&["opt", "model.ir", "--pipeline", "test.Harm, test.Good"]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        std::thread::sleep(Duration::from_micros(400 * (round % 60)));
        let signal = ["-TERM", "-HUP", "-KILL", "-INT", "-QUIT", "-SEGV"][round as usize % 6];
        Command::new("kill").args([signal, &child.id().to_string()]).output()?;
        child.wait()?;
    }
    expect_success(&house.opt("test.Harm, test.Good")?)?;
    let last = house.opt("test.Harm, test.Good")?;
    expect_success(&last)?;
    expect(!complaints(&last).contains("warning: /"), &complaints(&last))?;
    expect_nothing_quarantined(&house)?;
    let named = fs::read_dir(house.path("state/journal"))?
        .flatten()
        .filter(|entry| !entry.file_name().to_string_lossy().starts_with('.'));
    expect(named.count() == 0, "the journal is swept")
}

/// A pass that ends the program is named by it, and by the next one; the program does not end well.
fn is_named(harm: &str, words: &str) -> Result<(), Failed> {
    let house = House::new("RUNNING", harm)?;
    let dead =
        house.tenon(&["opt", "model.ir", "-o", "out.ir", "--pipeline", "test.Good, test.Harm"])?;
    expect(!dead.status.success() && !house.path("out.ir").exists(), "it did not end well")?;
    let said = complaints(&dead);
    let library = house.harmful().canonicalize()?;
    let wanted = format!("pass `test.Harm` of {} ended the program by {words}", library.display());
    expect(said.contains(&wanted), &said)?;
    let next = house.opt("test.Good")?;
    expect_success(&next)?;
    let told = "warning: an earlier run died in pass `test.Harm` of ";
    expect(complaints(&next).contains(told), &complaints(&next))?;
    let said = complaints(&house.opt("test.Good")?);
    expect(!said.contains("an earlier run"), "it is told once")?;
    expect_nothing_quarantined(&house)
}

/// Nothing in the process sees a system call that ends it; the next one knows.
fn leaves_without_a_word() -> Result<(), Failed> {
    let house = House::new("RUNNING", "SYSTEM_CALL")?;
    house.opt("test.Harm")?;
    let next = house.opt("test.Good")?;
    expect_success(&next)?;
    let told = "an earlier run ended without a word while pass `test.Harm` of ";
    expect(complaints(&next).contains(told), &complaints(&next))
}

/// What a plugin's own process does is nothing of the program's.
fn forks() -> Result<(), Failed> {
    let house = House::new("RUNNING", "FORK_AND_EXIT")?;
    let output = house.opt("test.Harm")?;
    expect_success(&output)?;
    expect(!output.stdout.is_empty(), "it went on")?;
    let said = complaints(&house.opt("test.Good")?);
    expect(!said.contains("an earlier run"), &said)
}

/// What a pass reports moves no cursor, changes no color, and turns no line around.
fn paints() -> Result<(), Failed> {
    let house = House::new("RUNNING", "PAINT")?;
    let output = house.opt("test.Harm")?;
    expect_success(&output)?;
    let said = complaints(&output);
    expect(said.contains("note: test.Harm: \\u{1b}[31mred \\u{202e}txt\n"), &said)
}

fn without_state() -> Result<(), Failed> {
    let house = House::new("OPENING", "NOTHING")?;
    fs::write(house.path("state"), "no folder")?;
    let output = house.opt("test.Harm")?;
    expect_success(&output)?;
    let said = complaints(&output);
    let warnings = said.matches("warning: what is known of plugins cannot be remembered").count();
    expect(warnings > 0, &said)
}

/// What is known is known by its content, wherever it lies; another content is tried anew.
fn tried_once() -> Result<(), Failed> {
    let house = House::new("OPENING", "NOTHING")?;
    let known = || fs::read_dir(house.path("state/known")).map_or(0, Iterator::count);
    expect_success(&house.opt("test.Harm")?)?;
    let first = known();
    expect(first > 0, "it is known, and so are the operators")?;
    fs::rename(house.harmful(), house.path("plugins/libelsewhere.so"))?;
    expect_success(&house.opt("test.Harm")?)?;
    expect(known() == first, "it is the same wherever it lies")?;
    fs::remove_file(house.path("plugins/libelsewhere.so"))?;
    compile(&["-DWHEN=OPENING", "-DHARM=SEGFAULT"], &house.harmful())?;
    expect_failure(&house.opt("test.Harm")?, "it is in quarantine")
}

/// A pass that ends its process is an error, and the other plugins' passes run, in this process or another.
fn isolated() -> Result<(), Failed> {
    let house = House::new("RUNNING", "SEGFAULT")?;
    house.set_registry("[plugins.isolate]\n\"test.harmful\" = true\n\"test.good\" = true\n")?;
    house.works()?;
    let wanted = "error: pass `test.Harm`: it ended the process (signal: 11 (SIGSEGV))";
    expect_failure(&house.opt("test.Good, test.Harm")?, wanted)?;
    let house = House::new("OPENING", "SEGFAULT")?;
    house.set_registry("[passes.\"test.Harm\"]\nisolate = true\n")?;
    let wanted = "when it was opened in a process of its own, it ended the process (signal: 11";
    expect_failure(&house.opt("test.Harm")?, wanted)?;
    house.works()
}
