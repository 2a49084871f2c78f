//! Instruments around passes: who is asked, in which order, and what happens when one fails.
//!
//! A test named `c067_…` asserts case C067 of the pass infrastructure that TVM users know; `docs/differences.md` says
//! where Tenon answers it in another way.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use tenon_host::diagnostics::{Diagnostic, Source};
use tenon_host::infer::infer_module;
use tenon_host::ir::{Cx, Module};
use tenon_host::passes::{
    Instrument, PassContext, PassError, PassLimit, StepInfo, StepOutcome, Timing, plan, run,
};
use tenon_host::registry::Registry;
use tenon_host::text::{NoWeights, parse_module};

/// What instruments were told, in order.
type Events = Arc<Mutex<Vec<String>>>;

/// Writes down what it is told, and fails or refuses where it is said so.
struct Spy {
    name: &'static str,
    events: Events,
    /// The event at which it fails.
    fails_at: Option<&'static str>,
    /// The pass that it refuses.
    refuses: Option<&'static str>,
}

impl Spy {
    fn event(&self, what: String) -> Result<(), Box<Diagnostic>> {
        let fails = self.fails_at.is_some_and(|event| what.starts_with(event));
        self.events.lock().unwrap().push(format!("{} {what}", self.name));
        match fails {
            true => Err(Box::new(Diagnostic::error(format!("{} fails to {what}", self.name)))),
            false => Ok(()),
        }
    }
}

impl Instrument for Spy {
    fn enter(&mut self, _: &Module) -> Result<(), Box<Diagnostic>> {
        self.event("enter".to_owned())
    }

    fn should_run(&mut self, step: StepInfo<'_>, _: &Module) -> Result<bool, Box<Diagnostic>> {
        self.event(format!("ask {}", step.step.name))?;
        Ok(self.refuses.is_none_or(|name| name != step.step.name))
    }

    fn before(&mut self, step: StepInfo<'_>, _: &Module) -> Result<(), Box<Diagnostic>> {
        self.event(format!("before {}", step.step.name))
    }

    fn after(
        &mut self,
        step: StepInfo<'_>,
        outcome: StepOutcome<'_>,
    ) -> Result<(), Box<Diagnostic>> {
        let how = match outcome {
            StepOutcome::Ran { .. } => "after",
            StepOutcome::Skipped(_) => "skipped",
            StepOutcome::Failed => "failed",
        };
        self.event(format!("{how} {}", step.step.name))
    }

    fn exit(&mut self) -> Result<(), Box<Diagnostic>> {
        self.event("exit".to_owned())
    }
}

/// A context with spies, and what they will have been told.
struct Watched {
    cx: PassContext,
    events: Events,
}

