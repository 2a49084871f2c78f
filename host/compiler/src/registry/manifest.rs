//! Manifests: what a plugin says of itself, read from its file without running any of it.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use object::{ReadCache, ReadRef};
use semver::{Version, VersionReq};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use tenon_plugin_api::abi::note::NOTE_FORMAT;
use tenon_plugin_api::pattern::Pattern;
use thiserror::Error;

use super::notes::{NATIVE_MACHINE, Notes, machine_name};
use super::spelling::misspelled;
use super::{OpOffer, OptionRecord, Reason, RuleRecord, script, sidecar};
use crate::io::{FileError, open_regular, quoted};

/// What a plugin says of itself.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Manifest {
    /// The library.
    pub plugin: PluginRecord,
    /// Its passes, in the order of their names.
    pub passes: Vec<PassRecord>,
    /// Its code generators, in the order of their names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub generators: Vec<CodegenRecord>,
    /// Its instruments, in the order of their names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub instruments: Vec<InstrumentRecord>,
    /// Its operators, in the order of their names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub operators: Vec<OpOffer>,
    /// Its rules, in the order of their facets and keys.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<RuleRecord>,
    /// What its file's name ends in, where it is a text: a rule of the facet `interpreter` says what runs it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interpreter: Option<String>,
}

/// The record of a code generator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CodegenRecord {
    /// Its name.
    #[serde(rename = "codegen")]
    pub name: String,
    /// What it takes: `name = pattern`, in the language of `tenon_plugin_api::pattern`.
    #[serde(default)]
    pub patterns: Vec<String>,
    /// Its documentation.
    #[serde(default)]
    pub doc: String,
    /// What a newer version of the format says besides.
    #[serde(flatten)]
    pub more: BTreeMap<String, serde_json::Value>,
}

impl CodegenRecord {
    /// What is wrong with its patterns.
    fn contradiction(&self) -> Option<String> {
        self.patterns.iter().find_map(|text| match text.split_once('=') {
            None => Some(format!("`{text}` is no `name = pattern`")),
            Some((_, pattern)) => pattern.parse::<Pattern>().err().map(|error| error.to_string()),
        })
    }
}

/// The record of an instrument.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InstrumentRecord {
    /// Its name.
    #[serde(rename = "instrument")]
    pub name: String,
    /// Its documentation.
    #[serde(default)]
    pub doc: String,
    /// What a newer version of the format says besides.
    #[serde(flatten)]
    pub more: BTreeMap<String, serde_json::Value>,
}

/// The record of a library.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PluginRecord {
    /// Its id, such as `tenon.graph`.
    #[serde(rename = "plugin")]
    pub id: String,
    /// Version of the records' format.
    pub format: u32,
    /// Version of the plugin.
    pub version: Version,
    /// Version of the plugin API that it was built with.
    #[serde(default = "first_api")]
    pub api: Version,
    /// What it is.
    #[serde(default)]
    pub summary: String,
    /// Who makes it.
    #[serde(default)]
    pub vendor: String,
    /// Where to read about it.
    #[serde(default)]
    pub homepage: String,
    /// Under which licence it is.
    #[serde(default)]
    pub license: String,
    /// What a newer version of the format says besides.
    #[serde(flatten)]
    pub more: BTreeMap<String, serde_json::Value>,
}

/// What a plugin was built with that does not say so.
fn first_api() -> Version {
    Version::new(1, 0, 0)
}

/// What a pass runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PassKind {
    /// The module.
    Module,
    /// Each graph function.
    Function,
    /// Each tensor program.
    Prim,
}

/// The record of a pass.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PassRecord {
    /// Its name.
    #[serde(rename = "pass")]
    pub name: String,
    /// Other names.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// What it runs on.
    pub kind: PassKind,
    /// The lowest optimization level at which it runs.
    #[serde(default)]
    pub opt_level: u8,
    /// The phase it belongs to.
    #[serde(default)]
    pub phase: String,
    /// The first phase in which it may run; any when it says nothing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub from: String,
    /// The last phase in which it may run; its own when it says nothing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub until: String,
    /// Passes whose result it needs.
    #[serde(default)]
    pub requires: Vec<Requirement>,
    /// Passes it runs after, when both run.
    #[serde(default)]
    pub after: Vec<String>,
    /// Passes it runs before, when both run.
    #[serde(default)]
    pub before: Vec<String>,
    /// Facts that hold once it has run.
    #[serde(default)]
    pub establishes: Vec<String>,
    /// Facts that no longer hold once it has run.
    #[serde(default)]
    pub destroys: Vec<String>,
    /// Facts that still hold though it changed something.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub preserves: Vec<String>,
    /// Whether running it twice is running it once.
    #[serde(default)]
    pub idempotent: bool,
    /// How much results may differ because it computes in fewer bits, as a part of a number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<f64>,
    /// Facets whose rules it asks for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asks: Vec<String>,
    /// Its options.
    #[serde(default)]
    pub options: Vec<OptionRecord>,
    /// Its documentation.
    #[serde(default)]
    pub doc: String,
    /// How it works, with what is before and after: what the file says at its top.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub header: String,
    /// What a newer version of the format says besides.
    #[serde(flatten)]
    pub more: BTreeMap<String, serde_json::Value>,
}

