//! §2.5: who is told of passes, in which order, and what happens when one fails.

use std::fs;
use std::process::Command;

use tenon_compiler::ir::{Attrs, Build, Transaction};
use tenon_compiler::passes::{
    GroupKind, Instrument, Pass, PassContext, PassLimit, StepInfo, StepOutcome, Timing, VerifyEach,
};
use tenon_compiler::registry::PassFailure;

use crate::support::{House, SMALL, Watched, call, calls, changes, fails, module, plan_of, told};

#[test]
fn c067_c068_c088_all_are_told_in_their_order() {
    let mut watched = Watched::by(&["a", "b"]);
    let sequence = Pass::sequential([watched.pass("p"), watched.pass("q")]);
    watched.call(&sequence).unwrap();
    let around = |what: &str, name: &str| ["a", "b"].map(|spy| format!("{spy} {what} {name}"));
    let mut expected = vec!["a enter".to_owned(), "b enter".to_owned()];
    expected.extend(["ask", "before"].iter().flat_map(|what| around(what, "sequential")));
    for name in ["p", "q"] {
        expected.extend(["ask", "before"].iter().flat_map(|what| around(what, name)));
        expected.push(name.to_owned());
        expected.extend(around("after", name));
    }
    expected.extend(around("after", "sequential"));
    expected.extend(["a exit".to_owned(), "b exit".to_owned()]);
    assert_eq!(told(&watched.log), expected);
}

#[test]
fn c069_c070_c076_one_that_refuses_is_enough_and_all_are_asked() {
    let mut watched = Watched::default();
    watched.add("a", None, Some("p"));
    watched.add("b", None, None);
    let pass = changes("p", &watched.log);
    let before = module(SMALL);
    assert!(call(&pass, &before, &mut watched.cx).unwrap().is_identical(&before));
    watched.assert_told(&[
        "a enter",
        "b enter",
        "a ask p",
        "b ask p",
        "a skipped p",
        "b skipped p",
        "a exit",
        "b exit",
    ]);
}

/// Counts, and answers nothing else.
#[derive(Default)]
struct Counter {
    before: usize,
    after: usize,
}

impl Instrument for Counter {
    fn enter(&mut self) -> Result<(), Box<tenon_compiler::diagnostics::Diagnostic>> {
        *self = Self::default();
        Ok(())
    }

    fn before(
        &mut self,
        _: StepInfo<'_>,
        _: &tenon_compiler::ir::Module,
    ) -> Result<(), Box<tenon_compiler::diagnostics::Diagnostic>> {
        self.before += 1;
        Ok(())
    }

    fn after(
        &mut self,
        _: StepInfo<'_>,
        outcome: StepOutcome<'_>,
    ) -> Result<(), Box<tenon_compiler::diagnostics::Diagnostic>> {
        self.after += usize::from(!matches!(outcome, StepOutcome::Skipped(_)));
        Ok(())
    }

    fn report(&mut self) -> Option<String> {
        Some(format!("{} {}", self.before, self.after))
    }
}

#[test]
fn c071_c089_what_is_begun_is_ended_failed_passes_too() {
    let log = Watched::default().log;
    let three = ["p", "q", "r"].map(|name| changes(name, &log));
    let mut cx = PassContext::default();
    cx.instruments.push(Box::new(Counter::default()));
    call(&Pass::composite("c", three.clone()), &module(SMALL), &mut cx).unwrap();
    // Three passes and what they stand in.
    assert_eq!(cx.instruments[0].report().unwrap(), "4 4");
    let failing = Pass::sequential([
        Pass::sequential(three),
        Pass::sequential([Pass::group(GroupKind::Fixpoint { max: 3 }, [fails("f")])]),
    ]);
    call(&failing, &module(SMALL), &mut cx).unwrap_err();
    assert_eq!(cx.instruments[0].report().unwrap(), "8 8");
}

#[test]
fn c072_c074_what_the_context_requires_is_not_asked_about() {
    let mut watched = Watched::default();
    watched.add("a", None, Some("p"));
    watched.cx.required.push("p".to_owned());
    watched.call(&watched.pass("p")).unwrap();
    watched.assert_told(&["a enter", "a before p", "p", "a after p", "a exit"]);

    let mut watched = Watched::default();
    watched.add("a", None, Some("sequential"));
    watched.cx.required.extend(["p".to_owned(), "sequential".to_owned()]);
    watched.call(&Pass::sequential([watched.pass("p")])).unwrap();
    assert!(told(&watched.log).contains(&"p".to_owned()));
}

#[test]
fn c075_a_sequence_that_is_refused_keeps_its_passes_from_running() {
    let mut watched = Watched::default();
    watched.add("a", None, Some("sequential"));
    // Not even what the context requires.
    watched.cx.required.push("p".to_owned());
    watched.call(&Pass::sequential([watched.pass("p")])).unwrap();
    watched.assert_told(&["a enter", "a ask sequential", "a skipped sequential", "a exit"]);
}

