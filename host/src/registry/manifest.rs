//! Manifests: what a plugin says of itself, read from its file without running any of it.

use std::path::{Path, PathBuf};

use object::read::elf::{ElfFile64, FileHeader, ProgramHeader};
use object::{Endianness, ReadCache};
use serde::{Deserialize, Serialize};
use tenon_plugin_api::abi::note::{NOTE_FORMAT, NOTE_OWNER, NOTE_TYPE};
use thiserror::Error;

/// What a plugin says of itself.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Manifest {
    /// The library.
    pub plugin: PluginRecord,
    /// Its passes, in the order of their names.
    pub passes: Vec<PassRecord>,
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
    pub version: semver::Version,
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
    /// Passes whose result it needs.
    #[serde(default)]
    pub requires: Vec<String>,
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
    /// Whether running it twice is running it once.
    #[serde(default)]
    pub idempotent: bool,
    /// Its options.
    #[serde(default)]
    pub options: Vec<OptionRecord>,
    /// Its documentation.
    #[serde(default)]
    pub doc: String,
}

impl PassRecord {
    /// The first line of its documentation.
    pub fn summary(&self) -> &str {
        self.doc.lines().next().unwrap_or("")
    }
}

/// An option of a pass.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OptionRecord {
    /// Its name.
    pub name: String,
    /// `int`, `float`, `bool` or `str`.
    #[serde(rename = "type")]
    pub ty: String,
    /// Its value when nothing is said.
    pub default: serde_json::Value,
    /// Its least value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<serde_json::Value>,
    /// Its greatest value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<serde_json::Value>,
    /// What it does.
    #[serde(default)]
    pub help: String,
}

/// Why a file is no plugin that can be used.
#[derive(Debug, Error)]
pub enum ManifestError {
    /// The file cannot be read.
    #[error("{}: cannot be read: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is not a shared library of this kind of system.
    #[error("{}: not a 64-bit ELF shared library: {reason}", path.display())]
    NotALibrary {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// It has no manifest.
    #[error("{}: no Tenon manifest: the library has no note of owner TENON", path.display())]
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
}

/// Bytes of notes that a library may have. Real ones have a few kilobytes.
const MAX_NOTES: u64 = 1 << 20;

impl Manifest {
    /// Reads the manifest of a library. Only headers and notes are read, and nothing is executed.
    pub fn read(path: &Path) -> Result<Manifest, ManifestError> {
        let io = |source| ManifestError::Io { path: path.to_owned(), source };
        let metadata = std::fs::metadata(path).map_err(io)?;
        if !metadata.is_file() {
            return Err(ManifestError::NotALibrary {
                path: path.to_owned(),
                reason: "it is not a regular file".to_owned(),
            });
        }
        let file = std::fs::File::open(path).map_err(io)?;
        let records = notes(&file)
            .map_err(|reason| ManifestError::NotALibrary { path: path.to_owned(), reason })?;
        if records.is_empty() {
            return Err(ManifestError::NoManifest { path: path.to_owned() });
        }
        Manifest::parse(&records)
            .map_err(|reason| ManifestError::Broken { path: path.to_owned(), reason })
    }

    /// Parses records: one of a plugin, any number of passes, in any order.
    pub fn parse(records: &[String]) -> Result<Manifest, String> {
        let mut plugin: Option<PluginRecord> = None;
        let mut passes: Vec<PassRecord> = Vec::new();
        for record in records {
            let value: serde_json::Value =
                serde_json::from_str(record).map_err(|error| error.to_string())?;
            if value.get("plugin").is_some() {
                let record: PluginRecord =
                    serde_json::from_value(value).map_err(|error| error.to_string())?;
                if record.format != NOTE_FORMAT {
                    return Err(format!(
                        "its format is {}, this host reads {NOTE_FORMAT}",
                        record.format
                    ));
                }
                if plugin.replace(record).is_some() {
                    return Err("two records of a plugin".to_owned());
                }
            } else if value.get("pass").is_some() {
                passes.push(serde_json::from_value(value).map_err(|error| error.to_string())?);
            }
            // A record of another kind is one that a later format adds.
        }
        passes.sort_by(|a, b| a.name.cmp(&b.name));
        if let Some(pair) = passes.windows(2).find(|pair| pair[0].name == pair[1].name) {
            return Err(format!("two passes are called `{}`", pair[0].name));
        }
        let plugin =
            plugin.ok_or("no record of a plugin: its lib.rs needs `plugin! { id = … }`")?;
        Ok(Manifest { plugin, passes })
    }
}

/// The texts of Tenon's notes in an ELF file.
fn notes(file: &std::fs::File) -> Result<Vec<String>, String> {
    let cache = ReadCache::new(file);
    let elf: ElfFile64<'_, Endianness, _> =
        ElfFile64::parse(&cache).map_err(|error| error.to_string())?;
    let endian = elf.endian();
    let header = elf.elf_header();
    if header.e_type(endian) != object::elf::ET_DYN {
        return Err("it is not a shared object".to_owned());
    }
    let machine = header.e_machine(endian);
    if machine != NATIVE_MACHINE {
        return Err(format!(
            "it is built for another architecture (ELF machine {machine}, here {NATIVE_MACHINE})"
        ));
    }
    let mut texts = Vec::new();
    for segment in elf.elf_program_headers() {
        if segment.p_type(endian) != object::elf::PT_NOTE {
            continue;
        }
        if segment.p_filesz(endian) > MAX_NOTES {
            return Err(format!("its notes are larger than {MAX_NOTES} bytes"));
        }
        let notes = segment.notes(endian, &cache).map_err(|error| error.to_string())?;
        let Some(mut notes) = notes else { continue };
        while let Some(note) = notes.next().map_err(|error| error.to_string())? {
            if note.name() == &NOTE_OWNER[..NOTE_OWNER.len() - 1]
                && note.n_type(endian) == NOTE_TYPE
            {
                let text = std::str::from_utf8(note.desc())
                    .map_err(|_| "a record is not UTF-8".to_owned())?;
                texts.push(text.to_owned());
            }
        }
    }
    Ok(texts)
}

#[cfg(target_arch = "x86_64")]
const NATIVE_MACHINE: u16 = object::elf::EM_X86_64;
#[cfg(target_arch = "aarch64")]
const NATIVE_MACHINE: u16 = object::elf::EM_AARCH64;
