//! `passes`: what plugins offer. No plugin's code runs here.

use std::collections::BTreeMap;

use clap::Subcommand;
use serde_json::{Map, Value, json};

use super::Global;
use super::complete;
use super::output::{Failure, labelled, place_json, print, print_json, table};
use super::rules::told_of;
use tenon_compiler::passes::{StepOption, configured_options};
use tenon_compiler::registry::{
    Enable, OptionRecord, PassConfig, PassId, PassRecord, Registry, Requirement, Set,
};

#[derive(Subcommand)]
pub(super) enum PassesCommand {
    /// List all passes
    List,
    /// Show what a pass says of itself, and what the registry says of it
    Show {
        /// Its id, an alias, or the last part of its id
        #[arg(add = complete::passes())]
        name: String,
        /// As a page of documentation
        #[arg(long)]
        markdown: bool,
    },
}

pub(super) fn passes(global: &Global, command: &PassesCommand) -> Result<(), Failure> {
    let registry = global.open_registry()?;
    match command {
        PassesCommand::List => {
            if global.json {
                let passes: Vec<_> = registry.passes().map(|id| pass_json(&registry, id)).collect();
                return print_json(&passes);
            }
            let rows: Vec<Vec<String>> = registry
                .passes()
                .map(|id| {
                    let record = registry.record(id);
                    let state = if registry.is_enabled(id) { "" } else { "(off)" };
                    let about = match record.aliases.as_slice() {
                        [] => record.summary().to_owned(),
                        aliases => format!("{} Also {}", record.summary(), aliases.join(", ")),
                    };
                    vec![record.name.clone(), state.to_owned(), about]
                })
                .collect();
            print(table(&rows))
        }
        PassesCommand::Show { name, markdown: true } => {
            print(pass_markdown(&registry, registry.find(name)?))
        }
        PassesCommand::Show { name, markdown: false } => {
            let id = registry.find(name)?;
            let options = configured_options(&registry, id)?;
            match global.json {
                true => print_json(&pass_json(&registry, id)),
                false => print(pass_text(&registry, id, &options)),
            }
        }
    }
}

fn pass_json(registry: &Registry, id: PassId) -> Value {
    let entry = registry.plugin_of(id);
    json!({
        "pass": registry.record(id),
        "plugin": entry.manifest.plugin.id,
        "version": entry.manifest.plugin.version,
        "file": entry.path.display().to_string(),
        "enabled": registry.is_enabled(id),
        "settings": registry.config_of(id).map(settings_json),
    })
}

/// What the registry's files set for a pass, each value with its place.
pub(super) fn settings_json(config: &PassConfig) -> Value {
    fn set<T>(set: &Set<T>, value: impl Fn(&T) -> Value) -> Value {
        let mut json = place_json(&set.place);
        json["value"] = value(&set.value);
        json
    }
    let text = |text: &String| Value::from(text.as_str());
    let options: Map<String, Value> = config
        .options
        .iter()
        .map(|(name, value)| (name.clone(), set(value, |value| Value::from(value))))
        .collect();
    json!({
        "enabled": config.enabled.as_ref().map(|it| set(it, |&value| value.into())),
        "provider": config.provider.as_ref().map(|it| set(it, text)),
        "version": config.version.as_ref().map(|it| set(it, |range| range.to_string().into())),
        "sha256": config.sha256.as_ref().map(|it| set(it, text)),
        "isolate": config.isolate.as_ref().map(|it| set(it, |&value| value.into())),
        "time_limit": config.time_limit.as_ref().map(|it| set(it, |&value| value.into())),
        "memory_limit": config.memory_limit.as_ref().map(|it| set(it, |&value| value.into())),
        "options": options,
    })
}

/// The same in words.
pub(super) fn settings_text(config: &PassConfig) -> Vec<String> {
    let mut settings = Vec::new();
    if let Some(set) = &config.enabled {
        let word = if set.value { "enabled" } else { "disabled" };
        settings.push(format!("{word} in {}", set.place));
    }
    settings.extend(config.provider.iter().map(|it| format!("from {} by {}", it.value, it.place)));
    settings
        .extend(config.version.iter().map(|it| format!("version {} by {}", it.value, it.place)));
    settings.extend(config.sha256.iter().map(|it| format!("sha256 {} by {}", it.value, it.place)));
    if let Some(set) = &config.isolate {
        let word = if set.value { "isolated" } else { "not isolated" };
        settings.push(format!("{word} by {}", set.place));
    }
    let limit = config.time_limit.iter();
    settings.extend(limit.map(|it| format!("time limit {} s by {}", it.value, it.place)));
    let limit = config.memory_limit.iter();
    settings.extend(limit.map(|it| format!("memory limit {} MiB by {}", it.value, it.place)));
    let options = config.options.iter();
    settings.extend(options.map(|(name, it)| format!("{name} = {} by {}", it.value, it.place)));
    settings
}