/// An answer is a truth value by its type, and what is none fails.
#[test]
fn c077_an_answer_that_is_none_is_an_error() {
    let mut watched = Watched::default();
    watched.add("a", Some("ask"), None);
    let error = watched.call(&watched.pass("p")).unwrap_err();
    assert_eq!(error.to_string(), "at pass `p`: a fails to ask p");
}

#[test]
fn c078_c080_who_was_entered_is_left_from_the_last_to_the_first() {
    let mut watched = Watched::by(&["a", "b"]);
    watched.add("c", Some("enter"), None);
    watched.add("d", None, None);
    let error = watched.call(&watched.pass("p")).unwrap_err();
    assert_eq!(error.to_string(), "when the context was entered: c fails to enter");
    assert!(watched.cx.instruments.is_empty());
    assert_eq!(PassContext::current().opt_level, 2);
    watched.assert_told(&["a enter", "b enter", "c enter", "b exit", "a exit"]);
}

#[test]
fn c079_the_same_where_instruments_are_overridden() {
    let mut watched = Watched::default();
    let new = vec![watched.spy("a", None, None), watched.spy("b", Some("enter"), None)];
    let error = watched.cx.scope(|cx| cx.override_instruments(new)).unwrap_err();
    assert_eq!(error.to_string(), "when the context was entered: b fails to enter");
    assert!(watched.cx.instruments.is_empty());
    watched.assert_told(&["a enter", "b enter", "a exit"]);
}

/// TVM does not leave those behind it, and drops all.
#[test]
fn c082_all_are_left_though_one_fails() {
    let mut watched = Watched::by(&["a"]);
    watched.add("b", Some("exit"), None);
    watched.add("c", None, None);
    let error = watched.call(&Pass::sequential([])).unwrap_err();
    assert_eq!(error.to_string(), "when the context was left: b fails to exit");
    assert_eq!(watched.cx.instruments.len(), 3);
    assert_eq!(told(&watched.log)[12..], ["a exit", "b exit", "c exit"]);
}

/// TVM shows the exit's error.
#[test]
fn c083_c084_the_error_of_a_pass_comes_first() {
    let mut watched = Watched::default();
    watched.add("a", Some("exit"), None);
    watched.add("b", Some("failed"), None);
    let error = watched.call(&fails("p")).unwrap_err();
    assert_eq!(error.to_string(), "pass `p`: this is not to my taste");
    assert!(error.to_diagnostic().notes.contains(&"then a fails to exit".to_owned()), "{error:?}");
    // TVM tells nobody that a pass failed.
    watched.assert_told(&[
        "a enter",
        "b enter",
        "a ask p",
        "b ask p",
        "a before p",
        "b before p",
        "a failed p",
        "b failed p",
        "a exit",
        "b exit",
    ]);
}

#[test]
fn c085_c086_one_that_fails_stops_the_run() {
    for (event, last) in [("ask", "a ask p"), ("before", "a before p")] {
        let mut watched = Watched::default();
        watched.add("a", Some(event), None);
        watched.add("b", None, None);
        let error = watched.call(&watched.pass("p")).unwrap_err();
        assert_eq!(error.to_string(), format!("at pass `p`: a fails to {event} p"));
        let events = told(&watched.log);
        assert_eq!(events[events.len() - 3..], [last, "a exit", "b exit"]);
    }
}

#[test]
fn c090_instruments_are_overridden_within_a_scope() {
    let mut watched = Watched::by(&["a"]);
    let (new, pass) = (vec![watched.spy("b", None, None)], plan_of(&watched.pass("p")).unwrap());
    let registry = crate::support::no_plugins();
    watched
        .cx
        .scope(|cx| {
            cx.override_instruments(new)?;
            cx.run(&registry, &pass, &module(SMALL))?;
            cx.override_instruments(Vec::new())?;
            cx.run(&registry, &pass, &module(SMALL))
        })
        .unwrap();
    watched.assert_told(&[
        "a enter",
        "a exit",
        "b enter",
        "b ask p",
        "b before p",
        "p",
        "b after p",
        "b exit",
        "p",
    ]);
}

#[test]
fn c091_an_old_one_that_fails_to_be_left_keeps_new_ones_out() {
    let mut watched = Watched::default();
    watched.add("a", Some("exit"), None);
    let new = vec![watched.spy("b", None, None)];
    let error = watched.cx.scope(|cx| cx.override_instruments(new)).unwrap_err();
    assert_eq!(error.to_string(), "when the context was left: a fails to exit");
    assert!(watched.cx.instruments.is_empty());
    watched.assert_told(&["a enter", "a exit"]);
}

#[test]
fn c092_times_are_a_tree_that_stays_when_the_context_is_left() {
    let log = Watched::default().log;
    let mut cx = PassContext::default();
    cx.instruments.push(Box::new(Timing::default()));
    let inner = Pass::sequential([changes("q", &log)]).named("inner");
    call(&Pass::sequential([changes("p", &log), inner]), &module(SMALL), &mut cx).unwrap();
    let report = cx.instruments[0].report().unwrap();
    let name = |line: &str| line.get(38..)?.split(" (").next().map(str::to_owned);
    // Below the head and the phase, above the sum.
    let rows: Vec<&str> = report.lines().collect();
    let names: Vec<String> = rows[2..rows.len() - 1].iter().filter_map(|row| name(row)).collect();
    assert_eq!(names, ["sequential", "  p", "  inner", "    q"], "{report}");
    assert!(report.contains("inner (itself 0.0"), "{report}");
}