impl Watched {
    fn by(names: &[&'static str]) -> Self {
        let mut watched = Self { cx: PassContext::default(), events: Events::default() };
        for name in names {
            watched.add(name, None, None);
        }
        watched
    }

    fn add(
        &mut self,
        name: &'static str,
        fails_at: Option<&'static str>,
        refuses: Option<&'static str>,
    ) {
        let events = self.events.clone();
        self.cx.instruments.push(Box::new(Spy { name, events, fails_at, refuses }));
    }

    /// Runs a pipeline over a small module; gives back how it ended.
    fn run(&mut self, pipeline: &str) -> Result<Module, PassError> {
        let folder = tempfile::tempdir().unwrap();
        let program = std::env::current_exe().unwrap();
        let library = program.ancestors().nth(2).unwrap().join("examples/libfaulty.so");
        fs::copy(library, folder.path().join("libfaulty.so")).expect("cargo builds examples");
        let registry = folder.path().join("registry.toml");
        fs::write(&registry, "schema = 1\n[[plugins.dir]]\npath = \".\"\nenable = \"all\"\n")
            .unwrap();
        self.run_from(&registry, pipeline)
    }

    fn run_from(&mut self, registry: &Path, pipeline: &str) -> Result<Module, PassError> {
        let registry = Registry::open(registry).unwrap();
        let text = "fn @main(%x: f32[4]) -> f32[4] {\n  %a = exp(%x)\n  ret %a\n}\n";
        let module = parse_module(&Cx::new(), &Source::new("small", text), &mut NoWeights);
        let module = infer_module(&module.unwrap()).unwrap();
        run(&registry, &plan(&registry, pipeline).unwrap(), &module, &mut self.cx)
    }

    #[track_caller]
    fn assert_told(&self, expected: &[&str]) {
        assert_eq!(*self.events.lock().unwrap(), expected);
    }
}

#[test]
fn c067_all_are_told_in_their_order() {
    let mut watched = Watched::by(&["a", "b"]);
    watched.run("test.NoOp, NoOp").unwrap();
    watched.assert_told(&[
        "a enter",
        "b enter",
        "a ask test.NoOp",
        "b ask test.NoOp",
        "a before test.NoOp",
        "b before test.NoOp",
        "a after test.NoOp",
        "b after test.NoOp",
        "a ask test.NoOp",
        "b ask test.NoOp",
        "a before test.NoOp",
        "b before test.NoOp",
        "a after test.NoOp",
        "b after test.NoOp",
        "a exit",
        "b exit",
    ]);
}

#[test]
fn c069_c070_one_that_refuses_is_enough_and_all_are_asked() {
    let mut watched = Watched::by(&[]);
    watched.add("a", None, Some("test.NoOp"));
    watched.add("b", None, None);
    let after = watched.run("test.NoOp").unwrap();
    assert_eq!(after.len(), 1);
    watched.assert_told(&[
        "a enter",
        "b enter",
        "a ask test.NoOp",
        "b ask test.NoOp",
        "a skipped test.NoOp",
        "b skipped test.NoOp",
        "a exit",
        "b exit",
    ]);
}

#[test]
fn c072_what_the_context_requires_is_not_asked_about() {
    let mut watched = Watched::by(&[]);
    watched.add("a", None, Some("test.NoOp"));
    watched.cx.required.push("test.NoOp".to_owned());
    watched.run("test.NoOp").unwrap();
    watched.assert_told(&["a enter", "a before test.NoOp", "a after test.NoOp", "a exit"]);
}

#[test]
fn c078_c080_who_was_entered_is_exited_from_the_last_to_the_first() {
    let mut watched = Watched::by(&["a", "b"]);
    watched.add("c", Some("enter"), None);
    watched.add("d", None, None);
    let error = watched.run("test.NoOp").unwrap_err();
    assert_eq!(error.to_string(), "before the first pass: c fails to enter");
    assert!(watched.cx.instruments.is_empty());
    watched.assert_told(&["a enter", "b enter", "c enter", "b exit", "a exit"]);
}

#[test]
fn c082_all_are_exited_though_one_fails() {
    let mut watched = Watched::by(&["a"]);
    watched.add("b", Some("exit"), None);
    watched.add("c", None, None);
    let error = watched.run("").unwrap_err();
    assert_eq!(error.to_string(), "at the end of the run: b fails to exit");
    watched.assert_told(&["a enter", "b enter", "c enter", "a exit", "b exit", "c exit"]);
}

#[test]
fn c083_c084_the_error_of_a_pass_comes_first() {
    let mut watched = Watched::by(&[]);
    watched.add("a", Some("exit"), None);
    watched.add("b", Some("failed"), None);
    let error = watched.run("test.Fail, test.NoOp").unwrap_err();
    assert!(error.to_string().starts_with("pass `test.Fail` in function @main: "), "{error}");
    watched.assert_told(&[
        "a enter",
        "b enter",
        "a ask test.Fail",
        "b ask test.Fail",
        "a before test.Fail",
        "b before test.Fail",
        "a failed test.Fail",
        "b failed test.Fail",
        "a exit",
        "b exit",
    ]);
}

#[test]
fn c085_c086_one_that_fails_stops_the_run() {
    for (event, last) in [("ask", "a ask test.NoOp"), ("before", "a before test.NoOp")] {
        let mut watched = Watched::by(&[]);
        watched.add("a", Some(event), None);
        let error = watched.run("test.NoOp").unwrap_err();
        assert_eq!(error.to_string(), format!("at pass `test.NoOp`: a fails to {event} test.NoOp"));
        let told = watched.events.lock().unwrap().clone();
        assert_eq!(told[told.len() - 2..], [last, "a exit"]);
    }
}

#[test]
fn c094_two_timings_do_not_disturb_each_other_even_after_a_failure() {
    let mut watched = Watched::by(&[]);
    watched.cx.instruments.push(Box::new(Timing::default()));
    watched.cx.instruments.push(Box::new(Timing::default()));
    watched.run("test.NoOp, test.Fail").unwrap_err();
    for timing in &mut watched.cx.instruments {
        let report = timing.report().unwrap();
        assert_eq!(report.matches("test.NoOp (no change)").count(), 1, "{report}");
        assert_eq!(report.matches("test.Fail (failed)").count(), 1, "{report}");
        assert!(report.contains("phase ingest"), "{report}");
    }
    // The next run with the same instruments works as well.
    watched.run("test.NoOp").unwrap();
}

#[test]
fn after_the_limit_no_pass_runs() {
    let mut watched = Watched::by(&[]);
    watched.cx.instruments.push(Box::new(PassLimit::new(1)));
    watched.add("a", None, None);
    watched.run("test.NoOp, test.Fail, test.Panic").unwrap();
    let told = watched.events.lock().unwrap().clone();
    assert!(told.contains(&"a after test.NoOp".to_owned()), "{told:?}");
    assert!(told.contains(&"a skipped test.Fail".to_owned()), "{told:?}");
}