fn pass_text(registry: &Registry, id: PassId, options: &[StepOption]) -> String {
    let record = registry.record(id);
    let entry = registry.plugin_of(id);
    let plugin = &entry.manifest.plugin;
    let enabled = match (registry.enabled_by(id), entry.enable) {
        (Some(set), _) => {
            format!("{}, by {}", if set.value { "yes" } else { "no" }, set.place)
        }
        (None, Enable::All) => "yes, as all of its directory".to_owned(),
        (None, Enable::Named) => "when a pipeline names it".to_owned(),
    };
    let mut text = labelled(&[
        ("pass", record.name.clone()),
        ("aliases", record.aliases.join(", ")),
        ("plugin", format!("{} {} ({})", plugin.id, plugin.version, entry.path.display())),
        ("enabled", enabled),
    ]);
    text.push_str(&labelled(&facts(record)));
    text.push_str(&labelled(&[("rules", told_of(registry, &record.asks))]));
    if !options.is_empty() {
        let rows = record.options.iter().zip(options).map(|(declared, option)| {
            let set_by = option.set_by.as_ref().map_or("default".to_owned(), ToString::to_string);
            vec![
                format!("  {}", option.name),
                declared.ty.to_string(),
                option.value.to_string(),
                range(declared),
                set_by,
                declared.help.clone(),
            ]
        });
        let header = ["  option", "type", "value", "range", "set by", ""].map(str::to_owned);
        let rows: Vec<Vec<String>> = [header.to_vec()].into_iter().chain(rows).collect();
        text.push_str(&format!("\n{}", table(&rows)));
    }
    text.push_str(&format!("\n{}\n", record.doc));
    if !record.header.is_empty() {
        text.push_str(&format!("\n{}\n", record.header));
    }
    text
}

/// A page on a pass, of what its manifest says: the same wherever the plugin lies and whatever the registry sets.
fn pass_markdown(registry: &Registry, id: PassId) -> String {
    let record = registry.record(id);
    let code = |name: &String| format!("`{name}`");
    let mut text = format!("# {}\n\n{}\n\n", record.name, record.doc);
    let plugin = &registry.plugin_of(id).manifest.plugin.id;
    let aliases = record.aliases.iter().map(code).collect::<Vec<_>>().join(", ");
    let rows = [("plugin", plugin.clone()), ("aliases", aliases)].into_iter().chain(facts(record));
    text.push_str("| | |\n|---|---|\n");
    for (label, value) in rows.filter(|(_, value)| !value.is_empty()) {
        text.push_str(&format!("| {label} | {} |\n", cell(&value)));
    }
    if !record.options.is_empty() {
        text.push_str(
            "\n## Options\n\n| option | type | default | range | |\n|---|---|---|---|---|\n",
        );
        for option in &record.options {
            let default = cell(&option.default.to_string());
            let (ty, range) = (cell(&option.ty.to_string()), cell(&range(option)));
            let (name, help) = (&option.name, cell(&option.help));
            text.push_str(&format!("| `{name}` | {ty} | `{default}` | {range} | {help} |\n"));
        }
    }
    if !record.header.is_empty() {
        text.push_str(&format!("\n## How\n\n{}\n", record.header));
    }
    text
}

/// A text as it stands in a cell of a table.
pub(super) fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// What a manifest says of a pass besides its name, its options and its documentation.
pub(super) fn facts(record: &PassRecord) -> Vec<(&'static str, String)> {
    let requires: Vec<String> = record.requires.iter().map(Requirement::to_string).collect();
    vec![
        ("kind", format!("{:?}", record.kind).to_lowercase()),
        ("level", record.opt_level.to_string()),
        ("phase", record.phase.clone()),
        ("from", record.from.clone()),
        ("until", record.until.clone()),
        ("requires", requires.join(", ")),
        ("after", record.after.join(", ")),
        ("before", record.before.join(", ")),
        ("establishes", record.establishes.join(", ")),
        ("destroys", record.destroys.join(", ")),
        ("preserves", record.preserves.join(", ")),
        ("idempotent", if record.idempotent { "yes" } else { "" }.to_owned()),
        ("tolerance", record.tolerance.map(|part| part.to_string()).unwrap_or_default()),
        ("more", more_text(&record.more)),
    ]
}

/// What a newer version of the manifest's format says.
pub(super) fn more_text(more: &BTreeMap<String, Value>) -> String {
    more.iter().map(|(key, value)| format!("{key} = {value}")).collect::<Vec<_>>().join(", ")
}

/// The values that an option may have, beyond its type.
pub(super) fn range(option: &OptionRecord) -> String {
    match (&option.min, &option.max) {
        _ if !option.one_of.is_empty() => option.one_of.join(" | "),
        (Some(min), Some(max)) => format!("{min} to {max}"),
        (Some(min), None) => format!("{min} or more"),
        (None, Some(max)) => format!("{max} or less"),
        (None, None) => String::new(),
    }
}
