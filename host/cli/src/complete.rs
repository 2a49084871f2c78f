//! What a shell offers at the tabulator: `source <(COMPLETE=bash tenon)`, and the same for zsh, fish, elvish and
//! PowerShell. No plugin's code runs here.

use std::ffi::OsStr;

use clap_complete::engine::{ArgValueCandidates, ArgValueCompleter, CompletionCandidate};

use tenon_compiler::diagnostics::count_of;
use tenon_compiler::ir::PHASES;
use tenon_compiler::passes::Settings;
use tenon_compiler::printable::printable_line;
use tenon_compiler::registry::{OptionRecord, PassRecord, Registry};
use tenon_compiler::target::named as named_targets;

/// The names of passes.
pub(super) fn passes() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let Some(registry) = registry() else { return Vec::new() };
        registry.passes().map(|id| of_pass("", registry.record(id))).collect()
    })
}

/// The names of passes, behind those that are there already.
pub(super) fn pass_list() -> ArgValueCompleter {
    completer(|registry, text| {
        let (before, word) = split_at(text, text.rfind(',').map_or(0, |comma| comma + 1));
        named(registry, before, word)
    })
}

/// A pipeline's text.
pub(super) fn pipeline() -> ArgValueCompleter {
    completer(|registry, text| match text.rfind(['{', '}']) {
        Some(brace) if text[brace..].starts_with('{') => {
            let pass = text[..brace].rsplit([',', '(', ' ']).next().unwrap_or("");
            options(registry, pass, text, brace + 1)
        }
        _ => elements(registry, text),
    })
}

/// `KEY=VALUE, …` of the configuration.
pub(super) fn config() -> ArgValueCompleter {
    completer(|registry, text| {
        let (before, word) = split_at(text, text.rfind([',', ' ']).map_or(0, |comma| comma + 1));
        let declared = Settings::declared(registry);
        match word.split_once('=') {
            None => declared
                .iter()
                .filter(|option| option.key.starts_with(word))
                .map(|option| candidate(before, &format!("{}=", option.key), &option.record.help))
                .collect(),
            Some((key, value)) => {
                let option = declared.iter().find(|option| option.key == key);
                let before = format!("{before}{key}=");
                option.map_or(Vec::new(), |option| values(&option.record, &before, value))
            }
        }
    })
}

fn registry() -> Option<Registry> {
    Some(Registry::from_config(super::config_of(&[]).ok()?))
}

fn completer(
    complete: impl Fn(&Registry, &str) -> Vec<CompletionCandidate> + Send + Sync + 'static,
) -> ArgValueCompleter {
    ArgValueCompleter::new(move |current: &OsStr| match (current.to_str(), registry()) {
        (Some(text), Some(registry)) => complete(&registry, text),
        _ => Vec::new(),
    })
}

fn split_at(text: &str, at: usize) -> (&str, &str) {
    let spaces = text[at..].len() - text[at..].trim_start().len();
    text.split_at(at + spaces)
}

fn candidate(before: &str, word: &str, help: &str) -> CompletionCandidate {
    let help = (!help.is_empty()).then(|| printable_line(help).into_owned().into());
    CompletionCandidate::new(format!("{before}{word}")).help(help)
}

fn of_pass(before: &str, record: &PassRecord) -> CompletionCandidate {
    candidate(before, &record.name, record.summary())
}

/// The names of operators.
pub(super) fn ops() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let Some(registry) = registry() else { return Vec::new() };
        let all = registry.ops();
        all.map(|(_, op)| candidate("", op.name(), op.summary())).collect()
    })
}

/// The facets of rules.
pub(super) fn facets() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let Some(registry) = registry() else { return Vec::new() };
        let all = super::rules::facets_of(&registry).into_iter();
        all.map(|(facet, count)| candidate("", &facet, &count_of(count, "rule"))).collect()
    })
}

/// The targets that have names.
pub(super) fn targets() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let listed = named_targets().map(|line| candidate("", line.name, line.about));
        [candidate("", "native", "this machine")].into_iter().chain(listed).collect()
    })
}

/// The passes whose name, or the last part of it, begins with a word.
fn named(registry: &Registry, before: &str, word: &str) -> Vec<CompletionCandidate> {
    let mut found = Vec::new();
    for record in registry.passes().map(|id| registry.record(id)) {
        let short = record.name.rsplit('.').next().unwrap_or("");
        if record.name.starts_with(word) {
            found.push(of_pass(before, record));
        } else if short.starts_with(word) && registry.find(short).is_ok() {
            found.push(candidate(before, short, record.summary()));
        }
    }
    found
}

/// What may follow a comma or a parenthesis of a pipeline.
fn elements(registry: &Registry, text: &str) -> Vec<CompletionCandidate> {
    let (before, word) = split_at(text, text.rfind([',', '(', ' ']).map_or(0, |at| at + 1));
    if before.ends_with("phase(") || before.ends_with("enter(") {
        let phases = PHASES.iter().filter(|phase| phase.starts_with(word));
        return phases.map(|phase| candidate(before, &format!("{phase})"), "")).collect();
    }
    let pipelines = registry.config().pipelines.keys().map(|name| (name.as_str(), "a pipeline"));
    let groups = [
        ("func(", "each function through all of these passes"),
        ("fixpoint(", "until a round changes nothing"),
        ("phase(", "all passes of a phase"),
        ("enter(", "the module enters a phase"),
    ];
    let words = pipelines.chain(groups).filter(|(name, _)| name.starts_with(word));
    let words = words.map(|(name, help)| candidate(before, name, help));
    named(registry, before, word).into_iter().chain(words).collect()
}

/// The options of a pass, or the values of one, from byte `from` on.
fn options(registry: &Registry, pass: &str, text: &str, from: usize) -> Vec<CompletionCandidate> {
    let Ok(id) = registry.find(pass) else { return Vec::new() };
    let start = text[from..].rfind(',').map_or(from, |comma| from + comma + 1);
    let (before, word) = split_at(text, start);
    let declared = &registry.record(id).options;
    match word.split_once('=') {
        None => declared
            .iter()
            .filter(|option| option.name.starts_with(word))
            .map(|option| candidate(before, &format!("{}=", option.name), &option.help))
            .collect(),
        Some((name, value)) => {
            let option = declared.iter().find(|option| option.name == name);
            let before = format!("{before}{name}=");
            option.map_or(Vec::new(), |option| values(option, &before, value))
        }
    }
}

fn values(option: &OptionRecord, before: &str, word: &str) -> Vec<CompletionCandidate> {
    let truths = ["true".to_owned(), "false".to_owned()];
    let known = match option.ty.to_string().as_str() {
        "bool" => &truths[..],
        _ => &option.one_of,
    };
    known
        .iter()
        .filter(|value| value.starts_with(word))
        .map(|value| candidate(before, value, ""))
        .collect()
}
