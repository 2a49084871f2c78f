//! Passes in a process of their own do what they do in this one, and harm that process alone.

#[path = "../../tests/support/vocabulary.rs"]
mod vocabulary;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use tenon_compiler::diagnostics::Source;
use tenon_compiler::infer::infer_module;
use tenon_compiler::ir::{Context, Cx, Module};
use tenon_compiler::passes::{PassContext, PassError, plan, run};
use tenon_compiler::registry::{Config, Guard, Registry};
use tenon_compiler::testing::random_module;
use tenon_compiler::text::{NoWeights, WeightsPolicy, parse_module, print_module};
use vocabulary::vocabulary;

/// A folder with a registry and one plugin.
struct House {
    folder: tempfile::TempDir,
}

impl House {
    fn new(library: &Path, registry: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("plugins")).expect("a folder in it");
        fs::copy(library, folder.path().join("plugins/lib.so")).expect("the plugin");
        let text = format!(
            "schema = 1\n[[plugins.dir]]\npath = \"plugins\"\nenable = \"all\"\n{registry}"
        );
        fs::write(folder.path().join("registry.toml"), text).expect("registry.toml");
        Self { folder }
    }

    fn harmful(harm: &str, registry: &str) -> Self {
        Self::compiled(harm, registry, &[])
    }

    /// The plugin of `harmful.c` that was compiled with these flags as well.
    fn compiled(harm: &str, registry: &str, flags: &[String]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let library = folder.path().join("libharmful.so");
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut cc = Command::new("cc");
        cc.args(["-std=c11", "-fPIC", "-shared", "-DWHEN=RUNNING", "-I"]);
        cc.arg(root.join("../../plugin-api/include")).arg(format!("-DHARM={harm}"));
        cc.args(flags);
        cc.arg("-o").arg(&library).arg(root.join("../../tests/registry/harmful.c"));
        assert!(cc.args(["-ldl", "-lpthread"]).status().expect("a C compiler").success());
        Self::new(&library, registry)
    }

    fn open(&self) -> Registry {
        let config = Config::read(&self.folder.path().join("registry.toml")).expect("readable");
        Registry::guarded(config, Guard::new(env!("CARGO_BIN_EXE_tenon"), None))
    }
}

/// The library that cargo builds from plugin-api's example.
fn faulty() -> PathBuf {
    let program = std::env::current_exe().expect("this test's file");
    let profile = program.ancestors().nth(2).expect("target/<profile>/deps/<test>");
    let path = profile.join("examples/libfaulty.so");
    assert!(path.exists(), "{} is built by `cargo build --examples`", path.display());
    path
}

fn text_of(module: &Module) -> String {
    print_module(module, &mut WeightsPolicy::inline())
}

/// A context whose operators another process can open as well.
fn cx() -> Cx {
    let registry = Registry::of_files(&[faulty()]);
    Cx::with_operators(registry.expect("it is a plugin").operators())
}

const SMALL: &str = "fn @main(%x: f32[4]) -> f32[4] {\n  %a = test.double(%x)\n  ret %a\n}\n";

fn parse(text: &str) -> Module {
    let module = parse_module(&cx(), &Source::new("small", text), &mut NoWeights);
    infer_module(&module.expect("it parses")).expect("it has types")
}

/// What a run leaves: the module, or the error as a person reads it; and the reports.
fn outcome(registry: &Registry, pipeline: &str, module: &Module) -> (String, Vec<String>) {
    let plan = plan(registry, pipeline).expect("a plan");
    let target = module.cx().attrs(&[("kind", "cpu".into()), ("vector_bits", 512i64.into())]);
    let mut cx = PassContext { target, ..PassContext::default() };
    let before = text_of(module);
    let after = match run(registry, &plan, module, &mut cx) {
        Ok(after) => text_of(&after),
        Err(error) => error.to_diagnostic().render(false),
    };
    assert_eq!(text_of(module), before, "the module that was given is as it was");
    let reports = cx.reports.iter().map(|(pass, it)| format!("{pass}: {:?} {}", it.level, it.text));
    (after, reports.collect())
}

#[test]
fn a_pass_does_the_same_in_a_process_of_its_own() {
    let house = House::new(&faulty(), "");
    let here = house.open();
    let plugin = &here.plugins[0].manifest.plugin.id;
    let isolated = House::new(&faulty(), &format!("[plugins.isolate]\n\"{plugin}\" = true\n"));
    let there = isolated.open();
    let passes = [
        "NoOp",
        "test.Panic{at=3}",
        "test.Options",
        "test.Parallel{rows=9}",
        "test.Parallel{panics=2}",
        "test.Fail",
        "test.NoText",
        "test.WrongNode",
        "test.Cycle",
        "test.Untyped",
        "test.ModulePanic",
        "test.MakeUnknown",
        "test.Rewrite",
        "test.Rewrite, NoOp",
    ];
    for pass in passes {
        let [one, other] = [&here, &there].map(|registry| outcome(registry, pass, &parse(SMALL)));
        assert_eq!(one, other, "{pass}");
    }
    for seed in 0..20 {
        for pass in ["NoOp", "test.Rewrite", "test.Fail"] {
            // Names of variables may differ: numbers that tell equal ones apart are chosen when they are printed.
            let [one, other] = [&here, &there].map(|registry| {
                let plan = plan(registry, pass).expect("a plan");
                let module = random_module(&cx(), &vocabulary(), seed, 60);
                let after = run(registry, &plan, &module, &mut PassContext::default());
                after.map(|after| after.structural_hash()).map_err(|error| error.to_string())
            });
            assert_eq!(one, other, "{pass}, seed {seed}");
        }
    }
}

