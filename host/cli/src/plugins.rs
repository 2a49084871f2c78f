//! `plugins`: the files that passes come from, and what the registry says of them. No plugin's code runs
//! here.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use serde_json::json;

use super::Global;
use super::conformance::{self, TestArgs};
use super::new::{self, NewArgs};
use super::output::{Failure, labelled, place_json, print, print_json, table};
use super::passes::{facts, more_text, range, settings_json, settings_text};
use super::quarantine::{self, QuarantineCommand};
use tenon_compiler::diagnostics::count_of;
use tenon_compiler::registry::{Config, Edit, Manifest, Place, PluginState, sha256};

#[derive(Subcommand)]
pub(super) enum PluginsCommand {
    /// List all plugins
    List,
    /// Show all that a plugin says of itself, and what the registry says of its passes
    Show {
        /// A shared library, a text with a manifest, or the id of a plugin
        #[arg(value_name = "FILE|ID")]
        plugin: PathBuf,
    },
    /// Enable passes in the registry: the last file that --registry names, else the user's own
    Enable {
        /// Names of passes, or ids of plugins for all of their passes
        #[arg(required = true)]
        names: Vec<String>,
    },
    /// Disable passes in the registry
    Disable {
        /// Names of passes, or ids of plugins for all of their passes
        #[arg(required = true)]
        names: Vec<String>,
    },
    /// Fix a plugin's file in the registry: its version and its digest
    Pin {
        /// A shared library, or the id of a plugin
        #[arg(value_name = "FILE|ID")]
        plugin: PathBuf,
    },
    /// Run the conformance kit on a plugin, in a process of its own
    Test(TestArgs),
    /// Make a folder with a new plugin that builds, tests and loads as it is
    New(NewArgs),
    /// The libraries that did harm when they were opened
    #[command(subcommand)]
    Quarantine(QuarantineCommand),
}

pub(super) fn plugins(global: &Global, command: &PluginsCommand) -> Result<(), Failure> {
    match command {
        PluginsCommand::List => list(global),
        PluginsCommand::Show { plugin } => show(global, plugin),
        PluginsCommand::Enable { names } => switch(global, names, true),
        PluginsCommand::Disable { names } => switch(global, names, false),
        PluginsCommand::Pin { plugin } => pin(global, plugin),
        PluginsCommand::Test(args) => conformance::test(global, args),
        PluginsCommand::New(args) => new::new(global, args),
        PluginsCommand::Quarantine(command) => quarantine::quarantine(global, command),
    }
}

fn list(global: &Global) -> Result<(), Failure> {
    let registry = global.open_registry()?;
    if global.json {
        let plugins = registry.plugins.iter().filter(|entry| !entry.is_own).map(|entry| {
            json!({
                "file": entry.path.display().to_string(),
                "state": state_word(&entry.state),
                "quarantined": entry.quarantined,
                "untrusted": entry.untrusted,
                "manifest": entry.manifest,
            })
        });
        let unusable = registry.unusable.iter().map(|(path, error)| {
            json!({ "file": path.display().to_string(), "reason": error.to_string() })
        });
        let missing = registry.missing.iter().map(|dir| {
            let mut json = place_json(&dir.place);
            json["folder"] = dir.path.display().to_string().into();
            json
        });
        return print_json(&json!({
            "plugins": plugins.collect::<Vec<_>>(),
            "unusable": unusable.collect::<Vec<_>>(),
            "missing": missing.collect::<Vec<_>>(),
        }));
    }
    let mut rows: Vec<Vec<String>> = registry
        .plugins
        .iter()
        .filter(|entry| !entry.is_own)
        .map(|entry| {
            let plugin = &entry.manifest.plugin;
            let state = match &entry.state {
                _ if entry.quarantined.is_some() => {
                    format!("(in quarantine: {})", entry.quarantined.as_deref().unwrap_or_default())
                }
                PluginState::Usable => String::new(),
                PluginState::PinnedAway(why) => format!("(not used: {why})"),
                PluginState::Twice => "(there is another file of this plugin)".to_owned(),
            };
            vec![
                plugin.id.clone(),
                plugin.version.to_string(),
                offers(&entry.manifest),
                format!("{}  {state}", entry.path.display()),
            ]
        })
        .collect();
    let unusable = registry.unusable.iter();
    rows.extend(unusable.map(|(_, error)| vec!["unusable".to_owned(), error.to_string()]));
    let missing = registry.missing.iter();
    rows.extend(missing.map(|dir| {
        let folder = dir.path.display();
        vec!["missing".to_owned(), format!("{folder}: {} names it, and it is not there", dir.place)]
    }));
    print(table(&rows))
}

/// How much of what a plugin offers.
fn offers(manifest: &Manifest) -> String {
    let kinds = [
        (manifest.passes.len(), "pass"),
        (manifest.operators.len(), "operator"),
        (manifest.rules.len(), "rule"),
    ];
    let there = kinds.iter().filter(|(count, _)| *count > 0);
    let told: Vec<String> = there.map(|&(count, what)| count_of(count, what)).collect();
    match told.is_empty() {
        true => "0 passes".to_owned(),
        false => told.join(", "),
    }
}

fn state_word(state: &PluginState) -> &'static str {
    match state {
        PluginState::Usable => "usable",
        PluginState::PinnedAway(_) => "pinned_away",
        PluginState::Twice => "twice",
    }
}

