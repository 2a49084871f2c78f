//! Tuning from the command line: what is kept, that nothing is lost, and what is done with what was kept.

#[allow(dead_code, reason = "other tests use the rest")]
#[path = "models/program.rs"]
mod program;

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use program::tenon;
use serde_json::{Value, json};

/// A product with something behind it, and something else: two programs.
const MODEL: &str = "fn @main(%x: f32[48, 64], %w: f32[64, 80], %b: f32[80]) {
  %p = matmul(%x, %w)
  %s = add(%p, %b)
  %y = nn.relu(%s)
  %z = nn.softmax(%y)
  ret %z
}
";

/// A folder with a model.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().expect("a folder"));
        fs::write(place.path("model.ir"), MODEL).expect("written");
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// `tenon COMMAND model.ir`.
    fn tenon(&self, command: &str) -> Command {
        let mut tenon = tenon();
        tenon.arg(command).arg(self.path("model.ir"));
        tenon
    }

    /// Tunes on one thread.
    fn tune(&self) -> Command {
        let mut tune = self.tenon("tune");
        tune.arg("--db").arg(self.path("tuned.jsonl")).args(["--threads", "1", "--json"]);
        tune
    }

    /// `tenon COMMAND model.ir` with a pipeline in which a pass tunes on one thread, within these options.
    fn with_pass(&self, command: &str, pass: &str, options: &str) -> Command {
        let mut tenon = self.tenon(command);
        let database = self.path("tuned.jsonl");
        let pass = format!("{pass}{{tune_db={:?}, threads=1, {options}}}", database.display());
        let rest =
            if command == "opt" { "" } else { ", phase(plan), phase(target), phase(builtin)" };
        let phases = "phase(ingest), phase(optimize), phase(legalize), phase(fuse)";
        tenon.args(["--pipeline", &format!("{phases}, {pass}{rest}")]);
        tenon
    }

    /// A project's registry with these lines.
    fn registry(&self, text: &str) -> PathBuf {
        let path = self.path("registry.toml");
        fs::write(&path, format!("schema = 1\n{text}\n")).expect("written");
        path
    }

    fn lines(&self) -> Vec<Value> {
        lines(&self.path("tuned.jsonl"))
    }

    /// The keys of the program that computes `op`, as `tenon tune` finds them.
    fn keys(&self, op: &str) -> Value {
        let mut opt = self.tenon("opt");
        let text = say(opt.args(["--pipeline", "tasks"])).1;
        let line = text.lines().find(|line| line.contains(&format!("op_name = \"{op}\"")));
        let line = line.unwrap_or_else(|| panic!("a program computes {op}: {text}"));
        let key = |name: &str| {
            let from = line.split_once(&format!("{name} = \"")).expect("it has the key").1;
            from.split_once('"').expect("it ends").0.to_owned()
        };
        json!({ "program": key("program"), "anchor": key("anchor"), "sizes": key("sizes"), "target": key("target") })
    }

    /// A database with one line, which says that a program runs best with this trace and these knobs.
    fn claim(&self, op: &str, trace: &str, knobs: &Value) {
        let keys = self.keys(op);
        let text = |key: &str| keys[key].as_str().expect("a text").to_owned();
        let [program, anchor, sizes, target] = ["program", "anchor", "sizes", "target"].map(text);
        let line = format!(
            "{{\"v\":1,\"program\":\"{program}\",\"anchor\":\"{anchor}\",\"sizes\":\"{sizes}\",\"target\":\"{target}\",\
             \"found\":\"best\",\"schedule\":\"{program}\",\"op\":\"{op}\",\"rule\":\"acme::rule\",\"knobs\":{knobs},\
             \"trace\":{},\"ms\":0.5,\"default_ms\":1.0,\"judge\":\"evaluator\",\"cpu\":\"acme\",\"tenon\":\"1.0.0\"}}\n",
            json!(trace)
        );
        fs::write(self.path("tuned.jsonl"), line).expect("written");
    }
}

fn lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect()
}

