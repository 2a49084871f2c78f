//! §2.3: what passes require.

use tenon_compiler::passes::{Pass, PassContext, plan};

use crate::support::{
    House, Log, SMALL, Watched, call, changes, logs, module, no_plugins, plan_of, told,
};

/// The names of the passes that run, in order.
#[track_caller]
fn ran(cx: &mut PassContext, make: impl FnOnce(&Log) -> Pass) -> Vec<String> {
    let log = Log::default();
    call(&make(&log), &module(SMALL), cx).expect("it runs");
    told(&log)
}

fn cx() -> PassContext {
    PassContext::default()
}

#[test]
fn c043_c045_requirements_run_first_in_the_order_of_their_list() {
    let names = ran(&mut cx(), |log| {
        let b = logs("b", log).requires(logs("d1", log)).requires(logs("d2", log));
        Pass::sequential([b])
    });
    assert_eq!(names, ["d1", "d2", "b"]);
}

/// TVM runs a requirement again for each pass that lists it; here it runs again once something has changed.
#[test]
fn c044_a_requirement_runs_again_when_something_has_changed() {
    let names = ran(&mut cx(), |log| {
        let d = logs("d", log);
        Pass::sequential([logs("b", log).requires(d.clone()), logs("c", log).requires(d)])
    });
    assert_eq!(names, ["d", "b", "c"]);
    let names = ran(&mut cx(), |log| {
        let d = logs("d", log);
        Pass::sequential([changes("b", log).requires(d.clone()), logs("c", log).requires(d)])
    });
    assert_eq!(names, ["d", "b", "d", "c"]);
}

/// TVM runs a disabled requirement; here it is an error before anything runs.
#[test]
fn c046_a_disabled_requirement_is_an_error() {
    let log = Log::default();
    let b = logs("b", &log).requires(logs("d", &log));
    let mut cx = PassContext { disabled: vec!["d".to_owned()], ..cx() };
    let sequence = Pass::sequential([logs("a", &log), b]);
    let error = call(&sequence, &module(SMALL), &mut cx).unwrap_err();
    assert_eq!(error.to_string(), "pass `d` is disabled, but `b` requires it");
    assert!(told(&log).is_empty());
}

#[test]
fn c047_a_requirement_runs_whatever_its_level() {
    let mut cx = PassContext { opt_level: 0, ..cx() };
    let names = ran(&mut cx, |log| {
        Pass::sequential([logs("b", log).requires(logs("d", log).opt_level(9))])
    });
    assert_eq!(names, ["d", "b"]);
}

/// TVM ignores what a requirement requires.
#[test]
fn c048_requirements_of_requirements_run() {
    let names = ran(&mut cx(), |log| {
        let d = logs("d", log).requires(logs("e", log));
        Pass::sequential([logs("b", log).requires(d)])
    });
    assert_eq!(names, ["e", "d", "b"]);
}

#[test]
fn c050_a_pass_that_is_off_brings_no_requirement() {
    let names = ran(&mut cx(), |log| {
        Pass::sequential([logs("b", log).opt_level(3).requires(logs("d", log)), logs("c", log)])
    });
    assert_eq!(names, ["c"]);
}

#[test]
fn c051_a_requirement_that_an_instrument_refuses_is_warned_of() {
    let mut watched = Watched::default();
    watched.add("a", None, Some("d"));
    let b = watched.pass("b").requires(watched.pass("d"));
    watched.call(&Pass::sequential([b])).unwrap();
    let events = told(&watched.log);
    assert!(events.contains(&"b".to_owned()) && !events.contains(&"d".to_owned()), "{events:?}");
    let (pass, report) = &watched.cx.reports[0];
    assert_eq!((&**pass, &*report.text), ("d", "an instrument refused it, though `b` requires it"));
}

/// TVM finds it when it is reached.
#[test]
fn c052_an_unknown_requirement_is_found_before_anything_runs() {
    let log = Log::default();
    let b = logs("b", &log).requires_name("Nope");
    let error = plan_of(&Pass::sequential([logs("a", &log), b])).unwrap_err();
    assert_eq!(error.to_string(), "no pass is called `Nope`");
    let error = error.to_diagnostic().to_string();
    assert!(error.contains("it is required by `b`"), "{error}");
}

/// TVM knows the registry's key alone.
#[test]
fn c053_c054_a_requirement_is_any_name_of_a_pass_and_has_its_default_options() {
    let registry = House::new("").registry();
    for name in ["test.Options", "Options"] {
        let log = Log::default();
        let sequence = Pass::sequential([logs("b", &log).requires_name(name)]);
        let settings = Default::default();
        let plan = tenon_compiler::passes::Plan::of(&registry, &sequence, &settings).unwrap();
        let first = plan.passes().next().unwrap();
        assert_eq!(first.name, "test.Options");
        assert_eq!(first.options.len(), 6);
        assert!(first.options.iter().all(|option| option.set_by.is_none()));
    }
}

/// A factory is a function that returns a pass, by its type; what is no single pass is refused.
#[test]
fn c055_a_requirement_is_one_pass() {
    let log = Log::default();
    let b = logs("b", &log).requires(Pass::sequential([logs("d", &log)]));
    let error = plan_of(&Pass::sequential([b])).unwrap_err();
    assert_eq!(error.to_string(), "a requirement is one pass, and `sequential` is a group");
}

/// TVM overflows the stack.
#[test]
fn c056_a_circle_is_an_error_that_lists_it() {
    let registry = House::new("").registry();
    let error = plan(&registry, "test.NoOp, test.RingA").unwrap_err();
    let ring = "passes require each other: test.RingA requires test.RingB requires test.RingA";
    assert_eq!(error.to_string(), ring);
}

#[test]
fn c057_what_is_called_brings_no_requirement() {
    assert_eq!(ran(&mut cx(), |log| logs("b", log).requires(logs("d", log))), ["b"]);
}

#[test]
fn a_chain_of_requirements_may_be_long() {
    let log = Log::default();
    let mut pass = logs("p0", &log);
    for number in 1..10_000 {
        pass = logs(&format!("p{number}"), &log).requires(pass);
    }
    let plan = plan_of(&Pass::sequential([pass])).unwrap();
    assert_eq!(plan.passes().count(), 10_000);
    assert_eq!(plan.passes().next().unwrap().name, "p0");
    tenon_compiler::passes::run(&no_plugins(), &plan, &module(SMALL), &mut cx()).unwrap();
}
