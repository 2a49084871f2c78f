//! `registry.toml`: where plugins are, which passes are on, how the pipelines are made.
//!
//! Several files may have a say, one above the other ([`layers`]); each is read with the places of its
//! values ([`read`]), and a later file overrides single values of an earlier one, so that every value
//! that is left knows the line that set it. Commands change one of them ([`edit`]).

mod edit;
mod layers;
mod place;
mod read;

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::env;
use std::path::{Path, PathBuf};
use std::time::Duration;

use semver::VersionReq;
use thiserror::Error;

pub use edit::Edit;
pub use place::{Place, Set};

use super::{OptionValue, PassLimits, ProbeLimits, TrustPolicy};
use crate::diagnostics::{Diagnostic, Diagnostics};
use crate::io::FileError;

/// What the registry's files say together.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// The files, the lowest layer first.
    pub files: Vec<PathBuf>,
    /// How far libraries are trusted.
    pub trust: TrustConfig,
    /// Directories of plugins, in search order.
    pub dirs: Vec<DirConfig>,
    /// Which builds of a plugin may be used, by the plugin's id.
    pub pins: BTreeMap<String, PinConfig>,
    /// Plugins whose passes run in a process of their own, or do not, by the plugin's id.
    pub isolate: BTreeMap<String, Set<bool>>,
    /// What runs plugins that are texts, a path or a name, by what names of their files end in.
    pub interpreters: BTreeMap<String, Set<String>>,
    /// The same where no file says anything. No file says this.
    pub own_interpreters: BTreeMap<String, String>,
    /// Folders that belong to the program: the operators of a library there can be called where no directory has a plugin of
    /// its id. No file says this.
    pub own: Vec<PathBuf>,
    /// The one file of a plugin that counts, by the plugin's id; no file says this.
    pub only_file: BTreeMap<String, PathBuf>,
    /// The plugins whose rules are asked first, by `facet:key`.
    pub rules: BTreeMap<String, Set<String>>,
    /// Settings of single passes, by name.
    pub passes: BTreeMap<String, PassConfig>,
    /// The phases' own passes, each as in a textual pipeline.
    pub phases: BTreeMap<String, Vec<Set<String>>>,
    /// The named pipelines.
    pub pipelines: BTreeMap<String, PipelineConfig>,
}

/// How far libraries are trusted.
#[derive(Clone, Debug, Default)]
pub struct TrustConfig {
    /// What happens with those that others can write; where nothing is said they are not used.
    pub policy: Option<Set<TrustPolicy>>,
    /// Seconds that opening one for the first time may take.
    pub time_limit: Option<Set<u64>>,
    /// MiB of memory that it may take.
    pub memory_limit: Option<Set<u64>>,
}

/// A directory of plugins.
#[derive(Clone, Debug)]
pub struct DirConfig {
    /// The directory, an absolute path.
    pub path: PathBuf,
    /// Which of its passes are on.
    pub enable: Enable,
    /// Where it is named.
    pub place: Place,
}

/// Which passes of a directory are on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Enable {
    /// All of them.
    All,
    /// Those that the registry or a pipeline names.
    #[default]
    Named,
}

/// Which builds of a plugin may be used.
#[derive(Clone, Debug, Default)]
pub struct PinConfig {
    /// Its versions.
    pub version: Option<Set<VersionReq>>,
    /// The digest of its file, in lowercase hexadecimal digits.
    pub sha256: Option<Set<String>>,
}

/// Settings of one pass.
#[derive(Clone, Debug)]
pub struct PassConfig {
    /// Where it is named, by the highest layer that does.
    pub place: Place,
    /// Whether it may run.
    pub enabled: Option<Set<bool>>,
    /// The plugin it is taken from, when several offer it.
    pub provider: Option<Set<String>>,
    /// The versions of that plugin.
    pub version: Option<Set<VersionReq>>,
    /// The digest of that plugin's file.
    pub sha256: Option<Set<String>>,
    /// Whether it runs in a process of its own.
    pub isolate: Option<Set<bool>>,
    /// Seconds that it may run over a module, in a process of its own.
    pub time_limit: Option<Set<u64>>,
    /// MiB of memory that its process may take meanwhile.
    pub memory_limit: Option<Set<u64>>,
    /// Values of its options.
    pub options: BTreeMap<String, Set<OptionValue>>,
}

/// A named pipeline.
#[derive(Clone, Debug)]
pub struct PipelineConfig {
    /// What it runs.
    pub content: PipelineContent,
    /// Where it is described.
    pub place: Place,
}

/// What a named pipeline runs.
#[derive(Clone, Debug)]
pub enum PipelineContent {
    /// Whole phases, in order.
    Phases(Vec<Set<String>>),
    /// Passes in order, each as in a textual pipeline.
    Passes(Vec<Set<String>>),
}

/// Why the registry's files cannot be used.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// No file was found.
    #[error(
        "no registry.toml was found; looked for {}. Give one with --registry",
        .searched.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
    )]
    NotFound {
        /// Where it was looked for.
        searched: Vec<PathBuf>,
    },
    /// A file cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// A file does not say what it should.
    #[error(transparent)]
    Invalid(#[from] Diagnostics),
}