/// Runs a command to its end: its exit code, and what it said on both outputs.
#[track_caller]
fn say(command: &mut Command) -> (i32, String, String) {
    let Output { status, stdout, stderr } = command.output().expect("the program was built");
    let [out, error] = [stdout, stderr].map(|bytes| String::from_utf8(bytes).expect("text"));
    (status.code().expect("it exits"), out, error)
}

/// Ends a process at once, and with it those that it has started.
fn kill(child: &mut Child) {
    child.kill().expect("it runs");
    child.wait().expect("it ends");
}

/// The processes that another has started.
/// The processes that threads of one have started.
fn children_of(id: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{id}/task")).into_iter().flatten().flatten();
    let texts =
        threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    let ids = |text: String| -> Vec<u32> {
        text.split_whitespace().filter_map(|id| id.parse().ok()).collect()
    };
    texts.flat_map(ids).collect()
}

#[track_caller]
fn wait_for(what: &str, mut is_there: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_there() {
        assert!(start.elapsed() < Duration::from_secs(60), "{what} does not come");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn what_is_measured_is_kept_and_nothing_is_measured_twice() {
    let place = Place::new();
    let (code, out, error) = say(place.tune().args(["--trials", "10"]));
    assert_eq!(code, 0, "{error}");
    let told: Value = serde_json::from_str(&out).expect("JSON");
    let tasks = told["tasks"].as_array().expect("tasks");
    assert_eq!(tasks.len(), 2, "{out}");
    let tried: u64 = tasks.iter().filter_map(|task| task["tried"].as_u64()).sum();
    assert!(tried >= 10, "{out}");
    assert!(tasks.iter().all(|task| task["default_ms"].as_f64() > Some(0.0)), "{out}");
    assert!(told["model"]["default_ms"].as_f64() > Some(0.0), "{out}");
    assert_eq!(place.lines().len() as u64, tried);

    let (code, _, error) = say(place.tune().args(["--trials", "10"]));
    assert_eq!(code, 0, "{error}");
    let all = place.lines();
    assert!(all.len() as u64 >= tried + 10, "the second run goes on");
    let different: HashSet<String> =
        all.iter().map(|line| format!("{} {}", line["program"], line["schedule"])).collect();
    assert_eq!(different.len(), all.len(), "nothing is measured twice");
    is_right(&place);
}

/// Compares what is compiled with the database with what the evaluator computes.
#[track_caller]
fn is_right(place: &Place) {
    let mut compile = place.tenon("compile");
    compile.arg("-o").arg(place.path("model.so")).arg("--validate=compiled");
    let (code, _, error) = say(compile.arg("--tune-db").arg(place.path("tuned.jsonl")));
    assert_eq!(code, 0, "{error}");
    assert!(error.contains("computes what the evaluator does"), "{error}");
}

#[test]
fn nothing_is_lost_when_it_is_killed() {
    let place = Place::new();
    let mut tune = place.tune();
    let mut child = tune.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    wait_for("a line", || !fs::read(place.path("tuned.jsonl")).unwrap_or_default().is_empty());
    let trials = children_of(child.id());
    assert_eq!(trials.len(), 1, "one process takes times");
    kill(&mut child);
    wait_for("the end of the process that takes times", || {
        !Path::new(&format!("/proc/{}", trials[0])).exists()
    });
    let before = place.lines().len();
    assert!(before > 0);
    let (code, _, error) = say(place.tune().args(["--trials", "4"]));
    assert_eq!(code, 0, "{error}");
    assert!(place.lines().len() >= before + 4);
}

#[test]
fn a_process_that_dies_while_it_measures_is_a_failure_of_the_candidate_alone() {
    let place = Place::new();
    let mut tune = place.tune();
    tune.args(["--trials", "12"]).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = tune.spawn().expect("it starts");
    let mut killed = HashSet::new();
    wait_for("the end", || {
        let has_lines = !fs::read(place.path("tuned.jsonl")).unwrap_or_default().is_empty();
        for id in children_of(child.id()) {
            if has_lines && killed.len() < 2 && killed.insert(id) {
                let killed = Command::new("kill").arg("-9").arg(id.to_string()).status();
                killed.expect("there is a `kill`");
            }
        }
        child.try_wait().expect("it can be asked").is_some()
    });
    assert!(child.wait().expect("it has ended").success());
    assert!(!killed.is_empty());
    assert!(place.lines().len() >= 10, "it goes on");
}

#[test]
fn what_was_measured_is_used_and_explained() {
    let place = Place::new();
    place.claim("matmul_add_relu", "b = anchor()", &json!({}));
    let mut compile = place.tenon("compile");
    compile.arg("-o").arg(place.path("model.so")).arg("--explain-schedules");
    let (code, _, error) = say(compile.arg("--tune-db").arg(place.path("tuned.jsonl")));
    assert_eq!(code, 0, "{error}");
    assert!(error.contains("acme::rule"), "{error}");
    assert!(
        error.contains("0.5000 ms measured, where the rules choose 1.0000, on acme"),
        "{error}"
    );
}

#[test]
fn what_does_not_go_any_more_is_told_of_and_left_out() {
    let place = Place::new();
    place.claim(
        "matmul_add_relu",
        "b = block(\"no such block\"); parallel(b)",
        &json!({ "rows": 63, "vectors": 31 }),
    );
    let text = fs::read_to_string(place.path("tuned.jsonl")).expect("there");
    fs::write(place.path("tuned.jsonl"), format!("{text}hello\n{}", &text[..40])).expect("written");
    let mut run = place.tenon("compile");
    run.arg("-o").arg(place.path("model.so")).arg("--explain-schedules");
    let (code, _, error) = say(run.arg("--tune-db").arg(place.path("tuned.jsonl")));
    assert_eq!(code, 0, "{error}");
    assert!(error.contains("does not go any more"), "{error}");
    assert!(error.contains("2 lines of"), "{error}");
    assert!(!error.contains("acme::rule"), "{error}");
    is_right(&place);
}

#[test]
fn errors_name_what_is_wrong() {
    let place = Place::new();
    let with = |command: &str, option: &str, path: &Path| {
        let mut tenon = place.tenon(command);
        tenon.arg(option).arg(path);
        tenon
    };
    let more = |arguments: [&str; 2]| {
        let mut tune = place.tune();
        tune.args(arguments);
        tune
    };
    let mut without_python = place.tune();
    without_python.args(["--ray", "auto"]).env("PATH", place.path(""));
    let cases = [
        (without_python, "--ray needs a `python3`"),
        (more(["--only", "no-such-key"]), "known by no-such-key"),
        (with("run", "--tune-db", &place.path("none.jsonl")), "cannot be read"),
        (with("tune", "--db", &place.path("")), "cannot be opened"),
        (with("tune", "--db", &place.path("model.ir")), "model.ir"),
        (more(["--target", "aarch64-linux-gnu"]), "cannot be run on this machine"),
        (more(["--disable", "tune.MarkTasks"]), "no program that could be tuned"),
    ];
    for (mut command, expected) in cases {
        let (code, out, error) = say(&mut command);
        assert_eq!(code, 1, "{out}{error}");
        assert!(error.contains(expected), "{error}");
    }
    let (code, _, error) = say(place.tune().args(["--time", "soon"]));
    assert_eq!(code, 2);
    assert!(error.contains("such as 90s, 10m or 2h"), "{error}");
}

/// No more schedules are measured than were asked for, however many a round would have.
#[test]
fn trials_are_the_most() {
    let place = Place::new();
    let (code, _, error) = say(place.tune().args(["--trials", "3"]));
    assert_eq!(code, 0, "{error}");
    let is_measured = |line: &Value| ["tried", "best"].iter().any(|&found| line["found"] == found);
    assert_eq!(place.lines().iter().filter(|line| is_measured(line)).count(), 3, "{error}");
}

/// Programs of unknown shapes are not measured, and told of.
#[test]
fn what_cannot_be_measured_is_told_of() {
    let place = Place::new();
    let text = MODEL.replace("48", "n");
    fs::write(place.path("model.ir"), text).expect("written");
    let (code, out, error) = say(place.tune().args(["--trials", "1"]));
    assert_eq!(code, 1, "{out}{error}");
    assert!(error.contains("no program that could be tuned"), "{error}");
    assert!(error.contains("-D binds dimensions"), "{error}");
}

/// The line of a program in a module's text.
fn head_of<'t>(text: &'t str, op: &str) -> &'t str {
    let line = text.lines().find(|line| line.contains(&format!("op_name = \"{op}\"")));
    line.unwrap_or_else(|| panic!("a program computes {op}: {text}"))
}

