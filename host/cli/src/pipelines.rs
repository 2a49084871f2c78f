//! `pipeline`: what pipelines there are, and what one would run. No plugin's code runs here.

use std::collections::BTreeMap;

use clap::Subcommand;
use serde_json::{Value, json};

use super::Global;
use super::complete;
use super::output::{Failure, place_json, print, print_json, table};
use super::rules::told_of;
use tenon_compiler::passes::{GroupKind, PassStep, Plan, Reason, Step, plan, required_by};
use tenon_compiler::registry::{PipelineConfig, PipelineContent, Registry, Set};

#[derive(Subcommand)]
pub(super) enum PipelineCommand {
    /// List the named pipelines
    List,
    /// Show the passes of a pipeline, as a pipeline's text
    Show {
        /// A name, or a pipeline's text
        #[arg(add = complete::pipeline())]
        name: String,
    },
    /// Show the passes of a pipeline, one a line, with the reason each is there
    Explain {
        /// A name, or a pipeline's text
        #[arg(add = complete::pipeline())]
        name: String,
    },
}

pub(super) fn pipeline(global: &Global, command: &PipelineCommand) -> Result<(), Failure> {
    let registry = global.open_registry()?;
    match command {
        PipelineCommand::List => {
            let pipelines = &registry.config().pipelines;
            if global.json {
                let pipelines = pipelines.iter().map(|(name, config)| list_json(name, config));
                return print_json(&pipelines.collect::<Vec<_>>());
            }
            let rows: Vec<Vec<String>> = pipelines
                .iter()
                .map(|(name, config)| {
                    let (what, items) = content(config);
                    vec![
                        name.clone(),
                        format!("{what}: {}", items.join(", ")),
                        config.place.to_string(),
                    ]
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
                true => print_json(&explain_json(&registry, &plan)),
                false => print(explain_text(&registry, &plan)),
            }
        }
    }
}

fn content(config: &PipelineConfig) -> (&'static str, Vec<&str>) {
    let (what, items) = match &config.content {
        PipelineContent::Phases(phases) => ("phases", phases),
        PipelineContent::Passes(passes) => ("passes", passes),
    };
    (what, items.iter().map(|Set { value, .. }| value.as_str()).collect())
}

fn list_json(name: &str, config: &PipelineConfig) -> Value {
    let (what, items) = content(config);
    let mut json = place_json(&config.place);
    json["name"] = name.into();
    json[what] = items.into();
    json
}

fn explain_json(registry: &Registry, plan: &Plan) -> Value {
    let mut number = 0;
    let steps = plan.steps.iter().map(|step| match step {
        Step::Phase(phase) => json!({ "phase": phase }),
        Step::Begin(group) => json!({
            "begin": group.kind.name(),
            "max": max(group.kind),
            "reason": group.step.reason.to_string(),
        }),
        Step::End(_) => json!({ "end": true }),
        Step::Pass(pass) => {
            number += 1;
            let entry = pass.pass.id().map(|id| registry.plugin_of(id));
            let plugin = entry.map(|entry| &entry.manifest.plugin);
            let options = pass.options.iter().map(|option| {
                json!({
                    "name": option.name,
                    "value": Value::from(&option.value),
                    "set_by": option.set_by.as_ref().map(place_json),
                })
            });
            json!({
                "number": number,
                "pass": pass.name,
                "plugin": plugin.map(|plugin| &plugin.id),
                "version": plugin.map(|plugin| &plugin.version),
                "file": entry.map(|entry| entry.path.display().to_string()),
                "why": why_json(&pass.reason),
                "reason": pass.reason.to_string(),
                "asks": pass.pass.id().map(|id| &registry.record(id).asks),
                "options": options.collect::<Vec<_>>(),
            })
        }
    });
    let left_out = plan.left_out.iter().map(|pass| {
        json!({
            "pass": pass.name,
            "requires": pass.chain[1..],
            "listed": place_json(&pass.listed),
            "disabled": place_json(&pass.disabled),
        })
    });
    json!({ "steps": steps.collect::<Vec<_>>(), "left_out": left_out.collect::<Vec<_>>() })
}

fn why_json(reason: &Reason) -> Value {
    match reason {
        Reason::Named(place) => json!({ "named": place_json(place) }),
        Reason::Listed(place) => json!({ "listed": place_json(place) }),
        Reason::Placed { enabled, beside } => {
            json!({ "enabled": place_json(enabled), "beside": beside })
        }
        Reason::Required { by, .. } => json!({ "required_by": by }),
        Reason::Called => json!({ "called": true }),
        Reason::Pinned { of } => json!({ "part_of": of }),
        Reason::Member { of } => json!({ "member_of": of }),
    }
}

fn explain_text(registry: &Registry, plan: &Plan) -> String {
    let (mut number, mut depth) = (0, 0);
    let mut rows: Vec<Vec<String>> = Vec::new();
    for step in &plan.steps {
        let indent = indent(depth);
        match step {
            Step::Phase(phase) => rows.push(vec![format!("phase {phase}")]),
            Step::Begin(group) => {
                let name = group.kind.name();
                let rounds =
                    max(group.kind).map_or(String::new(), |max| format!(", {max} rounds at most"));
                let reason = group.step.reason.to_string();
                rows.push(vec![format!("       {indent}{name}{rounds}"), String::new(), reason]);
                depth += 1;
            }
            Step::End(_) => depth -= 1,
            Step::Pass(pass) => {
                number += 1;
                let plugin = pass.pass.id().map(|id| &registry.plugin_of(id).manifest.plugin);
                rows.push(vec![
                    format!("{number:5}  {indent}{}", pass.name),
                    plugin.map_or(String::new(), |it| format!("{} {}", it.id, it.version)),
                    pass.reason.to_string(),
                ]);
                let asks = pass.pass.id().map_or(&[][..], |id| &registry.record(id).asks);
                if !asks.is_empty() {
                    let rules = format!("asks for rules of {}", told_of(registry, asks));
                    rows.push(vec![String::new(), String::new(), rules]);
                }
                rows.extend(set_options(pass, &indent));
            }
        }
    }
    let mut text = table(&rows);
    if !plan.left_out.is_empty() {
        let rows = plan.left_out.iter().map(|pass| {
            let listed = format!("listed in {}", pass.listed);
            let why = match pass.chain.len() {
                1 => format!("{listed}, disabled in {}", pass.disabled),
                _ => {
                    format!("{listed}; {}, disabled in {}", required_by(&pass.chain), pass.disabled)
                }
            };
            vec![format!("       {}", pass.name), why]
        });
        text.push_str(&format!("left out\n{}", table(&rows.collect::<Vec<_>>())));
    }
    let file = |id| {
        let entry = registry.plugin_of(id);
        let plugin = &entry.manifest.plugin;
        let name = format!("       {} {}", plugin.id, plugin.version);
        (name, entry.path.display().to_string())
    };
    let files: BTreeMap<String, String> =
        plan.passes().filter_map(|step| step.pass.id()).map(file).collect();
    let rows: Vec<Vec<String>> = files.into_iter().map(|(name, file)| vec![name, file]).collect();
    text.push_str(&format!("plugins\n{}", table(&rows)));
    text
}

/// The white space before what stands in so many groups. Behind a number of them the depth is told instead, or the
/// text of deep groups would be long as the square of their depth.
fn indent(depth: usize) -> String {
    const MOST: usize = 32;
    match depth {
        0..=MOST => "  ".repeat(depth),
        _ => format!("{}({depth} deep) ", "  ".repeat(MOST)),
    }
}

/// The options that are not as the pass has them, one a row.
fn set_options(pass: &PassStep, indent: &str) -> Vec<Vec<String>> {
    let set = |option: &tenon_compiler::passes::StepOption| {
        let place = option.set_by.as_ref()?;
        let value = format!("         {indent}{} = {}", option.name, option.value);
        Some(vec![value, String::new(), format!("set in {place}")])
    };
    pass.options.iter().filter_map(set).collect()
}

/// The most rounds of a group that has rounds.
fn max(kind: GroupKind) -> Option<u32> {
    match kind {
        GroupKind::Fixpoint { max } => Some(max),
        GroupKind::Sequence | GroupKind::Composite | GroupKind::Functions => None,
    }
}
