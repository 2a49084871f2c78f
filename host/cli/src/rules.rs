//! `rules`: what plugins know of operators besides their meaning. No plugin's code runs here.

use std::collections::BTreeMap;

use clap::Subcommand;
use serde_json::{Value, json};

use super::Global;
use super::complete;
use super::output::{Failure, print, print_json, table, warn_of_plugins};
use tenon_compiler::registry::{PluginEntry, Registry, RuleRecord};
use tenon_compiler::suggest::nearest;

#[derive(Subcommand)]
pub(super) enum RulesCommand {
    /// List all rules, those of one key in the order in which they are asked
    List {
        /// Those of one facet alone
        #[arg(long, add = complete::facets())]
        facet: Option<String>,
    },
}

pub(super) fn rules(global: &Global, command: &RulesCommand) -> Result<(), Failure> {
    let registry = global.open_registry()?;
    warn_of_plugins(&registry);
    let RulesCommand::List { facet } = command;
    let mut all = registry.rule_records();
    if let Some(facet) = facet {
        let facets = facets_of(&registry);
        if !facets.iter().any(|(known, _)| known == facet) {
            let near = nearest(facet, facets.iter().map(|(known, _)| known.as_str()));
            let near = near.map_or(String::new(), |near| format!(": did you mean `{near}`?"));
            return Err(Failure::new(format!("no rule is of the facet `{facet}`{near}")));
        }
        all.retain(|(_, record)| *record.facet == **facet);
    }
    if global.json {
        let all: Vec<Value> =
            all.iter().map(|(entry, rule)| rule_json(&registry, entry, rule)).collect();
        return print_json(&all);
    }
    let rows: Vec<Vec<String>> = all
        .iter()
        .map(|(entry, rule)| {
            let mut row = vec![rule.facet.to_string(), rule.key.clone()];
            row.extend(rule_cells(&registry, entry, rule));
            row
        })
        .collect();
    print(table(&rows))
}

/// The facets of which there are rules, with their number.
pub(super) fn facets_of(registry: &Registry) -> Vec<(String, usize)> {
    let mut facets: BTreeMap<String, usize> = BTreeMap::new();
    for (_, record) in registry.rule_records() {
        *facets.entry(record.facet.to_string()).or_default() += 1;
    }
    facets.into_iter().collect()
}

pub(super) fn rule_json(registry: &Registry, entry: &PluginEntry, rule: &RuleRecord) -> Value {
    json!({
        "rule": rule,
        "plugin": entry.manifest.plugin.id,
        "version": entry.manifest.plugin.version,
        "file": entry.path.display().to_string(),
        "chosen": registry.is_chosen(entry, rule),
        "conflict": registry.rule_conflict(&rule.facet, &rule.key, None),
    })
}

/// What is told of a rule besides its facet and its key: who gives it, how much it is worth, what it does.
pub(super) fn rule_cells(
    registry: &Registry,
    entry: &PluginEntry,
    rule: &RuleRecord,
) -> Vec<String> {
    let versions = match (rule.since, rule.until) {
        (None, None) => String::new(),
        (Some(since), None) => format!("since {since}"),
        (None, Some(until)) => format!("until {until}"),
        (Some(since), Some(until)) => format!("{since} to {until}"),
    };
    let benefit = match (registry.is_chosen(entry, rule), rule.benefit) {
        (true, _) => "chosen".to_owned(),
        (false, benefit) => format!("benefit {benefit}"),
    };
    let conflict = registry.rule_conflict(&rule.facet, &rule.key, None);
    let mut about = conflict.unwrap_or_else(|| rule.summary().to_owned());
    let knobs = rule.knobs.iter();
    let knobs: Vec<String> =
        knobs.map(|knob| format!("{} {}..={}", knob.name, knob.least, knob.most)).collect();
    if !knobs.is_empty() {
        about.push_str(&format!(" (knobs: {})", knobs.join(", ")));
    }
    vec![entry.manifest.plugin.id.clone(), versions, benefit, about]
}

/// What the rules of facets are, in a few words: how many, and from whom.
pub(super) fn told_of(registry: &Registry, facets: &[String]) -> String {
    let told = facets.iter().map(|facet| {
        let mut plugins: BTreeMap<&str, usize> = BTreeMap::new();
        for (entry, record) in registry.rule_records() {
            if *record.facet == **facet {
                *plugins.entry(entry.manifest.plugin.id.as_str()).or_default() += 1;
            }
        }
        let plugins: Vec<String> =
            plugins.iter().map(|(id, count)| format!("{count} of {id}")).collect();
        match plugins.is_empty() {
            true => format!("{facet} (none)"),
            false => format!("{facet} ({})", plugins.join(", ")),
        }
    });
    told.collect::<Vec<_>>().join(", ")
}
