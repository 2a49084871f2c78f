//! `targets`: what code can be made for.

use clap::Subcommand;
use serde_json::{Value, json};

use super::Global;
use super::complete;
use super::output::{Failure, labelled, print, print_json, table};
use tenon_compiler::backend::backend_for;
use tenon_compiler::target::{Device, Target, TargetError, named};

#[derive(Subcommand)]
pub(super) enum TargetsCommand {
    /// List the targets that have names
    List,
    /// Show what a target is and can do
    Show {
        /// As `--target` takes it: `native`, a name of the list, a triple
        #[arg(add = complete::targets())]
        target: String,
    },
}

pub(super) fn targets(global: &Global, command: &TargetsCommand) -> Result<(), Failure> {
    match command {
        TargetsCommand::List => list(global),
        TargetsCommand::Show { target } => {
            let found = Target::parse(target)?;
            match global.json {
                true => print_json(&target_json(target, &found)),
                false => print(target_text(target, &found)),
            }
        }
    }
}

fn list(global: &Global) -> Result<(), Failure> {
    let names = std::iter::once("native").chain(named().map(|line| line.name));
    let all: Vec<(&str, Target)> =
        names.map(|name| Ok((name, Target::parse(name)?))).collect::<Result<_, TargetError>>()?;
    if global.json {
        let all = all.iter().map(|(name, target)| target_json(name, target));
        return print_json(&all.collect::<Vec<Value>>());
    }
    let rows: Vec<Vec<String>> = all
        .iter()
        .map(|(name, target)| {
            let bits = format!("{} bits", target.vector_bits());
            vec![(*name).to_owned(), target.architecture().to_string(), bits, about(name)]
        })
        .collect();
    print(table(&rows))
}

/// What the list says of a name.
fn about(name: &str) -> String {
    match named().find(|line| line.name == name) {
        Some(line) => line.about.to_owned(),
        None if name == "native" => "this machine".to_owned(),
        None => String::new(),
    }
}

/// The instructions that not every processor has, by the names of what they do.
fn instructions(target: &Target) -> Vec<&'static str> {
    let all = [
        (target.has_fma(), "fused multiply-add"),
        (target.has_half(), "f16 to f32"),
        (target.has_rounding(), "rounding"),
    ];
    all.into_iter().filter(|(has, _)| *has).map(|(_, name)| name).collect()
}

fn target_json(name: &str, target: &Target) -> Value {
    let caches = target.caches().named().into_iter();
    let caches = caches.map(|(name, bytes)| (name.to_owned(), known(bytes).into()));
    json!({
        "name": name,
        "about": about(name),
        "target": target.to_string(),
        "kind": target.kind(),
        "backend": backend_for(target.architecture()).name(),
        "triple": target.triple(),
        "cpu": target.cpu(),
        "features": target.all_features(),
        "vector_bits": target.vector_bits(),
        "vector_registers": target.vector_registers(),
        "instructions": instructions(target),
        "fma_units": known(u64::from(target.fma_units())),
        "caches": caches.collect::<serde_json::Map<_, Value>>(),
        "device": target.device().map(|device| json!({
            "shared_bytes": device.shared_bytes,
            "block_threads": device.block_threads,
            "warp": device.warp,
        })),
        "threads": known(u64::from(target.threads())),
        "runs_here": target.runs_here(),
    })
}

fn device_text(device: Device) -> String {
    let Device { shared_bytes, block_threads, warp } = device;
    format!(
        "blocks of {block_threads} threads, {warp} in step, that share {} KiB",
        shared_bytes >> 10
    )
}

fn known(number: u64) -> Option<u64> {
    (number > 0).then_some(number)
}

fn target_text(name: &str, target: &Target) -> String {
    let (registers, bits) = (target.vector_registers(), target.vector_bits());
    let caches = target.caches().named().into_iter().filter(|(_, bytes)| *bytes > 0);
    let caches = caches.map(|(name, bytes)| format!("{name} {} KiB", bytes >> 10));
    let number = |number| known(u64::from(number)).map_or(String::new(), |it| it.to_string());
    labelled(&[
        ("target", target.to_string()),
        ("about", about(name)),
        ("kind", target.kind().to_owned()),
        ("backend", backend_for(target.architecture()).name().to_owned()),
        ("triple", target.triple().to_owned()),
        ("processor", target.cpu().to_owned()),
        ("features", target.all_features().join(" ")),
        ("vectors", format!("{registers} registers of {bits} bits")),
        ("device", target.device().map_or(String::new(), device_text)),
        ("instructions", instructions(target).join(", ")),
        ("caches", caches.collect::<Vec<_>>().join(", ")),
        ("fma units", number(target.fma_units())),
        ("threads", number(target.threads())),
    ])
}
