//! Manifests: what a plugin says of itself, read from its file without running any of it.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::path::{Path, PathBuf};

use object::elf::FileHeader64;
use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, FileKind, ReadCache, ReadRef};
use semver::{Version, VersionReq};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use tenon_plugin_api::abi::note::{NOTE_FORMAT, NOTE_OWNER, NOTE_TYPE};
use tenon_plugin_api::pattern::Pattern;
use thiserror::Error;

use super::spelling::misspelled;
use super::{OpRecord, OptionRecord, RuleRecord, sidecar};
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
    pub operators: Vec<OpRecord>,
    /// Its rules, in the order of their facets and keys.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<RuleRecord>,
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
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let text = text.trim();
        let end = text.find(|c: char| c == '{' || c.is_whitespace()).unwrap_or(text.len());
        let (name, rest) = text.split_at(end);
        // A range of versions has no brace.
        let end = match (rest.starts_with('{'), rest.rfind('}')) {
            (true, Some(last)) => last + 1,
            (true, None) => return Err(format!("`{text}` has no `}}` behind its options")),
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
    /// The passes that the file would offer if it could be used.
    pub fn passes(&self) -> &[PassRecord] {
        match self {
            ManifestError::Foreign { manifest, .. }
            | ManifestError::Untrusted { manifest: Some(manifest), .. } => &manifest.passes,
            _ => &[],
        }
    }
}

/// Bytes of notes that a library may have. Real ones have a few kilobytes.
pub(super) const MAX_NOTES: u64 = 1 << 20;

/// Characters that are told of why a manifest is broken: a message may quote what is wrong.
const LONGEST_REASON: usize = 500;

impl Manifest {
    /// Reads the manifest of a library. Only headers and notes are read, or the file beside one that has no notes, and
    /// nothing is executed.
    pub fn read(path: &Path) -> Result<Manifest, ManifestError> {
        let (file, _) = open_regular(path)?;
        Self::read_open(&file, path)
    }

    /// The same without the file beside it.
    pub(super) fn read_notes(path: &Path) -> Result<Manifest, ManifestError> {
        let (file, _) = open_regular(path)?;
        let none = || Err(ManifestError::NoManifest { path: path.to_owned() });
        Self::read_from(&ReadCache::new(&file), path, none)
    }

    /// Reads the manifest of the library at `path`, which is open.
    pub(super) fn read_open(file: &File, path: &Path) -> Result<Manifest, ManifestError> {
        Self::read_from(&ReadCache::new(file), path, || sidecar::records(path))
    }

    /// Reads the manifest of the library with these bytes, called `path` in messages.
    pub fn from_bytes(bytes: &[u8], path: &Path) -> Result<Manifest, ManifestError> {
        let none = || Err(ManifestError::NoManifest { path: path.to_owned() });
        Self::read_from(bytes, path, none)
    }