impl ConfigError {
    /// The error as a person reads it, with the lines that it is about.
    pub fn to_diagnostics(&self) -> Diagnostics {
        match self {
            ConfigError::Invalid(diagnostics) => diagnostics.clone(),
            other => Diagnostic::error(other.to_string()).into(),
        }
    }
}

impl Config {
    /// Reads one file, which then is the whole registry.
    pub fn read(path: &Path) -> Result<Config, ConfigError> {
        read::file(path)
    }

    /// Parses the text of the file at `path`, an absolute path.
    pub fn parse(text: &str, path: &Path) -> Result<Config, ConfigError> {
        Ok(read::text(text, path)?)
    }

    /// Reads all layers: those of this program, the system and the user, and above them the files that
    /// are `named`, in order.
    pub fn load(named: &[PathBuf]) -> Result<Config, ConfigError> {
        Config::load_for(env::current_exe().ok().as_deref(), named)
    }

    /// The same with the layer of another program, which lies beside that.
    pub fn load_for(program: Option<&Path>, named: &[PathBuf]) -> Result<Config, ConfigError> {
        let mut config = Config::default();
        for path in layers::layers(program, named)? {
            config.absorb(read::file(&path)?);
        }
        Ok(config)
    }

    /// The file that a command edits: the highest layer that is named, else the user's own, which need
    /// not exist.
    pub fn file_to_edit(named: &[PathBuf]) -> Result<PathBuf, ConfigError> {
        layers::file_to_edit(named)
    }

    /// What a library may take when it is opened for the first time.
    pub(super) fn probe_limits(&self) -> ProbeLimits {
        let mut limits = ProbeLimits::default();
        if let Some(seconds) = &self.trust.time_limit {
            limits.time = Duration::from_secs(seconds.value);
        }
        if let Some(mebibytes) = &self.trust.memory_limit {
            limits.memory = mebibytes.value.saturating_mul(1 << 20);
        }
        limits
    }

    /// Puts a higher layer above this one: its values replace those of the same name, and its lists
    /// replace whole lists. Directories add up, and one that is named again is as it was named last.
    fn absorb(&mut self, above: Config) {
        self.files.extend(above.files);
        replace(&mut self.trust.policy, above.trust.policy);
        replace(&mut self.trust.time_limit, above.trust.time_limit);
        replace(&mut self.trust.memory_limit, above.trust.memory_limit);
        let mut known: HashMap<PathBuf, usize> =
            self.dirs.iter().enumerate().map(|(at, dir)| (dir.path.clone(), at)).collect();
        for dir in above.dirs {
            match known.entry(dir.path.clone()) {
                Entry::Occupied(at) => self.dirs[*at.get()] = dir,
                Entry::Vacant(new) => {
                    new.insert(self.dirs.len());
                    self.dirs.push(dir);
                }
            }
        }
        for (id, pin) in above.pins {
            let below = self.pins.entry(id).or_default();
            replace(&mut below.version, pin.version);
            replace(&mut below.sha256, pin.sha256);
        }
        self.isolate.extend(above.isolate);
        self.interpreters.extend(above.interpreters);
        for (name, pass) in above.passes {
            match self.passes.get_mut(&name) {
                Some(below) => below.absorb(pass),
                None => drop(self.passes.insert(name, pass)),
            }
        }
        self.rules.extend(above.rules);
        self.phases.extend(above.phases);
        self.pipelines.extend(above.pipelines);
    }
}

impl PassConfig {
    /// No settings, named at a place.
    pub fn at(place: Place) -> Self {
        Self {
            place,
            enabled: None,
            provider: None,
            version: None,
            sha256: None,
            isolate: None,
            time_limit: None,
            memory_limit: None,
            options: BTreeMap::new(),
        }
    }

    /// What it may take in a process of its own.
    pub(super) fn limits(&self) -> PassLimits {
        let value = |limit: &Option<Set<u64>>| limit.as_ref().map(|set| set.value);
        PassLimits::new(value(&self.time_limit), value(&self.memory_limit))
    }

    /// Where it is limited, and in what.
    pub(super) fn limit(&self) -> Option<(&Place, &'static str)> {
        let time = self.time_limit.as_ref().map(|set| (&set.place, "time"));
        time.or_else(|| self.memory_limit.as_ref().map(|set| (&set.place, "memory")))
    }

    fn absorb(&mut self, above: PassConfig) {
        self.place = above.place;
        replace(&mut self.enabled, above.enabled);
        replace(&mut self.provider, above.provider);
        replace(&mut self.version, above.version);
        replace(&mut self.sha256, above.sha256);
        replace(&mut self.isolate, above.isolate);
        replace(&mut self.time_limit, above.time_limit);
        replace(&mut self.memory_limit, above.memory_limit);
        self.options.extend(above.options);
    }
}

fn replace<T>(below: &mut Option<T>, above: Option<T>) {
    if above.is_some() {
        *below = above;
    }
}