#[test]
fn a_pass_measures_keeps_and_applies() {
    let place = Place::new();
    place.claim("nn.softmax", "b = anchor()", &json!({}));
    let before = place.lines().len();
    let mut opt = place.with_pass("opt", "relax.MetaScheduleTuneIRMod", "trials=4");
    let (code, out, error) = say(&mut opt);
    assert_eq!(code, 0, "{error}");
    let lines = place.lines();
    let measured = lines.len() - before;
    assert!(measured >= 4, "{error}");
    assert!(error.contains(&format!("schedules measured: {measured}, of programs: 2")), "{error}");
    assert!(head_of(&out, "nn.softmax").contains("tuned = {"), "{out}");
    assert!(!out.contains("task = {"), "{out}");
    let is_better = |line: &&Value| line["found"] == "best" && line["op"] == "matmul_add_relu";
    let is_told = head_of(&out, "matmul_add_relu").contains("tuned = {");
    assert_eq!(lines.iter().any(|line| is_better(&line)), is_told, "{out}");

    // Of what was measured nothing is measured again, and without trials nothing at all.
    let (code, _, error) =
        say(&mut place.with_pass("opt", "tune.TunePrograms", "trials=4, seed=7"));
    assert_eq!(code, 0, "{error}");
    let all = place.lines();
    let schedules = |line: &Value| format!("{} {}", line["program"], line["schedule"]);
    assert_eq!(all.iter().map(schedules).collect::<HashSet<_>>().len(), all.len());
    let (code, out, error) = say(&mut place.with_pass("opt", "tune.TunePrograms", "trials=0"));
    assert_eq!(code, 0, "{error}");
    assert!(head_of(&out, "nn.softmax").contains("tuned = {"), "{out}");
    assert_eq!(place.lines().len(), all.len());
}