    /// `beside` gives the records of a library that has no notes.
    fn read_from<'d>(
        data: impl ReadRef<'d>,
        path: &Path,
        beside: impl FnOnce() -> Result<Vec<String>, ManifestError>,
    ) -> Result<Manifest, ManifestError> {
        let path = || path.to_owned();
        let mut notes = Notes::read(data)
            .map_err(|reason| ManifestError::NotALibrary { path: path(), reason })?;
        if notes.texts.is_empty() {
            notes.texts = match beside() {
                // What it is not for says more than what it lacks.
                Err(ManifestError::NoManifest { .. }) if notes.machine != NATIVE_MACHINE => {
                    Vec::new()
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
        let manifest = match (Manifest::parse(&notes.texts), foreign_machine.clone()) {
            (Ok(manifest), _) => manifest,
            (Err(_), Some(reason)) => {
                return Err(ManifestError::NotALibrary { path: path(), reason });
            }
            (Err(reason), None) => {
                let reason = reason.chars().take(LONGEST_REASON).collect();
                return Err(ManifestError::Broken { path: path(), reason });
            }
        };
        match foreign_machine.or_else(|| foreign_api(&manifest.plugin.api)) {
            Some(reason) => {
                Err(ManifestError::Foreign { path: path(), reason, manifest: Box::new(manifest) })
            }
            None => Ok(manifest),
        }
    }

    /// Parses records: one of a plugin, any number of passes, in any order.
    pub fn parse(records: &[String]) -> Result<Manifest, String> {
        let mut plugin: Option<PluginRecord> = None;
        let mut passes: Vec<PassRecord> = Vec::new();
        let mut generators: Vec<CodegenRecord> = Vec::new();
        let mut instruments: Vec<InstrumentRecord> = Vec::new();
        let mut operators: Vec<OpRecord> = Vec::new();
        let mut rules: Vec<RuleRecord> = Vec::new();
        for record in records {
            match kind_of(record)? {
                "plugin" => {
                    let record: PluginRecord =
                        serde_json::from_str(record).map_err(|error| error.to_string())?;
                    if record.format != NOTE_FORMAT {
                        return Err(format!(
                            "its format is {}, this host reads {NOTE_FORMAT}: use a newer Tenon, or a \
                             build of `{}` for this one",
                            record.format, record.id
                        ));
                    }
                    if plugin.replace(record).is_some() {
                        return Err("two records of a plugin".to_owned());
                    }
                }
                "pass" => passes.push(read(record, "pass", PassRecord::contradiction)?),
                "codegen" => {
                    generators.push(read(record, "code generator", CodegenRecord::contradiction)?)
                }
                "instrument" => instruments.push(read(record, "instrument", |_| None)?),
                "op" => operators.push(read(record, "operator", OpRecord::contradiction)?),
                "rule" => rules.push(read(record, "rule of", |_| None)?),
                // One that a later format adds.
                _ => {}
            }
        }
        passes.sort_by(|a, b| a.name.cmp(&b.name));
        if let Some(pair) = passes.windows(2).find(|pair| pair[0].name == pair[1].name) {
            return Err(format!("two passes are called `{}`", pair[0].name));
        }
        generators.sort_by(|a, b| a.name.cmp(&b.name));
        if let Some(pair) = generators.windows(2).find(|pair| pair[0].name == pair[1].name) {
            return Err(format!("two code generators are called `{}`", pair[0].name));
        }
        instruments.sort_by(|a, b| a.name.cmp(&b.name));
        if let Some(pair) = instruments.windows(2).find(|pair| pair[0].name == pair[1].name) {
            return Err(format!("two instruments are called `{}`", pair[0].name));
        }
        operators.sort_by(|a, b| a.name.cmp(&b.name));
        if let Some(pair) = operators.windows(2).find(|pair| pair[0].name == pair[1].name) {
            return Err(format!("two operators are called `{}`", pair[0].name));
        }
        rules.sort_by(|a, b| a.identity().cmp(&b.identity()));
        if let Some(pair) = rules.windows(2).find(|pair| pair[0].ties_with(&pair[1])) {
            let name = pair[0].name();
            return Err(format!(
                "two rules are for `{name}` with one benefit; give one of them more"
            ));
        }
        let plugin =
            plugin.ok_or("no record of a plugin: its lib.rs needs `plugin! { id = … }`")?;
        let manifest = Manifest { plugin, passes, generators, instruments, operators, rules };
        match misspelled(&manifest) {
            Some(what) => Err(what),
            None => Ok(manifest),
        }
    }
}

/// What the records are of that this host reads: a key of each, whose value is a name.
const KINDS: [&str; 6] = ["plugin", "pass", "codegen", "instrument", "op", "rule"];

/// What a record is of: mostly its first key tells. Empty where this host does not know it.
fn kind_of(record: &str) -> Result<&'static str, String> {
    let known = |key: &str| KINDS.into_iter().find(|kind| *kind == key);
    let first = record.strip_prefix("{\"").and_then(|rest| rest.split('"').next());
    if let Some(kind) = first.and_then(known) {
        return Ok(kind);
    }
    let keys: BTreeMap<String, IgnoredAny> =
        serde_json::from_str(record).map_err(|error| error.to_string())?;
    Ok(KINDS.into_iter().find(|kind| keys.contains_key(*kind)).unwrap_or_default())
}

/// Reads a record; what is wrong with it is told with its name.
fn read<T: DeserializeOwned>(
    record: &str,
    kind: &str,
    contradiction: impl FnOnce(&T) -> Option<String>,
) -> Result<T, String> {
    let read = serde_json::from_str::<T>(record).map_err(|error| error.to_string());
    let read = read.and_then(|record| contradiction(&record).map_or(Ok(record), Err));
    read.map_err(|what| {
        let keys: serde_json::Value = serde_json::from_str(record).unwrap_or_default();
        let name = KINDS.iter().find_map(|kind| keys.get(kind)?.as_str());
        format!("{kind} {}: {what}", quoted(name.unwrap_or("")))
    })
}

/// What the host looks at in a file.
struct Notes {
    /// The architecture it is built for, as ELF numbers them.
    machine: u16,
    /// The texts of Tenon's notes.
    texts: Vec<String>,
}

impl Notes {
    fn read<'d>(data: impl ReadRef<'d>) -> Result<Notes, String> {
        match FileKind::parse(data) {
            Ok(FileKind::Elf64) => {}
            Ok(FileKind::Elf32) => return Err("it is built for a 32-bit system".to_owned()),
            Ok(_) => return Err("it is of another system's format".to_owned()),
            Err(_) if data.len() == Ok(0) => return Err("it is empty".to_owned()),
            Err(_) => return Err("it does not begin as one".to_owned()),
        }
        let wrong = |error: object::Error| error.to_string();
        let header = FileHeader64::<Endianness>::parse(data).map_err(wrong)?;
        let endian = header.endian().map_err(wrong)?;
        if header.e_type(endian) != object::elf::ET_DYN {
            return Err("it is not a shared object".to_owned());
        }
        let size = data.len().map_err(|()| "its size is not known".to_owned())?;
        let sections = u64::from(header.e_shnum(endian)) * u64::from(header.e_shentsize(endian));
        if header.e_shoff(endian).saturating_add(sections) > size {
            return Err("it is cut short: its section table is missing".to_owned());
        }
        let mut texts = Vec::new();
        let mut size_of_notes = 0u64;
        for segment in header.program_headers(endian, data).map_err(wrong)? {
            if segment.p_offset(endian).saturating_add(segment.p_filesz(endian)) > size {
                return Err("it is cut short: a segment ends behind the file".to_owned());
            }
            if segment.p_type(endian) != object::elf::PT_NOTE {
                continue;
            }
            size_of_notes += segment.p_filesz(endian);
            if size_of_notes > MAX_NOTES {
                return Err(format!("its notes are larger than {MAX_NOTES} bytes"));
            }
            let notes = segment.notes(endian, data).map_err(wrong)?;
            let Some(mut notes) = notes else { continue };
            while let Some(note) = notes.next().map_err(wrong)? {
                if note.name() == &NOTE_OWNER[..NOTE_OWNER.len() - 1]
                    && note.n_type(endian) == NOTE_TYPE
                {
                    let text = std::str::from_utf8(note.desc())
                        .map_err(|_| "a record is not UTF-8".to_owned())?;
                    // A note holds one record or several, one a line.
                    let lines = text.trim_end_matches('\0').lines();
                    texts.extend(lines.filter(|line| !line.is_empty()).map(str::to_owned));
                }
            }
        }
        Ok(Notes { machine: header.e_machine(endian), texts })
    }
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

fn machine_name(machine: u16) -> String {
    let name = match machine {
        object::elf::EM_X86_64 => "x86_64",
        object::elf::EM_AARCH64 => "aarch64",
        object::elf::EM_RISCV => "riscv64",
        object::elf::EM_PPC64 => "powerpc64",
        object::elf::EM_S390 => "s390x",
        object::elf::EM_LOONGARCH => "loongarch64",
        object::elf::EM_MIPS => "mips64",
        object::elf::EM_SPARCV9 => "sparc64",
        other => return format!("the ELF machine {other}"),
    };
    name.to_owned()
}

#[cfg(target_arch = "x86_64")]
const NATIVE_MACHINE: u16 = object::elf::EM_X86_64;
#[cfg(target_arch = "aarch64")]
const NATIVE_MACHINE: u16 = object::elf::EM_AARCH64;
