//! Plugins from shared libraries: found without being opened, run, and survived.

#[path = "../../tests/support/operators.rs"]
mod operators;

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tenon_compiler::diagnostics::Source;
use tenon_compiler::infer::infer_module;
use tenon_compiler::ir::Module;
use tenon_compiler::passes::{PassContext, PassError, Plan, plan, run};
use tenon_compiler::registry::Registry;
use tenon_compiler::text::{NoWeights, WeightsPolicy, parse_module, print_module};

#[path = "../../../tests/registry/library.rs"]
mod library;

/// A folder with `registry.toml` and a folder `plugins` that holds the faulty plugin.
struct House {
    folder: tempfile::TempDir,
}

impl House {
    fn new(registry: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("plugins")).expect("a folder in it");
        fs::copy(faulty(), folder.path().join("plugins/libfaulty.so")).expect("the plugin");
        let house = Self { folder };
        house.set_registry(registry);
        house
    }

    fn set_registry(&self, rest: &str) {
        let text =
            format!("schema = 1\n[[plugins.dir]]\npath = \"plugins\"\nenable = \"all\"\n{rest}");
        fs::write(self.path("registry.toml"), text).expect("registry.toml");
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn open(&self) -> Registry {
        Registry::open(&self.path("registry.toml")).expect("the registry is readable")
    }

    /// Runs a pipeline over a small module and gives its text back.
    fn run(&self, pipeline: &str) -> Result<String, String> {
        let plan =
            plan(&self.open(), pipeline).map_err(|error| error.to_diagnostic().render(false))?;
        self.run_plan(&plan).map(|module| text_of(&module)).map_err(|error| error.to_string())
    }

    fn run_plan(&self, plan: &Plan) -> Result<Module, PassError> {
        let module = small_module();
        let before = text_of(&module);
        let result = run(&self.open(), plan, &module, &mut PassContext::default());
        assert_eq!(text_of(&module), before, "the module that was given is as it was");
        result
    }

    fn error(&self, pipeline: &str) -> String {
        self.run(pipeline).expect_err("this pipeline fails")
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

fn small_module() -> Module {
    let text = "fn @main(%x: f32[4]) -> f32[4] {\n  %a = test.double(%x)\n  ret %a\n}\n";
    let module =
        parse_module(&tenon_compiler::testing::cx(), &Source::new("small", text), &mut NoWeights);
    infer_module(&module.expect("it parses")).expect("it has types")
}

fn text_of(module: &Module) -> String {
    print_module(module, &mut WeightsPolicy::inline())
}

#[test]
fn a_pass_that_asks_for_what_its_manifest_does_not_name_fails() {
    let said = House::new("").error("test.AsksInSecret");
    assert!(said.contains("it asks for rules of the facet `cost`"), "{said}");
    assert!(said.contains("asks = [\"cost\"]"), "{said}");
}

#[test]
fn a_pass_that_changes_nothing_gives_the_same_functions_back() {
    let house = House::new("");
    let registry = house.open();
    let module = small_module();
    let plan = plan(&registry, "NoOp, test.NoOp").expect("a plan");
    let after = run(&registry, &plan, &module, &mut PassContext::default()).expect("it runs");
    assert!(after.is_identical(&module));
}

#[test]
fn a_panic_is_an_error_with_its_place() {
    let error = House::new("").error("test.Panic{at=3}");
    assert!(error.starts_with("pass `test.Panic` in function @main: panic at "), "{error}");
    assert!(error.contains("faulty.rs:"), "{error}");
    assert!(error.contains("index out of bounds: the len is 0 but the index is 3"), "{error}");
    let error = House::new("").error("test.ModulePanic");
    assert!(error.ends_with("after all was removed"), "{error}");
}

#[test]
fn threads_of_the_host_find_out_the_same_however_many_there_are() {
    let house = House::new("");
    let errors = |pipeline: &str| {
        [1, 2, 7].map(|threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
            pool.expect("threads").install(|| house.error(pipeline))
        })
    };
    let [one, two, seven] = errors("test.Parallel{rows=3, columns=101}");
    let wanted = "pass `test.Parallel` in function @main: the sums are [900, 900, 900]";
    assert_eq!((one.as_str(), two.as_str(), seven.as_str()), (wanted, wanted, wanted));
    let [one, two, seven] = errors("test.Parallel{rows=200, columns=50, panics=100}");
    assert!(one.starts_with("pass `test.Parallel` in function @main: panic at "), "{one}");
    assert!(one.contains("faulty.rs:") && one.ends_with(": row 100, column 3"), "{one}");
    assert_eq!((&one, &one), (&two, &seven));
    assert!(house.error("test.Parallel{rows=0}").ends_with("the sums are []"));
}

#[test]
fn other_passes_work_after_one_has_failed() {
    let house = House::new("");
    for pass in ["test.Panic", "test.Fail", "test.WrongNode", "test.Cycle", "test.Untyped"] {
        house.error(pass);
        house.run("test.NoOp").expect("the same library still works");
    }
}

#[test]
fn errors_say_what_and_where() {
    let house = House::new("");
    let error = house.error("test.Fail");
    assert_eq!(error, "pass `test.Fail` in function @main: this is not to my taste");
    assert!(house.error("test.Cycle").contains("was replaced by something that is built from it"));
    assert!(house.error("test.WrongNode").contains("is not in this body"));
    let error = house.error("test.Untyped");
    assert!(error.contains("left something wrong in function @main: `test.joined`"), "{error}");
}

#[test]
fn bytes_that_are_no_text_are_refused() {
    let house = House::new("");
    let error = house.error("test.NoText");
    assert_eq!(error, "pass `test.NoText` in function @main: the name \"a\u{fffd}b\" is not UTF-8");
    let error = house.error("test.NoTextInError");
    assert_eq!(error, "pass `test.NoTextInError` in function @main: a\u{fffd}b");
    house.run("test.NoOp").expect("the same library still works");
}

/// What a user reads; written anew where `UPDATE_EXPECT` is set.
#[test]
fn a_failing_pass_underlines_its_node() {
    let house = House::new("");
    for (pass, file) in [("test.Fail", "fail.txt"), ("test.Untyped", "untyped.txt")] {
        let plan = plan(&house.open(), pass).expect("a plan");
        let error = house.run_plan(&plan).expect_err("this pass fails");
        let found = format!("{}\n", error.to_diagnostic());
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/plugin").join(file);
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            fs::write(&path, &found).expect("written");
        }
        assert_eq!(found, fs::read_to_string(&path).unwrap_or_default(), "{}", path.display());
    }
}

