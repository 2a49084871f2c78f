//! `ops`: the operators that plugins offer. No plugin's code runs here.

use clap::Subcommand;
use serde_json::{Value, json};

use super::Global;
use super::complete;
use super::output::{Failure, labelled, print, print_json, table};
use super::passes::{cell, more_text};
use super::rules::{facets_of, rule_cells, rule_json};
use tenon_compiler::registry::{
    AttrRecord, Kind, OpOffer, OpRecord, PluginEntry, Registry, RuleRecord,
};

#[derive(Subcommand)]
pub(super) enum OpsCommand {
    /// List all operators
    List,
    /// Show what an operator says of itself
    Show {
        /// Its name, or an alias
        #[arg(add = complete::ops())]
        name: String,
        /// As a page of documentation
        #[arg(long)]
        markdown: bool,
    },
}

pub(super) fn ops(global: &Global, command: &OpsCommand) -> Result<(), Failure> {
    let registry = global.open_registry()?;
    match command {
        OpsCommand::List => {
            let mut all: Vec<(&PluginEntry, &OpOffer)> = registry.ops().collect();
            all.sort_by(|(_, a), (_, b)| a.name().cmp(b.name()));
            if global.json {
                let facets = facets_of(&registry);
                let all = all.iter().map(|(entry, op)| {
                    let op = op.record().map_err(|broken| {
                        Failure::new(format!("{}: broken manifest: {broken}", entry.path.display()))
                    })?;
                    Ok(op_json(&registry, &facets, entry, op))
                });
                return print_json(&all.collect::<Result<Vec<Value>, Failure>>()?);
            }
            let rows: Vec<Vec<String>> = all
                .iter()
                .map(|(_, op)| {
                    let about = match op.aliases() {
                        [] => op.summary().to_owned(),
                        aliases => format!("{} Also {}", op.summary(), aliases.join(", ")),
                    };
                    vec![op.name().to_owned(), about]
                })
                .collect();
            print(table(&rows))
        }
        OpsCommand::Show { name, markdown } => {
            let (entry, op) = find(&registry, name)?;
            match (markdown, global.json) {
                (true, _) => print(op_markdown(&registry, entry, op)),
                (false, true) => print_json(&op_json(&registry, &facets_of(&registry), entry, op)),
                (false, false) => print(op_text(&registry, entry, op)),
            }
        }
    }
}

fn find<'r>(
    registry: &'r Registry,
    name: &str,
) -> Result<(&'r PluginEntry, &'r OpRecord), Failure> {
    let own = tenon_compiler::ops::is_own(name);
    registry.find_op(name).map_err(|error| match own {
        true => Failure::new(format!("`{name}` is the host's own; docs/vm.md tells of these")),
        false => Failure::new(error.to_string()),
    })
}

fn op_json(
    registry: &Registry,
    facets: &[(String, usize)],
    entry: &PluginEntry,
    op: &OpRecord,
) -> Value {
    let rules = rules_of(registry, facets, op);
    let rules = rules.iter().map(|(entry, rule)| rule_json(registry, entry, rule));
    json!({
        "op": op,
        "plugin": entry.manifest.plugin.id,
        "version": entry.manifest.plugin.version,
        "file": entry.path.display().to_string(),
        "rules": rules.collect::<Vec<_>>(),
    })
}

/// The rules about an operator, by facet.
fn rules_of<'r>(
    registry: &'r Registry,
    facets: &[(String, usize)],
    op: &OpRecord,
) -> Vec<(&'r PluginEntry, &'r RuleRecord)> {
    facets.iter().flat_map(|(facet, _)| registry.rules_for(facet, &op.name)).collect()
}

/// What a manifest says of an operator besides its name, its attributes and its documentation.
fn facts(op: &OpRecord) -> Vec<(&'static str, String)> {
    let args = match op.max_args {
        Some(max) if max == op.min_args => max.to_string(),
        Some(max) => format!("{} to {max}", op.min_args),
        None => format!("{} or more", op.min_args),
    };
    vec![
        ("arguments", args),
        ("effect", spelled(op.effect)),
        ("pattern", spelled(op.pattern)),
        ("more", more_text(&op.more)),
    ]
}

