//! `show`: what a library says of itself.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::Global;
use super::output::{Failure, labelled, print, print_json};
use crate::runtime::describe::{Description, describe};
use crate::runtime::signature::TensorSpec;

#[derive(Args)]
pub(super) struct ShowArgs {
    /// A library, or an object
    library: PathBuf,
}

pub(super) fn show(global: &Global, args: &ShowArgs) -> Result<(), Failure> {
    let found = describe(&args.library)?;
    match global.json {
        true => print_json(&json!({
            "file": found.path,
            "bytes": found.bytes,
            "kind": kind(&found),
            "prefix": found.prefix,
            "symbols": found.symbols,
            "signature": found.signature,
        })),
        false => print(text(&found)),
    }
}

fn kind(found: &Description) -> &'static str {
    if found.is_object { "object" } else { "library" }
}

fn text(found: &Description) -> String {
    let Description { signature, prefix, .. } = found;
    let workspace = match signature.workspace_size {
        Some(bytes) => format!("{bytes} bytes"),
        None => format!("as {prefix}_sizes() says"),
    };
    let rows = [
        ("kind", format!("{}, {} bytes", kind(found), found.bytes)),
        ("compiled", format!("by Tenon {} for {}", signature.tenon, signature.target)),
        ("function", format!("@{} as {prefix}_run", signature.function)),
        ("inputs", specs(&signature.inputs, |_| Vec::new())),
        ("outputs", specs(&signature.outputs, |at| axes_found(found, at))),
        ("workspace", workspace),
        ("symbols", found.symbols.join(", ")),
    ];
    labelled(&rows)
}

/// The axes of an output whose extents a call finds.
fn axes_found(found: &Description, output: usize) -> Vec<usize> {
    let of_output = found.signature.found.iter().filter(|[of, _]| *of == output);
    of_output.map(|[_, axis]| *axis).collect()
}

fn specs(specs: &[TensorSpec], found: impl Fn(usize) -> Vec<usize>) -> String {
    let one = |(at, spec): (usize, &TensorSpec)| {
        let found = found(at);
        let extents = spec.shape.iter().enumerate().map(|(axis, extent)| {
            format!("{}{extent}", if found.contains(&axis) { "found " } else { "" })
        });
        let extents: Vec<String> = extents.collect();
        format!("{} {}[{}]", spec.name, spec.dtype, extents.join(", "))
    };
    let all: Vec<String> = specs.iter().enumerate().map(one).collect();
    if all.is_empty() { "none".to_owned() } else { all.join(", ") }
}
