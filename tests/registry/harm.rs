//! Plugins that do harm when they are opened, and when they run in a process of their own: each is told of, and
//! the good plugin beside it works.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
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
    ("CLOSING", "SEGFAULT", "when the program ended, it ended the process (signal: 11 (SIGSEGV))"),
    ("CLOSING", "HANG", "when the program ended, it came to no end in time, which was 2 s"),
];

/// What is no harm when a library is opened.
const HARMLESS: &[&str] = &["NOTHING", "THREAD", "TALK", "FORK", "SLOW"];

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
    trials.push(Trial::test("harm::running", isolated));
    trials.push(Trial::test("harm::opening::host_dies", host_dies));
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
        let mut command = tenon();
        command.args(arguments).current_dir(self.folder.path());
        command.env("TENON_REGISTRY", self.path("registry.toml"));
        command.env("TENON_STATE", self.path("state"));
        run(&mut command)
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
    let next = house.opt("test.Good")?;
    expect_success(&next)?;
    let warning = "libharmful.so: the program that opened it died meanwhile; it is in quarantine";
    expect(complaints(&next).contains(warning), &complaints(&next))?;
    expect(!complaints(&house.opt("test.Good")?).contains(warning), "it is named once")?;
    expect_failure(&house.opt("test.Harm")?, "the program that opened it died meanwhile")
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
    expect(known() == 1, "it is known")?;
    fs::rename(house.harmful(), house.path("plugins/libelsewhere.so"))?;
    expect_success(&house.opt("test.Harm")?)?;
    expect(known() == 1, "it is the same wherever it lies")?;
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
