//! Plans as values: a plan prints as the text of a pipeline, which gives the same plan again.

use proptest::prelude::*;
use tenon_compiler::ir::PHASES;
use tenon_compiler::passes::{Pass, Plan, Reason, Step, plan};
use tenon_compiler::registry::Registry;

use crate::support::{House, Log, logs, plan_of};

/// What a plan does, apart from who asked for it and where.
fn steps(plan: &Plan) -> Vec<String> {
    let step = |step: &Step| match step {
        Step::Phase(phase) => format!("enter {phase}"),
        Step::Begin(group) => {
            let pass = &group.step.pass;
            format!("{:?} {} {} to {}", group.kind, pass.name(), pass.level(), group.end)
        }
        Step::End(begin) => format!("end of {begin}"),
        Step::Pass(pass) => {
            let options: Vec<String> =
                pass.options.iter().map(|it| format!("{}={}", it.name, it.value)).collect();
            let is_required = matches!(pass.reason, Reason::Required { .. });
            format!("{} {} {is_required}", pass.name, options.join(" "))
        }
    };
    plan.steps.iter().map(step).collect()
}

fn round_trips(registry: &Registry, text: &str) {
    let first = plan(registry, text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let printed = first.to_string();
    let second = plan(registry, &printed).unwrap_or_else(|error| panic!("{printed}: {error}"));
    assert_eq!(steps(&second), steps(&first), "{text}");
    assert_eq!(second.to_string(), printed);
}

/// An element of a pipeline.
fn element() -> impl Strategy<Value = String> {
    let options = prop_oneof![
        (-5i64..=5).prop_map(|count| format!("count={count}")),
        any::<bool>().prop_map(|on| format!("on={on}")),
        (0.0f64..1e9).prop_map(|scale| format!("scale={scale:?}")),
        prop::sample::select(vec!["mode=fast", "mode=\"small\"", "names=[x, y]", "sizes=[1]"])
            .prop_map(str::to_owned),
    ];
    let pass = prop_oneof![
        prop::sample::select(vec!["test.NoOp", "Fail", "test.Needs", "named"])
            .prop_map(str::to_owned),
        prop::collection::vec(options, 0..4)
            .prop_map(|all| format!("Options{{{}}}", all.join(","))),
    ];
    // Only what works on functions stands in `func`.
    let func = prop::collection::vec(pass.clone(), 0..3)
        .prop_map(|all| format!("func({})", all.join(",")));
    let leaf = prop_oneof![3 => pass, 1 => func, 1 => Just("test.ModulePanic".to_owned())];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let all = prop::collection::vec(inner, 0..4).prop_map(|all| all.join(" , "));
        let tail = prop::sample::select(vec![
            ("fixpoint", ""),
            ("fixpoint", "{max=3}"),
            ("sequential", ""),
            ("sequential", "{name=\"a, \\\"b\\\"\"}"),
            ("composite", "{opt_level=2}"),
        ]);
        (all, tail).prop_map(|(all, (kind, options))| format!("{kind}({all}){options}"))
    })
}

/// Elements, with phases in their order between them.
fn pipeline() -> impl Strategy<Value = String> {
    let part = prop::collection::vec(element(), 0..3);
    prop::collection::vec((part, 0..4usize), PHASES.len()).prop_map(|parts| {
        let mut all = Vec::new();
        for (phase, (elements, how)) in PHASES.iter().zip(parts) {
            match how {
                0 => all.push(format!("phase({phase})")),
                1 => all.push(format!("enter({phase})")),
                _ => {}
            }
            all.extend(elements);
        }
        all.join(", ")
    })
}

const REGISTRY: &str = "[pipelines.named]\npasses = [\"test.NoOp\", \"func(Fail, Options{count=2})\"]\n\
                        [phases.fuse]\npasses = [\"test.NoOp\", \"fixpoint(test.Fail, test.Needs){max=2}\"]\n\
                        [passes.\"test.Options\".options]\nscale = 0.5\n";

#[test]
fn a_plan_prints_as_what_gives_it_again() {
    let house = House::new(REGISTRY);
    let registry = house.registry();
    // Within `func` a named pipeline would bring a group.
    let strategy = pipeline().prop_filter("no group in func", |text| {
        !text
            .split("func(")
            .skip(1)
            .any(|rest| rest.split(')').next().unwrap_or("").contains("named"))
    });
    let config = ProptestConfig { cases: 512, failure_persistence: None, ..Default::default() };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    runner
        .run(&strategy, |text| {
            round_trips(&registry, &text);
            Ok(())
        })
        .unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn what_others_require_is_planned_and_not_printed() {
    let house = House::new(REGISTRY);
    let plan = plan(&house.registry(), "enter(ingest), test.Needs").unwrap();
    assert_eq!(plan.passes().count(), 2);
    assert_eq!(plan.to_string(), "enter(ingest), test.Needs");
}

#[test]
fn a_sequence_of_the_api_prints_like_one_of_a_text() {
    let log = Log::default();
    let inner = Pass::sequential([logs("b", &log)]).named("in").opt_level(1);
    let plan = plan_of(&Pass::sequential([logs("a", &log), inner])).unwrap();
    assert_eq!(plan.to_string(), "sequential(a, sequential(b){name=\"in\", opt_level=1})");
}

#[test]
fn what_is_left_of_a_plan_is_a_plan() {
    let house = House::new(REGISTRY);
    let registry = house.registry();
    let text = "test.NoOp, fixpoint(test.NoOp, func(Fail, Options{count=2}), test.Needs), Fail, enter(fuse), Fail";
    let whole = plan(&registry, text).unwrap();
    let position = |name: &str, nth: usize| {
        let is_it = |step: &Step| matches!(step, Step::Pass(pass) if pass.name == name);
        let mut all = whole.steps.iter().enumerate().filter(|(_, step)| is_it(step));
        all.nth(nth).expect("it is there").0
    };
    let suffix = |number: usize| whole.suffix(number).to_string();
    assert_eq!(suffix(position("test.Fail", 1)), "test.Fail");
    assert_eq!(
        suffix(position("test.Options", 0)),
        "func(test.Options{count=2, scale=0.5}), test.Needs, test.Fail"
    );
    let all = "test.NoOp, func(test.Fail, test.Options{count=2, scale=0.5}), test.Needs, test.Fail";
    assert_eq!(suffix(position("test.NoOp", 1)), all);
    let steps = whole.suffix(position("test.NoOp", 1));
    round_trips(&registry, &steps.to_string());
}
