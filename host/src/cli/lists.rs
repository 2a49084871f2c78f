//! `passes`, `plugins` and `pipeline`: what there is. No plugin's code runs here.

use std::path::PathBuf;

use clap::Subcommand;
use serde_json::json;

use super::Global;
use super::output::{Failure, print, print_json, table};
use crate::passes::{Plan, Step, plan};
use crate::registry::{Manifest, PassId, PassRecord, Registry};

#[derive(Subcommand)]
pub(super) enum PassesCommand {
    /// List all passes
    List,
    /// Show what a pass says of itself
    Show {
        /// Its id, an alias, or the last part of its id
        name: String,
    },
}

#[derive(Subcommand)]
pub(super) enum PluginsCommand {
    /// List all plugins
    List,
    /// Show the manifest of a plugin's file
    Show {
        /// A shared library
        file: PathBuf,
    },
}

#[derive(Subcommand)]
pub(super) enum PipelineCommand {
    /// List the named pipelines
    List,
    /// Show the passes of a pipeline, as a pipeline's text
    Show {
        /// A name, or a pipeline's text
        name: String,
    },
    /// Show the passes of a pipeline, one a line, with the reason each is there
    Explain {
        /// A name, or a pipeline's text
        name: String,
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
                    vec![record.name.clone(), state.to_owned(), record.summary().to_owned()]
                })
                .collect();
            print(table(&rows))
        }
        PassesCommand::Show { name } => {
            let id = registry.find(name)?;
            match global.json {
                true => print_json(&pass_json(&registry, id)),
                false => print(pass_text(&registry, id)),
            }
        }
    }
}

fn pass_json(registry: &Registry, id: PassId) -> serde_json::Value {
    let entry = registry.plugin_of(id);
    json!({
        "pass": registry.record(id),
        "plugin": entry.manifest.plugin.id,
        "version": entry.manifest.plugin.version,
        "file": entry.path,
        "enabled": registry.is_enabled(id),
    })
}

fn pass_text(registry: &Registry, id: PassId) -> String {
    let record = registry.record(id);
    let entry = registry.plugin_of(id);
    let plugin = &entry.manifest.plugin;
    let mut rows = vec![
        ("pass", record.name.clone()),
        ("aliases", record.aliases.join(", ")),
        ("plugin", format!("{} {} ({})", plugin.id, plugin.version, entry.path.display())),
        ("enabled", if registry.is_enabled(id) { "yes" } else { "no" }.to_owned()),
    ];
    rows.extend(facts(record));
    let mut text = labelled(&rows);
    text.push_str(&format!("\n{}\n", record.doc));
    text
}

fn facts(record: &PassRecord) -> Vec<(&'static str, String)> {
    let options: Vec<String> = record
        .options
        .iter()
        .map(|option| {
            format!("{}: {} = {}   {}", option.name, option.ty, option.default, option.help)
        })
        .collect();
    vec![
        ("kind", format!("{:?}", record.kind).to_lowercase()),
        ("level", record.opt_level.to_string()),
        ("phase", record.phase.clone()),
        ("requires", record.requires.join(", ")),
        ("after", record.after.join(", ")),
        ("before", record.before.join(", ")),
        ("establishes", record.establishes.join(", ")),
        ("options", options.join("\n             ")),
    ]
}

/// Labels and values, empty ones left out.
fn labelled(rows: &[(&str, String)]) -> String {
    rows.iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(label, value)| format!("{label:12} {value}\n"))
        .collect()
}

pub(super) fn plugins(global: &Global, command: &PluginsCommand) -> Result<(), Failure> {
    match command {
        PluginsCommand::List => {
            let registry = global.open_registry()?;
            if global.json {
                let plugins: Vec<_> = registry
                    .plugins
                    .iter()
                    .map(|entry| json!({ "file": entry.path, "manifest": entry.manifest }))
                    .collect();
                let unusable: Vec<_> = registry
                    .unusable
                    .iter()
                    .map(|(path, error)| json!({ "file": path, "reason": error.to_string() }))
                    .collect();
                return print_json(&json!({ "plugins": plugins, "unusable": unusable }));
            }
            let mut rows: Vec<Vec<String>> = registry
                .plugins
                .iter()
                .map(|entry| {
                    let plugin = &entry.manifest.plugin;
                    vec![
                        plugin.id.clone(),
                        plugin.version.to_string(),
                        format!("{} passes", entry.manifest.passes.len()),
                        entry.path.display().to_string(),
                    ]
                })
                .collect();
            rows.extend(
                registry
                    .unusable
                    .iter()
                    .map(|(_, error)| vec!["unusable".to_owned(), error.to_string()]),
            );
            print(table(&rows))
        }
        PluginsCommand::Show { file } => {
            let manifest = Manifest::read(file)?;
            if global.json {
                return print_json(&manifest);
            }
            let plugin = &manifest.plugin;
            let mut text = labelled(&[
                ("plugin", plugin.id.clone()),
                ("version", plugin.version.to_string()),
                ("summary", plugin.summary.clone()),
                ("vendor", plugin.vendor.clone()),
                ("homepage", plugin.homepage.clone()),
                ("license", plugin.license.clone()),
            ]);
            for pass in &manifest.passes {
                text.push_str(&format!("\n{}\n", pass.name));
                text.push_str(&labelled(&facts(pass)));
                text.push_str(&format!("{}\n", pass.doc));
            }
            print(text)
        }
    }
}

pub(super) fn pipeline(global: &Global, command: &PipelineCommand) -> Result<(), Failure> {
    let registry = global.open_registry()?;
    match command {
        PipelineCommand::List => {
            let pipelines = &registry.config().pipelines;
            if global.json {
                return print_json(&pipelines.keys().collect::<Vec<_>>());
            }
            let rows: Vec<Vec<String>> = pipelines
                .iter()
                .map(|(name, config)| {
                    let content = match config.phases.is_empty() {
                        false => format!("phases {}", config.phases.join(", ")),
                        true => config.passes.join(", "),
                    };
                    vec![name.clone(), content]
                })
                .collect();
            print(table(&rows))
        }
        PipelineCommand::Show { name } => {
            let plan = plan(&registry, name)?;
            match global.json {
                true => print_json(&plan.to_string()),
                false => print(format!("{plan}\n")),
            }
        }
        PipelineCommand::Explain { name } => {
            let plan = plan(&registry, name)?;
            match global.json {
                true => print_json(&explain_json(&plan)),
                false => print(explain_text(&plan)),
            }
        }
    }
}

fn explain_json(plan: &Plan) -> Vec<serde_json::Value> {
    plan.steps
        .iter()
        .map(|step| match step {
            Step::Phase(phase) => json!({ "phase": phase }),
            Step::Pass(pass) => json!({ "pass": pass.name, "reason": pass.reason.to_string() }),
        })
        .collect()
}

fn explain_text(plan: &Plan) -> String {
    let rows: Vec<Vec<String>> = plan
        .steps
        .iter()
        .map(|step| match step {
            Step::Phase(phase) => vec![format!("phase {phase}")],
            Step::Pass(pass) => vec![format!("  {}", pass.name), pass.reason.to_string()],
        })
        .collect();
    table(&rows)
}