#[test]
fn whatever_a_plugin_builds_the_host_goes_on() {
    let house = House::new("");
    let mut messages = HashSet::new();
    for seed in 0..400 {
        if let Err(error) = house.run(&format!("test.RandomNodes{{seed={seed}}}")) {
            assert!(!error.contains("panic at host/"), "seed {seed}: {error}");
            messages.insert(error.replace(|c: char| c.is_ascii_digit(), ""));
        }
    }
    // The nodes are not all wrong in the same way.
    assert!(messages.len() > 20, "{messages:#?}");
}

#[test]
fn unknown_kinds_survive_passes_and_the_text() {
    let house = House::new("");
    let made = house.run("test.MakeUnknown").expect("an unknown kind is legal");
    let unknown = "unknown<1000, 2, 3, 4>(%a, %a) { later = term<900, 1, 77>(5) }";
    assert!(made.contains(unknown), "{made}");
    let rewritten = house.run("test.MakeUnknown, test.Rewrite, test.NoOp").expect("it runs");
    assert!(rewritten.contains("test.opposite(%x)") && rewritten.contains(unknown), "{rewritten}");
    let again = parse_module(
        &tenon_compiler::testing::cx(),
        &Source::new("again", made.as_str()),
        &mut NoWeights,
    );
    assert_eq!(text_of(&again.expect("it parses")), made);
}

#[test]
fn destructors_that_panic_are_errors() {
    let house = House::new("");
    let error = house.error("test.PanicInDrop");
    assert!(error.ends_with(": a destructor panics"), "{error}");
    let error = house.error("test.PanicPayload");
    assert!(error.ends_with(": a panic without a message"), "{error}");
    house.run("test.NoOp").expect("the same library still works");
}

#[test]
fn handles_that_a_plugin_keeps_stay_valid() {
    let house = House::new("");
    for _ in 0..3 {
        house.run("test.KeepHandles").expect("it runs");
    }
}

