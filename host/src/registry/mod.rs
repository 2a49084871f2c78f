//! The registry: which plugins there are, which passes they offer, and under which names.
//!
//! [`config`] is `registry.toml`; [`manifest`] reads what a plugin says of itself without running it;
//! [`names`] finds a pass by name; [`load`] opens a library when the first of its passes is needed.

mod config;
mod load;
mod manifest;
mod names;

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

pub use config::{Config, ConfigError, Enable, PassConfig, PhaseConfig, PipelineConfig};
pub use load::{LoadError, PassFailure, Plugin};
pub use manifest::{Manifest, ManifestError, OptionRecord, PassKind, PassRecord, PluginRecord};
pub use names::LookupError;
use names::Names;

/// Plugins that were found, by manifest alone, and those of them that were opened.
pub struct Registry {
    config: Config,
    /// The plugins, in the order of their directories and file names.
    pub plugins: Vec<PluginEntry>,
    /// Files in the plugin directories that are no usable plugins, with the reason.
    pub unusable: Vec<(PathBuf, ManifestError)>,
    names: Names,
}

/// A plugin in a directory.
pub struct PluginEntry {
    /// Its file, a canonical path.
    pub path: PathBuf,
    /// What it says of itself.
    pub manifest: Manifest,
    /// Whether all of its passes are on, or the named ones only.
    pub enable: Enable,
    opened: OnceLock<Result<Arc<Plugin>, Arc<LoadError>>>,
}

/// A pass, by the numbers of its plugin and of its record.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct PassId {
    plugin: usize,
    pass: usize,
}

/// A pass whose plugin is open.
#[derive(Clone)]
pub struct LoadedPass {
    /// The library.
    pub plugin: Arc<Plugin>,
    /// The pass's number in it.
    pub index: u32,
}

impl Registry {
    /// Reads `registry.toml` at `path`, then the manifests of the plugins in its directories.
    pub fn open(path: &Path) -> Result<Registry, ConfigError> {
        Ok(Self::from_config(Config::read(path)?))
    }

    /// Finds the plugins that a configuration leads to.
    pub fn from_config(config: Config) -> Registry {
        let mut plugins = Vec::new();
        let mut unusable = Vec::new();
        for dir in &config.dirs {
            for path in libraries(&dir.path) {
                match Manifest::read(&path) {
                    Ok(manifest) => plugins.push(PluginEntry {
                        path,
                        manifest,
                        enable: dir.enable,
                        opened: OnceLock::new(),
                    }),
                    Err(error) => unusable.push((path, error)),
                }
            }
        }
        let names = Names::new(&config, &plugins);
        Registry { config, plugins, unusable, names }
    }

    /// The configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// All passes, in the order of their names.
    pub fn passes(&self) -> impl Iterator<Item = PassId> {
        self.names.ids().iter().copied()
    }

    /// What a pass says of itself.
    pub fn record(&self, id: PassId) -> &PassRecord {
        &self.plugins[id.plugin].manifest.passes[id.pass]
    }

    /// The plugin that a pass is from.
    pub fn plugin_of(&self, id: PassId) -> &PluginEntry {
        &self.plugins[id.plugin]
    }

    /// Whether a pass may run: its directory enables all, or the registry enables it by name, and the
    /// registry does not disable it.
    pub fn is_enabled(&self, id: PassId) -> bool {
        match self.config.passes.get(&self.record(id).name).and_then(|pass| pass.enabled) {
            Some(enabled) => enabled,
            None => self.plugin_of(id).enable == Enable::All,
        }
    }

    /// The pass with this id, alias, or last part of an id where only one has it.
    pub fn find(&self, name: &str) -> Result<PassId, LookupError> {
        self.names.find(name, self)
    }

    /// The pass called `name`, its plugin opened if it was not.
    pub fn get_pass(&self, name: &str) -> Result<LoadedPass, GetPassError> {
        let id = self.find(name)?;
        Ok(self.load(id)?)
    }

    /// Opens the plugin of a pass, the first time it is asked for.
    pub fn load(&self, id: PassId) -> Result<LoadedPass, Arc<LoadError>> {
        let entry = self.plugin_of(id);
        let plugin = entry
            .opened
            .get_or_init(|| {
                Plugin::open(&entry.path, &entry.manifest).map(Arc::new).map_err(Arc::new)
            })
            .clone()?;
        let index = plugin.index_of(&self.record(id).name).ok_or_else(|| {
            Arc::new(LoadError::Lie {
                path: entry.path.clone(),
                difference: format!("the library lacks the pass `{}`", self.record(id).name),
            })
        })?;
        Ok(LoadedPass { plugin, index })
    }
}

/// Why a pass cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum GetPassError {
    /// There is no such pass, or more than one.
    #[error(transparent)]
    Lookup(#[from] LookupError),
    /// Its plugin cannot be used.
    #[error(transparent)]
    Load(#[from] Arc<LoadError>),
}

/// The shared libraries in a directory, as canonical paths in the order of their names. A directory that
/// is not there has none.
fn libraries(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(dir) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries
        .filter_map(|entry| entry.ok())
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "so"))
        .filter_map(|path| path.canonicalize().ok())
        .collect();
    paths.sort();
    paths.dedup();
    paths
}