/// As a manifest spells it.
fn spelled(name: impl serde::Serialize) -> String {
    let value = serde_json::to_value(name).unwrap_or_default();
    value.as_str().unwrap_or_default().to_owned()
}

fn default_of(attr: &AttrRecord) -> String {
    match &attr.default {
        Some(Value::String(text)) if attr.kind == Kind::Str => format!("{text:?}"),
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
        None if attr.optional => "(absent)".to_owned(),
        None => "(required)".to_owned(),
    }
}

fn range_of(attr: &AttrRecord) -> String {
    match (attr.min, attr.max) {
        _ if !attr.one_of.is_empty() => attr.one_of.join(", "),
        (Some(min), Some(max)) => format!("{min} to {max}"),
        (Some(min), None) => format!("{min} or more"),
        (None, Some(max)) => format!("{max} or less"),
        (None, None) => String::new(),
    }
}

fn op_text(registry: &Registry, entry: &PluginEntry, op: &OpRecord) -> String {
    let plugin = &entry.manifest.plugin;
    let mut text = labelled(&[
        ("operator", op.name.clone()),
        ("aliases", op.aliases.join(", ")),
        ("plugin", format!("{} {} ({})", plugin.id, plugin.version, entry.path.display())),
    ]);
    text.push_str(&labelled(&facts(op)));
    if !op.attrs.is_empty() {
        let header = ["  attribute", "kind", "default", "range", ""].map(str::to_owned).to_vec();
        let rows = op.attrs.iter().map(|attr| {
            let name = format!("  {}", attr.name);
            vec![name, spelled(attr.kind), default_of(attr), range_of(attr), attr.help.clone()]
        });
        let rows: Vec<Vec<String>> = std::iter::once(header).chain(rows).collect();
        text.push_str(&format!("\n{}", table(&rows)));
    }
    let rules = rules_of(registry, &facets_of(registry), op);
    if !rules.is_empty() {
        let header = ["  rule", "plugin", "versions", "", ""].map(str::to_owned).to_vec();
        let rows = rules.iter().map(|(entry, rule)| {
            let mut row = vec![format!("  {}", rule.facet)];
            row.extend(rule_cells(registry, entry, rule));
            row
        });
        let rows: Vec<Vec<String>> = std::iter::once(header).chain(rows).collect();
        text.push_str(&format!("\n{}", table(&rows)));
    }
    text.push_str(&format!("\n{}\n", op.doc));
    if !op.header.is_empty() {
        text.push_str(&format!("\n{}\n", op.header));
    }
    text
}

/// A page on an operator, of what its manifest says: the same wherever the plugin lies.
fn op_markdown(registry: &Registry, entry: &PluginEntry, op: &OpRecord) -> String {
    let mut text = format!("# {}\n\n{}\n\n| | |\n|---|---|\n", op.name, op.doc);
    let plugin = entry.manifest.plugin.id.clone();
    let rows = [("plugin", plugin), ("aliases", op.aliases.join(", "))].into_iter();
    for (label, value) in rows.chain(facts(op)).filter(|(_, value)| !value.is_empty()) {
        text.push_str(&format!("| {label} | {} |\n", cell(&value)));
    }
    if !op.attrs.is_empty() {
        text.push_str(
            "\n## Attributes\n\n| attribute | kind | default | range | |\n|---|---|---|---|---|\n",
        );
        for attr in &op.attrs {
            let (kind, default) = (spelled(attr.kind), cell(&default_of(attr)));
            let (name, range, help) = (&attr.name, cell(&range_of(attr)), cell(&attr.help));
            text.push_str(&format!("| `{name}` | {kind} | `{default}` | {range} | {help} |\n"));
        }
    }
    let rules = rules_of(registry, &facets_of(registry), op);
    if !rules.is_empty() {
        text.push_str("\n## Rules\n\n| facet | plugin | |\n|---|---|---|\n");
        for (entry, rule) in rules {
            let (facet, id) = (&rule.facet, &entry.manifest.plugin.id);
            text.push_str(&format!("| {facet} | {id} | {} |\n", cell(rule.summary())));
        }
    }
    if !op.header.is_empty() {
        text.push_str(&format!("\n## Example\n\n{}\n", op.header));
    }
    text
}