#[test]
fn options_are_checked_before_anything_runs() {
    let house = House::new("");
    let error = house.error("test.Panic{where=1}");
    assert!(error.starts_with("error: `test.Panic` has no option `where`\n"), "{error}");
    let error = house.error("test.Panic{at=101}");
    let wanted = "error: option `at` of `test.Panic` is at most 100, not 101\n";
    assert!(error.starts_with(wanted), "{error}");
    let error = house.error("test.Panic{at=many}");
    let wanted = "error: option `at` of `test.Panic` is of type int, and \"many\" is not\n";
    assert!(error.starts_with(wanted), "{error}");
}

#[test]
fn options_of_every_type_reach_the_pass() {
    let house = House::new("[passes.\"test.Options\".options]\nsizes = [1, 2]\nscale = 2\n");
    let error = house.error("test.Options");
    let wanted = "pass `test.Options` in function @main: -3 2 true fast [1, 2] []";
    assert_eq!(error, wanted);
    let error = house.error("test.Options{count=5, on=false, mode=small, names=[x, y], sizes=[]}");
    let wanted = "pass `test.Options` in function @main: 5 2 false small [] [\"x\", \"y\"]";
    assert_eq!(error, wanted);
}

#[test]
fn the_first_pass_of_one_in_500_plugins_opens_one() {
    let house = House::new("");
    let plugins = house.path("plugins").canonicalize().expect("it is there");
    for number in 0..500 {
        let plugin = format!(r#"{{"plugin":"acme.p{number}","format":1,"version":"1.0.0"}}"#);
        let pass = format!(r#"{{"pass":"acme.P{number}","kind":"function"}}"#);
        let path = plugins.join(format!("libp{number}.so"));
        fs::write(path, library::library(&[&plugin, &pass])).expect("written");
    }
    let registry = house.open();
    assert_eq!(registry.plugins.len(), 501);
    let mapped = || -> BTreeSet<String> {
        let maps = fs::read_to_string("/proc/self/maps").expect("a Linux system");
        let folder = plugins.display().to_string();
        let files = maps.lines().filter_map(|line| Some(line[line.find(&folder)?..].to_owned()));
        files.collect()
    };
    assert!(mapped().is_empty(), "listing opens nothing");
    registry.get_pass("test.NoOp").expect("it loads");
    let library = plugins.join("libfaulty.so").display().to_string();
    assert_eq!(mapped().into_iter().collect::<Vec<_>>(), [library]);
}

#[test]
fn requirements_are_resolved_before_anything_runs() {
    let house = House::new("");
    let error = house.error("test.NeedsMissing");
    assert!(error.starts_with("error: no pass is called `test.Missing`"), "{error}");
    assert!(error.contains(&house.path("plugins").display().to_string()), "{error}");
    assert!(error.contains("it is required by `test.NeedsMissing`"), "{error}");
    let error = house.error("test.RingA");
    let wanted = "passes require each other: test.RingA requires test.RingB requires test.RingA\n";
    assert!(error.contains(wanted), "{error}");
    house.set_registry("[passes.\"test.RingB\"]\nenabled = false\n");
    let error = house.error("test.RingA");
    assert!(error.starts_with("error: `test.RingB` is disabled\n"), "{error}");
    assert!(error.contains("it is required by `test.RingA`"), "{error}");
}

#[test]
fn an_enabled_pass_finds_its_place() {
    let house = House::new(
        "[pipelines.p]\nphases = [\"optimize\"]\n\
         [phases.optimize]\npasses = [\"test.NoOp\", \"test.KeepHandles\"]\n\
         [passes.\"test.Placed\"]\nenabled = true\n",
    );
    let plan = plan(&house.open(), "p").expect("a plan");
    assert_eq!(plan.to_string(), "enter(optimize), test.NoOp, test.Placed, test.KeepHandles");
}

#[test]
fn listing_opens_no_plugin_as_code() {
    let house = House::new("");
    let registry = house.open();
    assert!(registry.passes().count() > 5);
    plan(&registry, "test.NoOp").expect("a plan");
    let library = house.path("plugins/libfaulty.so").canonicalize().expect("it is there");
    let is_mapped = || {
        let maps = fs::read_to_string("/proc/self/maps").expect("a Linux system");
        maps.lines().any(|line| line.ends_with(&library.display().to_string()))
    };
    assert!(!is_mapped(), "listing and planning map no plugin");
    registry.get_pass("test.NoOp").expect("it loads");
    assert!(is_mapped(), "the first pass that is needed opens its library");
}

/// The dynamic loader writes down which libraries the program opens.
#[test]
fn the_program_opens_no_plugin_to_list_it() {
    let house = House::new(
        "[pipelines.p]\nphases = [\"optimize\"]\n[phases.optimize]\npasses = [\"NoOp\"]\n",
    );
    let model = house.path("small.ir");
    fs::write(&model, text_of(&small_module())).expect("written");
    let opens_plugin = |arguments: &[&str]| {
        let log = tempfile::tempdir().expect("a folder");
        let output = Command::new(env!("CARGO_BIN_EXE_tenon"))
            .args(arguments)
            .env("TENON_REGISTRY", house.path("registry.toml"))
            .env("TENON_STATE", house.path("state"))
            .env("LD_DEBUG", "files")
            .env("LD_DEBUG_OUTPUT", log.path().join("log"))
            .output()
            .expect("the program runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        // Each process has a log.
        let mut files = fs::read_dir(log.path()).expect("a folder").flatten().peekable();
        assert!(files.peek().is_some(), "the loader writes a log");
        files.any(|file| fs::read_to_string(file.path()).expect("a text").contains("libfaulty.so"))
    };
    for listing in [
        &["plugins", "list"][..],
        &["passes", "list"],
        &["passes", "show", "test.NoOp"],
        &["pipeline", "list"],
        &["pipeline", "explain", "p"],
    ] {
        assert!(!opens_plugin(listing), "{listing:?}");
    }
    assert!(opens_plugin(&["opt", "-p", "p", &model.display().to_string()]));
}

#[test]
fn what_is_no_plugin_is_listed_with_the_reason() {
    let house = House::new("");
    let plugins = house.path("plugins");
    fs::write(plugins.join("libempty.so"), b"").expect("written");
    fs::write(plugins.join("libtext.so"), b"#!/bin/sh\n").expect("written");
    let whole = fs::read(faulty()).expect("the plugin");
    fs::write(plugins.join("libcut.so"), &whole[..whole.len() / 3]).expect("written");
    fs::create_dir(plugins.join("libfolder.so")).expect("made");
    let registry = house.open();
    assert_eq!(registry.plugins.len(), 1);
    let mut reasons: Vec<String> =
        registry.unusable.iter().map(|(_, error)| error.to_string()).collect();
    reasons.sort();
    assert_eq!(reasons.len(), 4, "{reasons:?}");
    assert!(
        reasons
            .iter()
            .any(|reason| reason.contains("libfolder.so") && reason.contains("is a directory"))
    );
    house.run("test.NoOp").expect("the good one still works");
}

#[test]
fn two_providers_of_one_name_are_an_error_that_names_both() {
    let house = House::new("");
    fs::copy(faulty(), house.path("plugins/libtwin.so")).expect("copied");
    let error = house.error("test.NoOp");
    assert!(error.contains("libfaulty.so") && error.contains("libtwin.so"), "{error}");
}

#[test]
fn the_nearest_names_are_suggested() {
    let error = House::new("").error("test.NoOpp");
    assert!(error.contains("did you mean `test.NoOp`?"), "{error}");
}

#[test]
fn the_registry_says_what_is_wrong_with_it() {
    let house = House::new("");
    let error = |text: &str| {
        fs::write(house.path("registry.toml"), text).expect("written");
        match Registry::open(Path::new(&house.path("registry.toml"))) {
            Ok(_) => panic!("`{text}` is accepted"),
            Err(error) => error.to_string(),
        }
    };
    assert!(error("schema = 2").contains("its schema is 2"));
    assert!(error("schema = 1\npasse = 3").contains("a registry has no `passe`"));
    assert!(error("schema = 1\n[phases.late]\npasses = []").contains("there is no phase `late`"));
    assert!(error("schema = 1\n[pipelines.p]").contains("either `phases` or `passes`"));
}
