//! §2.2: sequences, and which of their passes run.

use std::process::Command;

use tenon_compiler::border::ReportLevel;
use tenon_compiler::ir::Context;
use tenon_compiler::passes::{GroupKind, Pass, PassContext, Step, plan, run};

use crate::support::{
    House, Log, SMALL, Watched, call, calls, changes, logs, module, plan_of, renamed, renames,
    text, told, twice,
};

fn at_level(opt_level: u8) -> PassContext {
    PassContext { opt_level, ..PassContext::default() }
}

/// The names of the passes of a sequence that run in a context.
#[track_caller]
fn ran(cx: &mut PassContext, make: impl FnOnce(&Log) -> Pass) -> Vec<String> {
    let log = Log::default();
    call(&make(&log), &module(SMALL), cx).expect("it runs");
    told(&log)
}

#[test]
fn c022_an_empty_sequence_changes_nothing() {
    let before = module(SMALL);
    let after = call(&Pass::sequential([]), &before, &mut at_level(2)).unwrap();
    assert!(after.is_identical(&before));
}

#[test]
fn c023_a_sequence_is_called_sequential_and_has_level_0() {
    let sequence = Pass::sequential([]);
    assert_eq!((sequence.name(), sequence.level()), ("sequential", 0));
    let plan = plan_of(&sequence).unwrap();
    assert!(plan.steps.iter().all(|step| !matches!(step, Step::Pass(_))), "it requires nothing");
}

#[test]
fn c024_the_second_pass_sees_what_the_first_one_added() {
    let adds = Pass::module("adds", |module, _| {
        let mut after = module.clone();
        let name = module.cx().symbol("log2");
        let main = module.get_str("main").expect("it is there");
        after.insert(name, renamed(main, "test.double", "test.triple")?);
        Ok(after)
    });
    let doubles = Pass::function("double", |function, _, _| twice(function));
    let sequence = Pass::sequential([adds, doubles]);
    let after = call(&sequence, &module(SMALL), &mut at_level(2)).unwrap();
    for name in ["main", "log2"] {
        let function = after.get_str(name).unwrap();
        assert_eq!(calls(function, "test.total").len(), 1, "{}", text(&after));
    }
}

#[test]
fn c025_c026_a_pass_runs_at_its_level_and_above() {
    for (cx, level, runs) in [(2, 3, false), (3, 3, true), (1, 1, true), (0, 0, true)] {
        let names =
            ran(&mut at_level(cx), |log| Pass::sequential([logs("p", log).opt_level(level)]));
        assert_eq!(!names.is_empty(), runs, "level {level} at {cx}");
    }
}

#[test]
fn c028_a_required_pass_runs_whatever_its_level() {
    let mut cx = PassContext { required: vec!["p".to_owned()], ..at_level(0) };
    assert_eq!(ran(&mut cx, |log| Pass::sequential([logs("p", log).opt_level(9)])), ["p"]);
}

#[test]
fn c029_c030_a_disabled_pass_does_not_run_even_where_it_is_required() {
    let list = || vec!["p".to_owned()];
    let mut cx = PassContext { disabled: list(), ..at_level(3) };
    assert_eq!(ran(&mut cx, |log| Pass::sequential([logs("p", log), logs("q", log)])), ["q"]);
    let mut cx = PassContext { disabled: list(), required: list(), ..at_level(3) };
    assert_eq!(ran(&mut cx, |log| Pass::sequential([logs("p", log), logs("q", log)])), ["q"]);
}

#[test]
fn c031_c032_what_is_called_runs_whatever_the_context_says() {
    assert_eq!(ran(&mut at_level(0), |log| logs("p", log).opt_level(9)), ["p"]);
    let mut cx = PassContext { disabled: vec!["p".to_owned()], ..at_level(2) };
    assert_eq!(ran(&mut cx, |log| logs("p", log)), ["p"]);
}

#[test]
fn c033_a_sequence_that_is_off_keeps_its_passes_from_running() {
    let nested = |log: &Log| {
        Pass::sequential([Pass::sequential([logs("p", log)]).opt_level(3), logs("q", log)])
    };
    assert_eq!(ran(&mut at_level(2), nested), ["q"]);
    assert_eq!(ran(&mut at_level(3), nested), ["p", "q"]);
}

#[test]
fn c034_c035_what_a_sequence_requires_counts_where_it_is_nested() {
    let inner = |log: &Log| Pass::sequential([logs("p", log)]).requires(logs("d", log));
    assert_eq!(ran(&mut at_level(2), |log| Pass::sequential([inner(log)])), ["d", "p"]);
    assert_eq!(ran(&mut at_level(2), inner), ["p"]);
}

#[test]
fn c036_sequences_are_disabled_by_their_name() {
    let mut cx = PassContext { disabled: vec!["sequential".to_owned()], ..at_level(2) };
    let names = ran(&mut cx, |log| {
        let named = Pass::sequential([logs("c", log)]).named("mine");
        Pass::sequential([
            Pass::sequential([logs("a", log)]),
            Pass::sequential([logs("b", log)]),
            named,
        ])
    });
    assert_eq!(names, ["c"]);
}

/// There is no null pass: what a name leads nowhere is found before anything runs.
#[test]
fn c038_a_pass_that_is_not_there_is_found_before_anything_runs() {
    let registry = House::new("").registry();
    let error = Pass::get(&registry, "test.NoSuchPass").unwrap_err();
    assert_eq!(error.to_string(), "no pass is called `test.NoSuchPass`");
    let error = plan(&registry, "test.NoOp, test.NoSuchPass").unwrap_err();
    assert_eq!(error.to_string(), "no pass is called `test.NoSuchPass`");
}