impl PassRecord {
    /// The first line of its documentation.
    pub fn summary(&self) -> &str {
        self.doc.lines().next().unwrap_or("")
    }

    /// What is wrong with its options.
    fn contradiction(&self) -> Option<String> {
        let mut names = HashSet::new();
        let mut twice = || self.options.iter().find(|it| !names.insert(&it.name));
        let wrong = self.options.iter().find_map(OptionRecord::contradiction);
        wrong.or_else(|| Some(format!("two options are called `{}`", twice()?.name)))
    }
}

/// A pass that another one needs: its name, options that it runs with, and the versions of its plugin that will
/// do, as in `acme.Fold ^1` or `acme.Fuse{depth=8} ^1`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Requirement {
    /// The pass's name.
    pub name: String,
    /// Its options as a pipeline has them, braces included; empty where the registry's stand.
    pub options: String,
    /// Versions of the plugin that it is from.
    pub version: Option<VersionReq>,
}

impl TryFrom<String> for Requirement {
    type Error = Reason;

    fn try_from(text: String) -> Result<Self, Reason> {
        let text = text.trim();
        let end = text.find(|c: char| c == '{' || c.is_whitespace()).unwrap_or(text.len());
        let (name, rest) = text.split_at(end);
        // A range of versions has no brace.
        let end = match (rest.starts_with('{'), rest.rfind('}')) {
            (true, Some(last)) => last + 1,
            (true, None) => return Err(format!("`{text}` has no `}}` behind its options").into()),
            (false, _) => 0,
        };
        let (options, range) = (rest[..end].to_owned(), rest[end..].trim());
        let version = match range {
            "" => None,
            range => Some(
                range
                    .parse()
                    .map_err(|error| format!("`{range}` is no range of versions: {error}"))?,
            ),
        };
        Ok(Self { name: name.to_owned(), options, version })
    }
}

impl std::fmt::Display for Requirement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.version {
            Some(range) => write!(f, "{}{} {range}", self.name, self.options),
            None => write!(f, "{}{}", self.name, self.options),
        }
    }
}

impl From<Requirement> for String {
    fn from(requirement: Requirement) -> Self {
        requirement.to_string()
    }
}

/// Why a file is no plugin that can be used.
#[derive(Debug, Error)]
pub enum ManifestError {
    /// The file cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// It is not a shared library of this kind of system.
    #[error("{}: not a 64-bit ELF shared library: {reason}", path.display())]
    NotALibrary {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// It has no manifest.
    #[error(
        "{path}: no Tenon manifest: the library has no note of owner TENON, and there is no {path}.tenon.json",
        path = path.display()
    )]
    NoManifest {
        /// The file.
        path: PathBuf,
    },
    /// The manifest is not what this host reads.
    #[error("{}: broken manifest: {reason}", path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// It is a plugin, but not for this host.
    #[error("{}: {reason}", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What it is for, what this host is, and the remedy.
        reason: String,
        /// What it says of itself.
        manifest: Box<Manifest>,
    },
    /// Others can write it, and the registry does not want such files.
    #[error(
        "{}: {reason}: whoever can write a library decides what runs here. Take the permission away, or see \
         `policy` in docs/registry.md",
        path.display()
    )]
    Untrusted {
        /// The file.
        path: PathBuf,
        /// Who can write what.
        reason: String,
        /// What it says of itself; a file beside it that others can write is not heard.
        manifest: Option<Box<Manifest>>,
    },
}

impl ManifestError {
    pub(super) fn broken(path: &Path, reason: &Reason) -> Self {
        let reason = reason.text().chars().take(LONGEST_REASON).collect();
        ManifestError::Broken { path: path.to_owned(), reason }
    }

    /// The passes that the file would offer if it could be used.
    pub fn passes(&self) -> &[PassRecord] {
        match self {
            ManifestError::Foreign { manifest, .. }
            | ManifestError::Untrusted { manifest: Some(manifest), .. } => &manifest.passes,
            _ => &[],
        }
    }
}