#[test]
fn a_pass_that_tunes_stands_in_a_compile() {
    let place = Place::new();
    let mut compile = place.with_pass("compile", "tune.TunePrograms", "trials=2");
    compile.arg("-o").arg(place.path("model.so")).arg("--validate=compiled");
    let (code, _, error) = say(&mut compile);
    assert_eq!(code, 0, "{error}");
    assert!(error.contains("computes what the evaluator does"), "{error}");
    assert!(place.lines().len() >= 2, "{error}");
}

#[test]
fn a_pass_tunes_from_a_process_of_its_own() {
    let place = Place::new();
    place.claim("nn.softmax", "b = anchor()", &json!({}));
    let registry = place.registry("[plugins.isolate]\n\"tenon.tune\" = true");
    let mut opt = place.with_pass("opt", "relax.MetaScheduleTuneTIR", "trials=2");
    let (code, out, error) = say(opt.arg("--registry").arg(registry));
    assert_eq!(code, 0, "{error}");
    assert!(error.contains("of programs: 2"), "{error}");
    assert!(place.lines().len() >= 3, "{error}");
    assert!(head_of(&out, "nn.softmax").contains("tuned = {"), "{out}");
}

/// Where the pass stands in the pipeline of everything that is compiled, candidates among it.
#[test]
fn candidates_are_not_tuned() {
    let place = Place::new();
    let other = place.path("other.jsonl");
    let registry = place.registry(&format!(
        "[phases.fuse]\npasses = [\"tir.AnnotateOpPattern\", \"relax.FuseOps\", \"relax.FuseTIR\", \
         \"relax.RemoveUnusedFunctions\", \"tune.TunePrograms\"]\n\
         [passes.\"tune.TunePrograms\"]\noptions = {{ tune_db = {:?}, trials = 2, threads = 1 }}",
        other.display()
    ));
    let (code, out, error) =
        say(place.tune().args(["--trials", "2"]).arg("--registry").arg(&registry));
    assert_eq!(code, 0, "{error}");
    let told: Value = serde_json::from_str(&out).expect("JSON");
    let tasks = told["tasks"].as_array().expect("tasks");
    let tried: u64 = tasks.iter().filter_map(|task| task["tried"].as_u64()).sum();
    assert_eq!(place.lines().len() as u64, tried);
    assert!(!other.exists(), "nothing else is measured meanwhile");

    let mut compile = place.tenon("compile");
    compile.arg("-o").arg(place.path("model.so")).arg("--registry").arg(&registry);
    let (code, _, error) = say(&mut compile);
    assert_eq!(code, 0, "{error}");
    assert!(lines(&other).len() >= 2, "the compile is tuned: {error}");
}

