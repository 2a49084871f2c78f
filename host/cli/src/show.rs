//! `show`: what a library, an object or an executable says of itself.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;

use super::Global;
use super::output::{Failure, labelled, print, print_json};
use tenon_compiler::executable::{CompileError, Executable, SavedDescription, is_saved};
use tenon_compiler::io::Mapping;
use tenon_compiler::object::symbols::{ALLOWED_UNDEFINED, undefined};
use tenon_compiler::runtime::describe::{Description, describe};
use tenon_compiler::runtime::signature::{LibraryInfo, Signature, TensorSpec};
use tenon_compiler::runtime::weights::WeightsInfo;

#[derive(Args)]
pub(super) struct ShowArgs {
    /// A library, an object, or an executable that was saved
    library: PathBuf,
}

pub(super) fn show(global: &Global, args: &ShowArgs) -> Result<(), Failure> {
    let found = described(&args.library)?;
    match global.json {
        true => print_json(&json!({
            "file": found.path,
            "bytes": found.bytes,
            "kind": found.kind,
            "prefix": found.prefix,
            "symbols": found.symbols,
            "needs": found.needs,
            "weights": found.info.weights,
            // Of a library with one function, it.
            "signature": found.info.functions.first().filter(|_| found.info.has_default),
            "functions": found.info.functions,
            "checks": found.info.checks(),
        })),
        false => print(text(&found)),
    }
}

/// What is shown.
struct Shown {
    kind: &'static str,
    path: PathBuf,
    info: LibraryInfo,
    prefix: String,
    symbols: Vec<String>,
    /// What others have to define.
    needs: Vec<String>,
    bytes: u64,
}

fn described(path: &Path) -> Result<Shown, Failure> {
    if is_saved(path) {
        let SavedDescription { info, prefix, externals, bytes } = Executable::describe_saved(path)?;
        let (path, prefix) = (path.to_owned(), prefix.unwrap_or_default());
        let (kind, symbols, needs) = ("executable", Vec::new(), externals);
        return Ok(Shown { kind, path, info, prefix, symbols, needs, bytes });
    }
    let Description { path, is_object, info, prefix, symbols, bytes } = describe(path)?;
    let kind = if is_object { "object" } else { "library" };
    let needs = needs(&path)?;
    Ok(Shown { kind, path, info, prefix, symbols, needs, bytes })
}

fn text(found: &Shown) -> String {
    let functions = &found.info.functions;
    let mut rows = vec![("kind", format!("{}, {} bytes", found.kind, found.bytes))];
    if let Some(Signature { tenon, target, .. }) = functions.first() {
        let mut targets = target.split('/');
        let first = targets.next().unwrap_or_default();
        rows.push(("compiled", format!("by Tenon {tenon} for {first}")));
        rows.extend(targets.map(|target| ("", format!("or {target}"))));
    }
    if let Some(WeightsInfo { file, bytes, .. }) = &found.info.weights {
        rows.push(("weights", format!("{file}, {bytes} bytes")));
    }
    for signature in functions {
        let Signature { function, symbol, inputs, outputs, .. } = signature;
        // An executable has its names in C when it is exported.
        let (as_what, sizes) = match symbol.as_str() {
            "" => (String::new(), "depends on the sizes of inputs".to_owned()),
            symbol => (format!(" as {symbol}_run"), format!("as {symbol}_sizes() says")),
        };
        let workspace = match signature.workspace_size {
            Some(bytes) => format!("{bytes} bytes"),
            None => match signature.most_workspace {
                Some(most) => format!("{sizes}, at most {most} bytes"),
                None => sizes,
            },
        };
        rows.extend([
            ("function", format!("@{function}{as_what}")),
            ("inputs", specs(inputs, |_| Vec::new())),
            ("outputs", specs(outputs, |at| axes_found(signature, at))),
            ("workspace", workspace),
        ]);
        if signature.arena {
            rows.push(("memory", memory(signature)));
        }
        if !signature.ranges.is_empty() {
            rows.push(("ranges", ranges(signature)));
        }
        if !signature.in_place.is_empty() {
            rows.push(("in place", in_place(signature)));
        }
    }
    rows.push(("symbols", found.symbols.join(", ")));
    if !found.needs.is_empty() {
        rows.push(("needs", found.needs.join(", ")));
    }
    labelled(&rows)
}

/// What others have to define, but for what every process has.
fn needs(path: &Path) -> Result<Vec<String>, Failure> {
    let file = Mapping::open(path)?;
    let mut names = undefined(&path.display().to_string(), &file).map_err(CompileError::from)?;
    names.retain(|name| !ALLOWED_UNDEFINED.contains(&name.as_str()));
    Ok(names)
}

/// What a function takes from an arena.
fn memory(signature: &Signature) -> String {
    let outputs: Vec<&str> =
        signature.taken.iter().map(|&at| signature.outputs[at].name.as_str()).collect();
    match outputs.is_empty() {
        true => "taken from an arena while it runs".to_owned(),
        false => format!("taken from an arena while it runs, with that of {}", outputs.join(", ")),
    }
}

/// The ranges of symbols.
fn ranges(signature: &Signature) -> String {
    let range = |(name, &(least, most)): (&String, &(i64, Option<i64>))| {
        format!("{name}={least}..{}", most.map_or(String::new(), |most| most.to_string()))
    };
    signature.ranges.iter().map(range).collect::<Vec<_>>().join(", ")
}

/// The inputs that a call updates in place, if it is given them as outputs as well.
fn in_place(signature: &Signature) -> String {
    let one = |&[input, output]: &[usize; 2]| {
        let (input, output) = (&signature.inputs[input], &signature.outputs[output]);
        format!("{} as {}", input.name, output.name)
    };
    let pair = |pair: &[usize; 2]| {
        let grows = signature.grows.iter().find(|it| it[..2] == pair[..]);
        let along = grows.map_or(String::new(), |it| format!(", longer along axis {}", it[2]));
        format!("{}{along}", one(pair))
    };
    signature.in_place.iter().map(pair).collect::<Vec<_>>().join(", ")
}

/// The axes of an output whose extents a call finds.
fn axes_found(signature: &Signature, output: usize) -> Vec<usize> {
    let of_output = signature.found.iter().filter(|[of, _]| *of == output);
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