/// Characters that are told of why a manifest is broken: a message may quote what is wrong.
const LONGEST_REASON: usize = 500;

impl Manifest {
    /// Reads the manifest of a library. Only headers and notes are read, or the file beside one that has no notes, and
    /// nothing is executed.
    pub fn read(path: &Path) -> Result<Manifest, ManifestError> {
        let (file, _) = open_regular(path)?;
        Self::read_open(&file, path)
    }

    /// The same without the file beside it, and with no more of the operators' records than a list shows.
    pub(super) fn read_notes(path: &Path) -> Result<Manifest, ManifestError> {
        let (file, _) = open_regular(path)?;
        if let Some(manifest) = script::manifest(&file, path)? {
            return manifest.of_known_api(path);
        }
        let none = || Err(ManifestError::NoManifest { path: path.to_owned() });
        Self::read_from(&ReadCache::new(&file), path, none)
    }

    /// Reads the manifest of the library at `path`, which is open.
    pub(super) fn read_open(file: &File, path: &Path) -> Result<Manifest, ManifestError> {
        if let Some(manifest) = script::manifest(file, path)? {
            return manifest.of_known_api(path);
        }
        Self::read_from(&ReadCache::new(file), path, || sidecar::records(path))?.in_whole(path)
    }

    /// Reads the manifest of the library with these bytes, called `path` in messages.
    pub fn from_bytes(bytes: &[u8], path: &Path) -> Result<Manifest, ManifestError> {
        let none = || Err(ManifestError::NoManifest { path: path.to_owned() });
        Self::read_from(bytes, path, none)?.in_whole(path)
    }

    /// The manifest, once all of it was read.
    fn in_whole(self, path: &Path) -> Result<Manifest, ManifestError> {
        match self.operators.iter().find_map(|op| op.record().err()) {
            Some(reason) => Err(ManifestError::broken(path, reason)),
            None => Ok(self),
        }
    }

    /// `beside` gives the records of a library that has no notes.
    fn read_from<'d>(
        data: impl ReadRef<'d>,
        path: &Path,
        beside: impl FnOnce() -> Result<String, ManifestError>,
    ) -> Result<Manifest, ManifestError> {
        let not_a_library = |reason| ManifestError::NotALibrary { path: path.to_owned(), reason };
        let mut notes = Notes::read(data).map_err(|reason| not_a_library(reason.to_string()))?;
        if notes.records.is_empty() {
            notes.records = match beside() {
                // What it is not for says more than what it lacks.
                Err(ManifestError::NoManifest { .. }) if notes.machine != NATIVE_MACHINE => {
                    String::new()
                }
                records => records?,
            };
        }
        let foreign_machine = (notes.machine != NATIVE_MACHINE).then(|| {
            format!(
                "it is built for {}, and this host is {}: use a build for {}",
                machine_name(notes.machine),
                machine_name(NATIVE_MACHINE),
                machine_name(NATIVE_MACHINE)
            )
        });
        let manifest = match (Manifest::parse(notes.records), foreign_machine.clone()) {
            (Ok(manifest), _) => manifest,
            (Err(_), Some(reason)) => return Err(not_a_library(reason)),
            (Err(reason), None) => return Err(ManifestError::broken(path, &reason)),
        };
        match foreign_machine {
            Some(reason) => Err(manifest.foreign(path, reason)),
            None => manifest.of_known_api(path),
        }
    }

    /// The manifest, where it is for this host's API.
    fn of_known_api(self, path: &Path) -> Result<Manifest, ManifestError> {
        match foreign_api(&self.plugin.api) {
            Some(reason) => Err(self.foreign(path, reason)),
            None => Ok(self),
        }
    }

    fn foreign(self, path: &Path, reason: String) -> ManifestError {
        ManifestError::Foreign { path: path.to_owned(), reason, manifest: Box::new(self) }
    }

    /// Parses records, one a line: one of a plugin, any number of passes and of others, in any order. Operators' are
    /// read when they are asked for.
    pub fn parse(records: impl Into<String>) -> Result<Manifest, Reason> {
        let text = Arc::new(records.into());
        let mut plugin: Option<PluginRecord> = None;
        let mut passes: Vec<PassRecord> = Vec::new();
        let mut generators: Vec<CodegenRecord> = Vec::new();
        let mut instruments: Vec<InstrumentRecord> = Vec::new();
        let mut operators: Vec<OpOffer> = Vec::new();
        let mut rules: Vec<RuleRecord> = Vec::new();
        for record in text.lines().filter(|line| !line.is_empty()) {
            match kind_of(record)? {
                "plugin" => {
                    let record: PluginRecord = serde_json::from_str(record)?;
                    if record.format != NOTE_FORMAT {
                        return Err(format!(
                            "its format is {}, this host reads {NOTE_FORMAT}: use a newer Tenon, or a \
                             build of `{}` for this one",
                            record.format, record.id
                        )
                        .into());
                    }
                    if plugin.replace(record).is_some() {
                        return Err("two records of a plugin".into());
                    }
                }
                "pass" => passes.push(read(record, "pass", PassRecord::contradiction)?),
                "codegen" => {
                    generators.push(read(record, "code generator", CodegenRecord::contradiction)?)
                }
                "instrument" => instruments.push(read(record, "instrument", |_| None)?),
                "op" => operators.push(OpOffer::read(record, &text)?),
                "rule" => {
                    let last = rules.last().map(|rule: &RuleRecord| &rule.facet);
                    let record = RuleRecord::read(record, last)?;
                    rules.push(record);
                }
                // One that a later format adds.
                _ => {}
            }
        }
        passes.sort_by(|a, b| a.name.cmp(&b.name));
        if let Some(pair) = passes.windows(2).find(|pair| pair[0].name == pair[1].name) {
            return Err(format!("two passes are called `{}`", pair[0].name).into());
        }
        generators.sort_by(|a, b| a.name.cmp(&b.name));
        if let Some(pair) = generators.windows(2).find(|pair| pair[0].name == pair[1].name) {
            return Err(format!("two code generators are called `{}`", pair[0].name).into());
        }
        instruments.sort_by(|a, b| a.name.cmp(&b.name));
        if let Some(pair) = instruments.windows(2).find(|pair| pair[0].name == pair[1].name) {
            return Err(format!("two instruments are called `{}`", pair[0].name).into());
        }
        operators.sort_by(|a, b| a.name().cmp(b.name()));
        if let Some(what) = OpOffer::clash(&operators) {
            return Err(what.into());
        }
        rules.sort_by(|a, b| a.identity().cmp(&b.identity()));
        if let Some(pair) = rules.windows(2).find(|pair| pair[0].ties_with(&pair[1])) {
            let name = pair[0].name();
            return Err(format!(
                "two rules are for `{name}` with one benefit; give one of them more"
            )
            .into());
        }
        let plugin =
            plugin.ok_or("no record of a plugin: its lib.rs needs `plugin! { id = … }`")?;
        let interpreter = None;
        let manifest =
            Manifest { plugin, passes, generators, instruments, operators, rules, interpreter };
        match misspelled(&manifest) {
            Some(what) => Err(what.into()),
            None => Ok(manifest),
        }
    }
}