fn show(global: &Global, plugin: &Path) -> Result<(), Failure> {
    let path = file_of(global, plugin)?;
    let manifest = Manifest::read(&path)?;
    let config = global.config_if_any()?;
    if global.json {
        let settings = manifest.passes.iter().filter_map(|pass| {
            let config = config.passes.get(&pass.name)?;
            Some((pass.name.clone(), settings_json(config)))
        });
        let settings: serde_json::Map<String, serde_json::Value> = settings.collect();
        let file = path.display().to_string();
        return print_json(&json!({ "file": file, "manifest": manifest, "settings": settings }));
    }
    print(text(&path, &manifest, &config))
}

/// The file that is meant: a path, or the id of a plugin.
pub(super) fn file_of(global: &Global, plugin: &Path) -> Result<PathBuf, Failure> {
    let id = plugin.to_string_lossy();
    match id.contains('/') || plugin.exists() {
        true => Ok(plugin.to_owned()),
        false => Ok(global.open_registry()?.find_plugin(&id)?.path.clone()),
    }
}

/// Enables or disables passes, by their names or the ids of their plugins.
fn switch(global: &Global, names: &[String], enabled: bool) -> Result<(), Failure> {
    let registry = global.open_registry()?;
    let mut passes: BTreeSet<String> = BTreeSet::new();
    for name in names {
        match (registry.find(name), registry.find_plugin(name)) {
            (Ok(id), _) => drop(passes.insert(registry.record(id).name.clone())),
            (Err(_), Ok(entry)) => {
                passes.extend(entry.manifest.passes.iter().map(|pass| pass.name.clone()));
            }
            (Err(error), Err(_)) => return Err(error.into()),
        }
    }
    let mut edit = Edit::open(&Config::file_to_edit(&global.registry)?)?;
    for pass in &passes {
        edit.set_enabled(pass, enabled);
    }
    let config = edit.save()?;
    let set: Vec<(&String, &Place)> = passes
        .iter()
        .filter_map(|pass| Some((pass, &config.passes.get(pass)?.enabled.as_ref()?.place)))
        .collect();
    if global.json {
        let json = set.iter().map(|(pass, place)| {
            let mut json = place_json(place);
            json["pass"] = pass.as_str().into();
            json["enabled"] = enabled.into();
            json
        });
        return print_json(&json.collect::<Vec<_>>());
    }
    let word = if enabled { "enabled" } else { "disabled" };
    let rows = set.iter().map(|(pass, place)| vec![pass.to_string(), format!("{word} in {place}")]);
    print(table(&rows.collect::<Vec<_>>()))
}

fn pin(global: &Global, plugin: &Path) -> Result<(), Failure> {
    let path = file_of(global, plugin)?;
    let plugin = Manifest::read(&path)?.plugin;
    let digest = sha256(&path)?;
    let mut edit = Edit::open(&Config::file_to_edit(&global.registry)?)?;
    edit.pin(&plugin.id, &plugin.version, &digest);
    let config = edit.save()?;
    let pin = config.pins.get(&plugin.id).and_then(|pin| pin.version.as_ref());
    let place = &pin.expect("the file that was written pins it").place;
    if global.json {
        let mut json = place_json(place);
        json["plugin"] = plugin.id.into();
        json["version"] = plugin.version.to_string().into();
        json["sha256"] = digest.into();
        return print_json(&json);
    }
    print(format!("{} is pinned to {} in {place}\n", plugin.id, plugin.version))
}

fn text(path: &Path, manifest: &Manifest, config: &Config) -> String {
    let plugin = &manifest.plugin;
    let mut text = labelled(&[
        ("plugin", plugin.id.clone()),
        ("version", plugin.version.to_string()),
        ("file", path.display().to_string()),
        ("summary", plugin.summary.clone()),
        ("vendor", plugin.vendor.clone()),
        ("homepage", plugin.homepage.clone()),
        ("license", plugin.license.clone()),
        ("api", plugin.api.to_string()),
        ("format", plugin.format.to_string()),
        ("interpreter", manifest.interpreter.clone().unwrap_or_default()),
        ("more", more_text(&plugin.more)),
    ]);
    for pass in &manifest.passes {
        let settings = config.passes.get(&pass.name).map(settings_text).unwrap_or_default();
        text.push_str(&format!("\n{}\n", pass.name));
        text.push_str(&labelled(&[("aliases", pass.aliases.join(", "))]));
        text.push_str(&labelled(&facts(pass)));
        text.push_str(&labelled(&[("registry", settings.join("; "))]));
        let options = pass.options.iter().map(|option| {
            vec![
                format!("  {}", option.name),
                option.ty.to_string(),
                option.default_value().to_string(),
                range(option),
                option.help.clone(),
            ]
        });
        if !pass.options.is_empty() {
            let header = ["  option", "type", "default", "range", ""].map(str::to_owned).to_vec();
            text.push_str(&table(&[header].into_iter().chain(options).collect::<Vec<_>>()));
        }
        text.push_str(&format!("{}\n", pass.doc));
    }
    for generator in &manifest.generators {
        text.push_str(&format!("\n{} (a code generator)\n", generator.name));
        text.push_str(&labelled(&[("more", more_text(&generator.more))]));
        for pattern in &generator.patterns {
            text.push_str(&format!("  {pattern}\n"));
        }
        text.push_str(&format!("{}\n", generator.doc));
    }
    for instrument in &manifest.instruments {
        text.push_str(&format!("\n{} (an instrument)\n", instrument.name));
        text.push_str(&labelled(&[("more", more_text(&instrument.more))]));
        text.push_str(&format!("{}\n", instrument.doc));
    }
    text
}
