//! A plugin that is a text: its manifest stands in a block of its comments.
//!
//! ```text
//! # /// tenon
//! # plugin = "acme.tidy"
//! # version = "1.2.0"
//! #
//! # [[passes]]
//! # pass = "acme.KeepMain"
//! # kind = "module"
//! # ///
//! ```
//!
//! The block is TOML. What stands before `/// tenon` in its line begins each line of the block, so it is a comment in any language.
//! The keys are those of the records (`docs/manifest.md`).

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use serde_json::{Map, Value};

use super::notes::MAX_NOTES;
use super::{Manifest, ManifestError, Reason};
use crate::io::{FileError, open_regular};

/// How the block begins, behind what begins a comment.
const BEGIN: &str = "/// tenon";
/// How it ends.
const END: &str = "///";

/// The block begins within so many bytes, so that nobody reads the whole of what is no plugin.
const HEAD: usize = 8 << 10;

/// The key of the records of passes.
const PASSES: &str = "passes";

/// Whether a file that is no library has a block. One that cannot be read has none.
pub(super) fn is_one(path: &Path) -> bool {
    let head = || {
        let (file, _) = open_regular(path).ok()?;
        read(&file, HEAD).ok()
    };
    head().is_some_and(|head| begins(&head).is_some())
}

/// The manifest of an open file, where it is a text with a block.
pub(super) fn manifest(file: &File, path: &Path) -> Result<Option<Manifest>, ManifestError> {
    let Some(extension) = path.extension().and_then(|it| it.to_str()).filter(|it| *it != "so")
    else {
        return Ok(None);
    };
    let failed = |cause| FileError::Read { path: path.to_owned(), cause };
    let head = read(file, HEAD).map_err(failed)?;
    let Some(prefix) = begins(&head) else { return Ok(None) };
    let text = read(file, MAX_NOTES as usize).map_err(failed)?;
    let parsed = block(&text, &prefix)
        .and_then(|block| records(&block, path))
        .and_then(Manifest::parse)
        .map_err(|reason| ManifestError::broken(path, &reason))?;
    Ok(Some(Manifest { interpreter: Some(extension.to_owned()), ..parsed }))
}

/// The first bytes of a file, as far as they are a text.
fn read(file: &File, most: usize) -> io::Result<String> {
    let mut bytes = vec![0; most.min(file.metadata()?.len() as usize)];
    let mut length = 0;
    while length < bytes.len() {
        match file.read_at(&mut bytes[length..], length as u64) {
            Ok(0) => break,
            Ok(count) => length += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(length);
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// What begins the lines of the block, where there is one.
fn begins(text: &str) -> Option<String> {
    let line = |line: &str| {
        let prefix = line.trim_end().strip_suffix(BEGIN)?;
        let is_comment =
            !prefix.trim().is_empty() && !prefix.contains(|it: char| it.is_alphanumeric());
        is_comment.then(|| prefix.to_owned())
    };
    text.lines().find_map(line)
}

/// The TOML of the block. Lines before it are empty, so that places in it are places in the text.
fn block(text: &str, prefix: &str) -> Result<String, Reason> {
    let mut lines = text.lines();
    let mut block = String::new();
    for line in lines.by_ref() {
        block.push('\n');
        if line.trim_end().strip_suffix(BEGIN) == Some(prefix) {
            break;
        }
    }
    for line in lines {
        let bare = prefix.trim_end();
        let Some(rest) = line.strip_prefix(prefix).or_else(|| line.strip_prefix(bare)) else {
            return Err(
                format!("a line of its block does not begin with `{bare}`: `{line}`").into()
            );
        };
        if rest.trim() == END {
            return Ok(block);
        }
        block.push_str(rest);
        block.push('\n');
    }
    Err(format!("its block is not ended by `{prefix}{END}`").into())
}

/// The records of a block, one a line.
fn records(block: &str, path: &Path) -> Result<String, Reason> {
    let table: toml::Table = block.parse().map_err(|error: toml::de::Error| {
        let line = error.span().map_or(0, |span| block[..span.start].matches('\n').count() + 1);
        Reason::from(format!("line {line}: {}", error.message()))
    })?;
    let Value::Object(mut plugin) = serde_json::to_value(table)? else {
        return Err("its block is no table".into());
    };
    let passes = match plugin.remove(PASSES) {
        None => Vec::new(),
        Some(Value::Array(passes)) => passes,
        Some(_) => return Err(format!("`{PASSES}` are tables: [[{PASSES}]]").into()),
    };
    if let Some((key, _)) = plugin.iter().find(|(_, value)| value.is_array() || value.is_object()) {
        return Err(format!("a text offers `{PASSES}`, and no `{key}`").into());
    }
    let stem = path.file_stem().map(|it| it.to_string_lossy().into_owned()).unwrap_or_default();
    let defaults = [("plugin", stem.into()), ("format", 1.into()), ("version", "0.0.0".into())];
    for (key, value) in defaults {
        plugin.entry(key).or_insert(value);
    }
    let mut lines = vec![line_of("plugin", plugin)];
    for pass in passes {
        match pass {
            Value::Object(record) if record.contains_key("pass") => {
                lines.push(line_of("pass", record));
            }
            _ => return Err("one of its passes has no name: `pass = \"…\"`".into()),
        }
    }
    Ok(lines.join("\n"))
}

/// A record without the keys of other kinds, which would make it one of these.
fn line_of(kind: &str, mut record: Map<String, Value>) -> String {
    let other = if kind == "plugin" { "pass" } else { "plugin" };
    record.remove(other);
    Value::Object(record).to_string()
}