#[test]
fn c094_two_timings_do_not_disturb_each_other_even_after_a_failure() {
    let log = Watched::default().log;
    let mut cx = PassContext::default();
    cx.instruments.push(Box::new(Timing::default()));
    cx.instruments.push(Box::new(Timing::default()));
    let sequence = Pass::sequential([crate::support::logs("p", &log), fails("f")]);
    call(&sequence, &module(SMALL), &mut cx).unwrap_err();
    for timing in &mut cx.instruments {
        let report = timing.report().unwrap();
        assert_eq!(report.matches("  p (no change)").count(), 1, "{report}");
        assert_eq!(report.matches("  f (failed)").count(), 1, "{report}");
        assert_eq!(report.matches("sequential (failed").count(), 1, "{report}");
        assert!(report.contains("phase ingest"), "{report}");
    }
    // The next run with the same instruments works as well.
    call(&crate::support::logs("p", &log), &module(SMALL), &mut cx).unwrap();
}

fn tenon(house: &House, args: &[&str]) -> (Option<i32>, String, String) {
    fs::write(house.path("m.ir"), SMALL).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_tenon"))
        .args(args)
        .arg(house.path("m.ir"))
        .env("TENON_REGISTRY", house.path("registry.toml"))
        .output()
        .unwrap();
    let [stdout, stderr] = [output.stdout, output.stderr].map(|it| String::from_utf8(it).unwrap());
    (output.status.code(), stdout, stderr)
}

#[test]
fn c095_modules_are_printed_before_and_after_the_passes_that_are_named() {
    let house = House::new("");
    let passes = "test.NoOp, test.Miscompile";
    let (_, _, all) = tenon(&house, &["opt", "-p", passes, "--print-before", "--print-after"]);
    let headers = |text: &str| -> Vec<String> {
        text.lines().filter(|line| line.starts_with("// ")).map(str::to_owned).collect()
    };
    assert_eq!(
        headers(&all),
        [
            "// before test.NoOp",
            "// after test.NoOp",
            "// before test.Miscompile",
            "// after test.Miscompile",
        ]
    );
    let (_, _, one) = tenon(&house, &["opt", "-p", passes, "--print-after=Miscompile"]);
    assert_eq!(headers(&one), ["// after test.Miscompile"]);
    let (_, _, changed) = tenon(&house, &["opt", "-p", passes, "--print-changed"]);
    assert_eq!(headers(&changed), ["// changed by test.Miscompile"]);
}

#[test]
fn c096_the_folder_of_modules_is_numbered_in_the_order_of_the_passes() {
    let house = House::new("");
    let dump = house.path("dump");
    let folder = dump.display().to_string();
    let list = || {
        let mut names: Vec<String> = fs::read_dir(&dump)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    };
    let passes = "test.NoOp, fixpoint(test.Miscompile){max=3}";
    tenon(&house, &["opt", "-p", passes, "--dump-dir", &folder]);
    assert_eq!(list(), ["000_test.NoOp.ir", "001_test.Miscompile.ir", "002_test.Miscompile.ir"]);
    // What an earlier run left is gone, and files of others stay.
    fs::write(dump.join("notes.txt"), "mine").unwrap();
    tenon(&house, &["opt", "-p", "test.NoOp", "--dump-dir", &folder]);
    assert_eq!(list(), ["000_test.NoOp.ir", "notes.txt"]);
}

#[test]
fn c097_a_malformed_module_is_an_error_that_names_the_pass() {
    let stray = Pass::function("stray", |function, _, _| {
        let mut edit = Transaction::edit(function);
        let (call, _) = calls(function, "test.double")[0];
        let ty = edit.body().ty(call);
        let var = edit.var("nowhere", ty);
        let new = edit.call_op("test.double", &[var], Attrs::NONE);
        edit.replace(call, new);
        edit.publish().map_err(|error| PassFailure::error(error.to_string()))
    });
    let mut cx = PassContext::default();
    cx.instruments.push(Box::new(VerifyEach::default()));
    let error = call(&stray, &module(SMALL), &mut cx).unwrap_err();
    let message = "at pass `stray`: the module that it left is not well formed: @main: ";
    assert!(error.to_string().starts_with(message), "{error}");
}

#[test]
fn c098_what_an_instrument_does_not_say_is_yes_and_nothing() {
    struct Silent;
    impl Instrument for Silent {}
    let mut watched = Watched::default();
    watched.cx.instruments.push(Box::new(Silent));
    watched.call(&watched.pass("p")).unwrap();
    watched.assert_told(&["p"]);
}

#[test]
fn after_the_limit_no_pass_runs() {
    let mut watched = Watched::default();
    watched.cx.instruments.push(Box::new(PassLimit::new(1)));
    watched.call(&Pass::sequential([watched.pass("p"), fails("f"), watched.pass("q")])).unwrap();
    watched.assert_told(&["p"]);
}