#[test]
fn c039_a_module_is_printed_between_passes() {
    let house = House::new("");
    std::fs::write(house.path("m.ir"), SMALL).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_tenon"))
        .args(["opt", "-p", "sequential(test.NoOp)", "--print-after"])
        .arg(house.path("m.ir"))
        .env("TENON_REGISTRY", house.path("registry.toml"))
        .output()
        .unwrap();
    let [stdout, stderr] = [output.stdout, output.stderr].map(|it| String::from_utf8(it).unwrap());
    assert!(stderr.starts_with("// after test.NoOp\nfn @main("), "{stderr}");
    assert_eq!(stdout, text(&module(SMALL)));
}

#[test]
fn c040_a_composite_runs_as_one_whatever_the_level_of_its_passes() {
    let composite = |log: &Log| Pass::composite("c", [logs("p", log).opt_level(2), logs("q", log)]);
    assert_eq!(ran(&mut at_level(0), composite), ["p", "q"]);
    assert_eq!(ran(&mut at_level(0), |log| Pass::sequential([composite(log)])), ["p", "q"]);
    // Its parts have no names in the lists; it has.
    let disabled = |name: &str| PassContext { disabled: vec![name.to_owned()], ..at_level(2) };
    let around = |log: &Log| Pass::sequential([composite(log), logs("r", log)]);
    let mut cx = disabled("p");
    assert_eq!(ran(&mut cx, around), ["p", "q", "r"]);
    let (pass, report) = &cx.reports[0];
    let text = "this does not turn it off in `c`, which runs as one pass: disable that";
    assert_eq!((&**pass, &*report.text), ("p", text));
    assert_eq!(ran(&mut disabled("c"), around), ["r"]);
}

#[test]
fn c042_a_pass_is_disabled_by_any_of_its_names() {
    let house = House::new("");
    let registry = house.registry();
    let named = plan(&registry, "test.Fail").unwrap();
    for name in ["test.Fail", "Fail"] {
        let mut cx = PassContext { disabled: vec![name.to_owned()], ..at_level(2) };
        run(&registry, &named, &module(SMALL), &mut cx).expect("it is off");
        assert!(cx.reports.is_empty(), "{:?}", cx.reports);
    }
}

#[test]
fn a_name_that_is_nobodys_is_warned_of_with_the_nearest() {
    let mut watched = Watched::default();
    watched.cx.disabled.push("fisrt".to_owned());
    watched.cx.required.push("stranger".to_owned());
    watched.call(&Pass::sequential([watched.pass("first")])).unwrap();
    let reports: Vec<&str> =
        watched.cx.reports.iter().map(|(_, report)| report.text.as_str()).collect();
    assert_eq!(
        reports,
        [
            "this turns nothing off: no pass is called `fisrt`; did you mean `first`?",
            "this turns nothing on: no pass is called `stranger`",
        ]
    );
}

#[test]
fn sequences_are_nested_to_any_depth() {
    let log = Log::default();
    let mut nested = logs("p", &log);
    for _ in 0..10_000 {
        nested = Pass::sequential([nested]);
    }
    let before = module(SMALL);
    let after = call(&nested, &before, &mut at_level(2)).unwrap();
    assert!(after.is_identical(&before));
    assert_eq!(told(&log), ["p"]);
}

#[test]
fn a_fixpoint_ends_when_a_round_changes_nothing() {
    let log = Log::default();
    let (one, two) = (
        renames("one", "test.double", "test.triple"),
        renames("two", "test.triple", "test.opposite"),
    );
    let fixpoint = Pass::group(GroupKind::Fixpoint { max: 9 }, [logs("round", &log), two, one]);
    let after = call(&fixpoint, &module(SMALL), &mut at_level(2)).unwrap();
    assert!(text(&after).contains("test.opposite"), "{}", text(&after));
    // exp to tanh, tanh to negative, and a round without a change.
    assert_eq!(told(&log).len(), 3);
    let never = Pass::group(GroupKind::Fixpoint { max: 4 }, [changes("c", &log)]);
    call(&never, &module(SMALL), &mut at_level(2)).unwrap();
    assert_eq!(told(&log).len(), 4);
}

#[test]
fn each_function_goes_through_a_group_and_sees_the_others_as_they_were() {
    let source = SMALL.to_owned() + &SMALL.replace("@main", "@other");
    let looks = Pass::function("looks", |function, module, run| {
        let own = calls(function, "test.triple").len();
        let others: usize = module.iter().map(|(_, other)| calls(other, "test.triple").len()).sum();
        run.report(ReportLevel::Note, format!("{own} {others}"));
        Ok(function.clone())
    });
    let passes = [renames("rename", "test.double", "test.triple"), looks];
    let reports = |pass: &Pass| {
        let mut cx = at_level(2);
        call(pass, &module(&source), &mut cx).unwrap();
        cx.reports.into_iter().map(|(_, report)| report.text).collect::<Vec<_>>()
    };
    assert_eq!(reports(&Pass::sequential(passes.clone())), ["1 2", "1 2"]);
    assert_eq!(reports(&Pass::group(GroupKind::Functions, passes)), ["1 0", "1 0"]);
}

#[test]
fn a_group_over_functions_holds_no_pass_over_modules() {
    let log = Log::default();
    let group = Pass::group(GroupKind::Functions, [logs("p", &log)]);
    let error = plan_of(&group).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`p` runs over the module, and `func` holds passes over functions"
    );
    let group = Pass::group(GroupKind::Functions, [Pass::sequential([])]);
    let error = plan_of(&group).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`sequential` is a group, and `func` holds passes over functions"
    );
}