/// What the records are of that this host reads: a key of each, whose value is a name.
const KINDS: [&str; 6] = ["plugin", "pass", "codegen", "instrument", "op", "rule"];

/// What a record is of: mostly its first key tells. Empty where this host does not know it.
fn kind_of(record: &str) -> Result<&'static str, Reason> {
    let known = |key: &str| KINDS.into_iter().find(|kind| *kind == key);
    let first = record.strip_prefix("{\"").and_then(|rest| rest.split('"').next());
    if let Some(kind) = first.and_then(known) {
        return Ok(kind);
    }
    let keys: BTreeMap<String, IgnoredAny> = serde_json::from_str(record)?;
    Ok(KINDS.into_iter().find(|kind| keys.contains_key(*kind)).unwrap_or_default())
}

/// Reads a record; what is wrong with it is told with its name.
pub(super) fn read<'r, T: Deserialize<'r>>(
    record: &'r str,
    kind: &str,
    contradiction: impl FnOnce(&T) -> Option<String>,
) -> Result<T, Reason> {
    let read = serde_json::from_str::<T>(record).map_err(|error| error.to_string());
    let read = read.and_then(|record| contradiction(&record).map_or(Ok(record), Err));
    read.map_err(|what| {
        let keys: serde_json::Value = serde_json::from_str(record).unwrap_or_default();
        let name = KINDS.iter().find_map(|kind| keys.get(kind)?.as_str());
        Reason::from(format!("{kind} {}: {what}", quoted(name.unwrap_or(""))))
    })
}

/// Why a plugin that was built with this version of the API is not for this host.
fn foreign_api(api: &Version) -> Option<String> {
    (api.major != API_MAJOR).then(|| {
        format!(
            "it is built for plugin API {api}, and this host offers {API_MAJOR}.x: use Tenon \
             {}.x, or a build with tenon-plugin-api {API_MAJOR}.x",
            api.major
        )
    })
}

/// The plugin API that this host offers.
const API_MAJOR: u64 = 1;
