//! `--explain-schedules`: how the programs of a module were scheduled, and why.

use serde_json::{Value, json};
use tenon_plugin_api::ir::{AttrsView, TermView};

use tenon_compiler::executable::Scheduled;
use tenon_compiler::ir::{Context, Function, Module};

/// What is said of the schedules of programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Explained {
    /// The rules that were chosen.
    Chosen,
    /// Those, and the rules that were asked before and did not match.
    Declined,
}

/// Says of each program which rule scheduled it, with which knobs, why, what that is thought to cost, and which rules are told to have
/// declined it.
pub(super) fn text(module: &Module) -> String {
    programs(module).map(|(name, program)| program_text(name, program)).collect()
}

/// The same for programs.
pub(super) fn json(module: &Module) -> Value {
    programs(module).map(|(name, program)| program_json(name, program)).collect()
}

fn programs(module: &Module) -> impl Iterator<Item = (&str, &Function)> {
    let all = module.iter().filter(|(_, function)| function.is_prim());
    all.map(|(name, function)| (module.cx().terms().str(name), &**function))
}

fn attrs(program: &Function) -> AttrsView<'_> {
    let body = program.view();
    program.cx().terms().attrs(body.attrs(body.root()))
}

fn program_text(name: &str, program: &Function) -> String {
    let attrs = attrs(program);
    let computes = attrs.str("op_name").map_or(String::new(), |op| format!(" computes {op}"));
    let mut text = format!("@{name}{computes}\n");
    let mut row = |label: &str, value: String| {
        if !value.is_empty() {
            text.push_str(&format!("  {label:10} {value}\n"));
        }
    };
    let Some(told) = Scheduled::of(program) else {
        let how = match attrs.str("trace") {
            Some(_) => "a trace of its own",
            None => "none; it runs as it is written",
        };
        row("rule", how.to_owned());
        declined(program).for_each(|why| row("declined", why.to_owned()));
        return text;
    };
    row("rule", told.rule.clone());
    row("knobs", told.knobs_text());
    row("because", told.because.clone());
    let costs = [(told.operations, "operations"), (told.bytes, "bytes"), (told.cycles, "cycles")];
    let costs = costs.into_iter().filter_map(|(number, unit)| Some(counted(number?, unit)));
    row("predicted", costs.collect::<Vec<_>>().join(", "));
    declined(program).for_each(|why| row("declined", why.to_owned()));
    text
}

/// The rules that did not match, each with its reason.
fn declined(program: &Function) -> impl Iterator<Item = &str> {
    let all = match attrs(program).get("declined") {
        Some(TermView::List(all)) => all,
        _ => &[],
    };
    all.iter().map(|&why| program.cx().terms().str(why))
}

fn program_json(name: &str, program: &Function) -> Value {
    let attrs = attrs(program);
    let told = Scheduled::of(program);
    let knobs = told.iter().flat_map(|told| &told.knobs);
    let knobs = knobs.map(|(name, value)| (name.clone(), Value::from(*value)));
    json!({
        "program": name,
        "computes": attrs.str("op_name"),
        "rule": told.as_ref().map(|told| &told.rule),
        "knobs": knobs.collect::<serde_json::Map<_, Value>>(),
        "because": told.as_ref().map(|told| &told.because),
        "operations": told.as_ref().and_then(|told| told.operations),
        "bytes": told.as_ref().and_then(|told| told.bytes),
        "cycles": told.as_ref().and_then(|told| told.cycles),
        "trace": attrs.str("trace"),
        "declined": declined(program).collect::<Vec<_>>(),
    })
}

/// A number in thousands, millions and so on, to three digits.
fn counted(number: i64, unit: &str) -> String {
    let scales = [(1e12, " T"), (1e9, " G"), (1e6, " M"), (1e3, " k")];
    let number = number as f64;
    match scales.into_iter().find(|(scale, _)| number >= *scale) {
        Some((scale, prefix)) => {
            let value = number / scale;
            let digits = if value < 10.0 { 2 } else { usize::from(value < 100.0) };
            format!("{value:.digits$}{prefix} {unit}")
        }
        None => format!("{number} {unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::counted;

    #[test]
    fn numbers_have_three_digits() {
        for (number, text) in [
            (0, "0 bytes"),
            (999, "999 bytes"),
            (1_234, "1.23 k bytes"),
            (12_345, "12.3 k bytes"),
            (123_456_789, "123 M bytes"),
            (7_994_973_000, "7.99 G bytes"),
        ] {
            assert_eq!(counted(number, "bytes"), text);
        }
    }
}
