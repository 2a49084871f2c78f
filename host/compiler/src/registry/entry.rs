//! A plugin of the registry, and who turned it on.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use super::{Config, Enable, LibraryFile, LoadError, Manifest, PassRecord, Plugin, Worker};

/// A plugin in a directory.
pub struct PluginEntry {
    /// Its file, a canonical path.
    pub path: PathBuf,
    /// What it says of itself.
    pub manifest: Manifest,
    /// Whether all of its passes are on, or the named ones only.
    pub enable: Enable,
    /// Who turned it on. One that merely lies there takes nothing away from one that is on.
    pub standing: Standing,
    /// Whether its passes may be used.
    pub state: PluginState,
    /// Whether it belongs to the program, and no directory leads to it.
    pub is_own: bool,
    /// Who else can write it, where the registry wants it used all the same.
    pub untrusted: Option<String>,
    /// Why it is in quarantine, where it is.
    pub quarantined: Option<String>,
    pub(super) held: OnceLock<Result<Held, Arc<LoadError>>>,
    pub(super) opened: OnceLock<Result<Arc<Plugin>, Arc<LoadError>>>,
    /// The process of those of its passes that are isolated.
    pub(super) worker: OnceLock<Result<Arc<Worker>, Arc<LoadError>>>,
}

impl PluginEntry {
    /// Whether it has a say in what is not its own: it belongs to the program, or somebody turned it on.
    pub(super) fn is_on(&self) -> bool {
        self.is_own || self.standing > Standing::Off
    }

    /// A plugin that may be used, whose directory enables these.
    pub(super) fn new(
        path: PathBuf,
        manifest: Manifest,
        enable: Enable,
        standing: Standing,
    ) -> Self {
        Self {
            path,
            manifest,
            enable,
            standing,
            state: PluginState::Usable,
            is_own: false,
            untrusted: None,
            quarantined: None,
            held: OnceLock::new(),
            opened: OnceLock::new(),
            worker: OnceLock::new(),
        }
    }
}

/// Who turned a pass or a plugin on: of two that have a name, the one with the greater standing has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// Nobody.
    Off,
    /// The registry names it, or one of its passes.
    Named,
    /// All of its directory is on.
    All,
}

/// A plugin's file between its check and its opening.
pub(super) struct Held {
    pub(super) file: LibraryFile,
    pub(super) digest: OnceLock<Result<String, Arc<LoadError>>>,
}

/// Whether a plugin's passes may be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PluginState {
    /// They may.
    Usable,
    /// The registry wants other versions; the text says which and where.
    PinnedAway(String),
    /// There are several files of this plugin, so none of them.
    Twice,
}

impl Standing {
    /// That of a pass of this name, from a directory that enables these.
    pub(super) fn of_pass(config: &Config, enable: Enable, pass: &str) -> Standing {
        let by_name = config.passes.get(pass).and_then(|config| config.enabled.as_ref());
        match (by_name.map(|set| set.value), enable) {
            (Some(false), _) | (None, Enable::Named) => Standing::Off,
            (_, Enable::All) => Standing::All,
            (Some(true), Enable::Named) => Standing::Named,
        }
    }

    pub(super) fn of_plugin(config: &Config, enable: Enable, manifest: &Manifest) -> Standing {
        let of_pass = |pass: &PassRecord| Standing::of_pass(config, enable, &pass.name);
        match enable {
            Enable::All => Standing::All,
            Enable::Named => manifest.passes.iter().map(of_pass).max().unwrap_or(Standing::Off),
        }
    }
}

/// Those of several plugins that count: the ones of the greatest standing.
pub(super) fn competing<'e, T>(
    found: impl Iterator<Item = (&'e PluginEntry, T)>,
) -> Vec<(&'e PluginEntry, T)> {
    let mut found: Vec<_> = found.collect();
    let greatest = found.iter().map(|(entry, _)| entry.standing).max();
    found.retain(|(entry, _)| Some(entry.standing) == greatest);
    found
}