#[test]
fn a_pass_that_tunes_says_what_is_wrong() {
    let place = Place::new();
    let tuned = |options: &str| place.with_pass("opt", "tune.TunePrograms", options);
    let on = |file: &str, trials: usize| {
        let pass = format!("tune.TunePrograms{{tune_db={:?}, trials={trials}}}", place.path(file));
        let mut opt = place.tenon("opt");
        opt.args(["--pipeline", &format!("tasks, {pass}")]);
        opt
    };
    let mut elsewhere = tuned("trials=1");
    elsewhere.args(["--target", "aarch64-linux-gnu"]);
    let cases = [
        (on("", 1), "cannot be opened"),
        (on("model.ir", 1), "cannot be opened: it holds something else"),
        (tuned("trials=1, only=[\"no-such-key\"]"), "known by no-such-key"),
        (elsewhere, "cannot be run on this machine"),
        (tuned("trials=many"), "trials"),
        (tuned("max_trials=4"), "has no option `max_trials`"),
    ];
    for (mut command, expected) in cases {
        let (code, out, error) = say(&mut command);
        assert_eq!(code, 1, "{out}{error}");
        assert!(error.contains(expected), "{error}");
    }
    let text = fs::read_to_string(place.path("model.ir")).expect("there");
    assert_eq!(text, MODEL, "a model is no database");

    fs::write(place.path("model.ir"), MODEL.replace("48", "n")).expect("written");
    let (code, out, error) = say(&mut tuned("trials=1"));
    assert_eq!(code, 0, "{error}");
    assert!(error.contains("of programs: 0") && error.contains("-D binds dimensions"), "{error}");
    assert!(!out.contains("tuned = {"), "{out}");
}

#[test]
fn a_pass_that_tunes_is_stopped_and_what_was_found_is_kept() {
    let place = Place::new();
    let mut opt = place.with_pass("opt", "tune.TunePrograms", "trials=100000");
    let child = opt.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
    wait_for("a line", || !fs::read(place.path("tuned.jsonl")).unwrap_or_default().is_empty());
    let interrupted = Command::new("kill").arg("-INT").arg(child.id().to_string()).status();
    assert!(interrupted.expect("there is a `kill`").success());
    let ended = child.wait_with_output().expect("it ends");
    let error = String::from_utf8(ended.stderr).expect("text");
    assert_eq!(ended.status.code(), Some(130), "{error}");
    assert!(error.contains("tune.TunePrograms"), "{error}");
    assert!(!place.lines().is_empty());
}

/// Whatever names the file, `--tune-db` or a pipeline.
#[test]
fn what_a_cache_keeps_follows_from_the_file() {
    let place = Place::new();
    let compile = || {
        let mut compile = place.tenon("compile");
        let phases = "phase(ingest), phase(optimize), phase(legalize), phase(fuse)";
        let pass = format!("tune.ApplyDatabase{{tune_db={:?}}}", place.path("tuned.jsonl"));
        let pipeline = format!("{phases}, {pass}, phase(plan), phase(target), phase(builtin)");
        compile.args(["--pipeline", &pipeline]).arg("--cache").arg(place.path("cache"));
        compile.arg("-o").arg(place.path("model.so"));
        let (code, _, error) = say(&mut compile);
        assert_eq!(code, 0, "{error}");
        error
    };
    let not_there = "b = block(\"no such block\"); parallel(b)";
    place.claim("nn.softmax", not_there, &json!({}));
    assert!(compile().contains("does not go any more"));
    assert!(!compile().contains("does not go any more"), "it comes out of the cache");
    place.claim("matmul_add_relu", not_there, &json!({}));
    assert!(compile().contains("does not go any more"), "of another file something else is made");
}