#[test]
fn what_a_pass_leaves_alone_is_the_very_function() {
    let registry = "[passes.\"test.NoOp\"]\nisolate = true\n";
    let house = House::new(&faulty(), registry);
    let registry = house.open();
    let module = random_module(&cx(), &vocabulary(), 3, 60);
    let plan = plan(&registry, "test.NoOp").expect("a plan");
    let after = run(&registry, &plan, &module, &mut PassContext::default()).expect("it runs");
    assert!(after.is_identical(&module));
}

/// What ends by itself has time enough on a machine that does other things.
const ISOLATED: &str =
    "[passes.\"test.Harm\"]\nisolate = true\ntime_limit = 300\nmemory_limit = 512\n";

/// What does not is ended soon.
const HURRIED: &str =
    "[passes.\"test.Harm\"]\nisolate = true\ntime_limit = 1\nmemory_limit = 512\n";

#[test]
fn what_a_pass_does_to_its_process_is_an_error() {
    let ended = |how: &str| format!("error: pass `test.Harm`: it ended the process ({how})");
    let aborted = ended("signal: 6 (SIGABRT)") + ", whose memory is limited to 512 MiB";
    let cases = [
        ("ABORT", aborted.clone()),
        ("HOG", aborted.clone()),
        ("SEGFAULT", ended("signal: 11 (SIGSEGV)")),
        ("DOUBLE_FREE", aborted),
        ("EXIT", ended("exit status: 0")),
    ];
    let limit = "error: pass `test.Harm`: it came to no end within its time limit of 1 s";
    let hangs = ("HANG", limit.to_owned(), HURRIED);
    let cases = cases.into_iter().map(|(harm, wanted)| (harm, wanted, ISOLATED)).chain([hangs]);
    for (harm, wanted, registry) in cases {
        let house = House::harmful(harm, registry);
        let registry = house.open();
        for _ in 0..2 {
            assert_eq!(outcome(&registry, "test.Harm", &parse(SMALL)).0, wanted);
        }
    }
    let flood = "error: pass `test.Harm`: it said more than 64 MiB at once";
    let (said, _) = outcome(&House::harmful("FLOOD", HURRIED).open(), "test.Harm", &parse(SMALL));
    assert!([limit, flood].contains(&said.as_str()), "{said}");
    let house = House::harmful("REPORT_MUCH", ISOLATED);
    let (after, reports) = outcome(&house.open(), "test.Harm", &parse(SMALL));
    assert_eq!((after, reports.len()), (text_of(&parse(SMALL)), 2), "20 MB are no matter");
    for harm in ["NOTHING", "THREAD", "TALK"] {
        let house = House::harmful(harm, ISOLATED);
        let registry = house.open();
        let (after, reports) = outcome(&registry, "test.Harm", &parse(SMALL));
        assert_eq!((after.as_str(), reports.len()), (text_of(&parse(SMALL)).as_str(), 1), "{harm}");
    }
}

#[test]
fn a_pass_is_cancelled_in_its_process() {
    for harm in ["WATCH", "HANG"] {
        let folder = tempfile::tempdir().expect("a folder");
        let started = folder.path().join("started");
        let flag = format!("-DSTARTED=\"{}\"", started.display());
        let registry = "[passes.\"test.Harm\"]\nisolate = true\n";
        let house = House::compiled(harm, registry, &[flag]);
        let registry = house.open();
        let plan = plan(&registry, "test.Harm").expect("a plan");
        let cancelled = Arc::new(AtomicBool::new(false));
        let mut cx = PassContext { cancelled: cancelled.clone(), ..PassContext::default() };
        let canceller = thread::spawn(move || {
            // Before it runs there is nothing to cancel.
            while !started.exists() {
                thread::sleep(Duration::from_millis(5));
            }
            cancelled.store(true, Ordering::Relaxed);
        });
        let error = run(&registry, &plan, &parse(SMALL), &mut cx).expect_err("it was cancelled");
        canceller.join().expect("it only waits");
        let PassError::Failed { failure, .. } = error else { panic!("{error}") };
        assert!(failure.is_cancelled, "{failure:?}");
        let how = if harm == "WATCH" { "cancelled" } else { "it did not stop when it was told to" };
        assert_eq!(failure.message, how);
    }
}

#[test]
fn a_limit_needs_a_process() {
    for what in ["time", "memory"] {
        let registry = format!("[passes.\"test.Harm\"]\n{what}_limit = 1\n");
        let house = House::harmful("NOTHING", &registry);
        let (error, _) = outcome(&house.open(), "test.Harm", &parse(SMALL));
        let said = format!(
            "registry.toml:6 limits the {what} of `test.Harm`, and only a pass in a process"
        );
        assert!(error.contains(&said), "{error}");
    }
}

#[test]
fn a_program_that_names_no_tenon_isolates_nothing() {
    let house = House::harmful("NOTHING", ISOLATED);
    let registry = Registry::open(&house.folder.path().join("registry.toml")).expect("readable");
    let (error, _) = outcome(&registry, "test.Harm", &parse(SMALL));
    assert!(error.contains("this program does not say where `tenon` is"), "{error}");
}
