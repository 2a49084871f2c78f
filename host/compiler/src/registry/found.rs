//! What a registry knows: the plugins that there are, and their passes by name.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::guard::Notes;
use super::names::Names;
use super::operators::OpIndex;
use super::rules::RuleIndex;
use super::{
    Candidate, Config, ConfigError, DirConfig, Enable, Guard, LibraryFile, LookupError, Manifest,
    ManifestError, PassConfig, PassRecord, Place, PluginEntry, PluginState, Set, Standing, State,
};
use crate::diagnostics::{Diagnostic, Diagnostics, Source};
use crate::ir::Origin;
use crate::suggest::nearest;

/// Plugins that were found, by manifest alone, and those of them that were opened. A clone is the same registry.
#[derive(Clone)]
pub struct Registry(Arc<Found>);

/// What a registry holds.
pub struct Found {
    pub(super) config: Config,
    /// The plugins, in the order of their directories and file names.
    pub plugins: Vec<PluginEntry>,
    /// Files in the plugin directories that are no usable plugins, with the reason.
    pub unusable: Vec<(PathBuf, ManifestError)>,
    /// The plugin directories that are not there.
    pub missing: Vec<DirConfig>,
    pub(super) names: Names,
    pub(super) op_index: OpIndex,
    pub(super) rule_index: RuleIndex,
    pub(super) guard: Option<Guard>,
    pub(super) notes: Notes,
}

impl Deref for Registry {
    type Target = Found;

    fn deref(&self) -> &Found {
        &self.0
    }
}

/// A pass, by the numbers of its plugin and of its record.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct PassId {
    pub(super) plugin: usize,
    pub(super) pass: usize,
}

/// Why an id leads to no plugin.
#[derive(Debug, thiserror::Error)]
pub enum PluginLookupError {
    /// There is none.
    #[error(
        "no plugin is called `{id}`{}",
        .nearest.as_ref().map_or(String::new(), |near| format!(": did you mean `{near}`?"))
    )]
    Unknown {
        /// The id.
        id: String,
        /// The nearest id there is.
        nearest: Option<String>,
    },
    /// It has several files.
    #[error(
        "`{id}` has several files, name one: {}",
        .files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(", ")
    )]
    Several {
        /// The id.
        id: String,
        /// The files.
        files: Vec<PathBuf>,
    },
}

impl Found {
    /// These plugins and no others.
    pub(super) fn with(config: Config, plugins: Vec<PluginEntry>) -> Found {
        Found {
            names: Names::new(&config, &plugins),
            op_index: OpIndex::default(),
            rule_index: RuleIndex::default(),
            config,
            plugins,
            unusable: Vec::new(),
            missing: Vec::new(),
            guard: None,
            notes: Notes::default(),
        }
    }
}

impl Registry {
    /// Finds the plugins that a configuration leads to. Without a guard, as in a program that uses this crate and
    /// is not `tenon`, libraries are opened right away, and no pass can be isolated.
    pub fn from_config(config: Config) -> Registry {
        Registry(Arc::new(Found::of(config)))
    }

    /// As [`Registry::from_config`], with a guard: a library that was never opened is first opened in a child
    /// process, and one that did harm is not opened again.
    pub fn guarded(config: Config, mut guard: Guard) -> Registry {
        let mut found = Found::of(config);
        guard.begin().into_iter().for_each(|note| found.notes.add(note));
        let quarantine = guard.state().map(State::quarantine).unwrap_or_default();
        for library in quarantine {
            let mut entries = found.plugins.iter_mut();
            let entry = entries.find(|entry| entry.path.display().to_string() == library.file);
            let Some(entry) = entry else { continue };
            let file = LibraryFile::open(&entry.path).ok();
            let digest = file.and_then(|file| guard.digest(&file, &found.notes).ok());
            entry.quarantined = digest.filter(|it| *it == library.sha256).map(|_| library.reason);
        }
        found.guard = Some(guard);
        Registry(Arc::new(found))
    }

    /// A registry of these libraries alone, all of them on.
    pub fn of_files(paths: &[PathBuf]) -> Result<Registry, ManifestError> {
        let entry = |path: &PathBuf| {
            let manifest = Manifest::read(path)?;
            Ok(PluginEntry::new(path.clone(), manifest, Enable::All, Standing::All))
        };
        let plugins = paths.iter().map(entry).collect::<Result<_, ManifestError>>()?;
        Ok(Registry(Arc::new(Found::with(Config::default(), plugins))))
    }

    /// A registry of the libraries that a book is from, with its choices of rules.
    pub fn of_origin(origin: &Origin) -> Result<Registry, ManifestError> {
        let entry = |(path, is_on): &(PathBuf, bool)| {
            let manifest = Manifest::read(path)?;
            let standing = if *is_on { Standing::All } else { Standing::Off };
            Ok(PluginEntry::new(path.clone(), manifest, Enable::Named, standing))
        };
        let plugins = origin.libraries.iter().map(entry).collect::<Result<_, ManifestError>>()?;
        let place = Place::in_pipeline(&Source::new("registry.toml", ""), 0..0);
        let chosen = |(name, provider): (&String, &String)| {
            (name.clone(), Set { value: provider.clone(), place: place.clone() })
        };
        let rules = origin.choices.iter().map(chosen).collect();
        let config = Config { rules, ..Config::default() };
        Ok(Registry(Arc::new(Found::with(config, plugins))))
    }

    /// Reads the one file `path`, then the manifests of the plugins in its directories.
    pub fn open(path: &Path) -> Result<Registry, ConfigError> {
        Ok(Self::from_config(Config::read(path)?))
    }

    /// Looks whether each plugin that is isolated as a whole has passes alone: operators, rules and code generators run in this
    /// process. A registry that nobody has looked at says so when one of them is asked for.
    ///
    /// # Errors
    /// The lines that isolate other plugins.
    pub fn check_isolation(&self) -> Result<(), ConfigError> {
        let mut refused: Vec<Diagnostic> = Vec::new();
        for (id, set) in self.config.isolate.iter().filter(|(_, set)| set.value) {
            let manifests = self.plugins.iter().map(|entry| &entry.manifest);
            let own = manifests.filter(|manifest| manifest.plugin.id == *id);
            let has = |count: fn(&Manifest) -> usize| own.clone().any(|own| count(own) > 0);
            let kinds = [
                ("operators", has(|own| own.operators.len())),
                ("rules", has(|own| own.rules.len())),
                ("code generators", has(|own| own.generators.len())),
            ];
            let kinds: Vec<&str> =
                kinds.iter().filter(|(_, has)| *has).map(|(kind, _)| *kind).collect();
            if !kinds.is_empty() {
                let kinds = kinds.join(" and ");
                let text = format!("`{id}` has {kinds}, which run in this process");
                let help =
                    "isolate its passes by their names: [passes.\"…\"] with `isolate = true`";
                refused.push(set.place.error(text, "it cannot be isolated as a whole").help(help));
            }
        }
        match refused.is_empty() {
            true => Ok(()),
            false => Err(ConfigError::Invalid(Diagnostics(refused))),
        }
    }

    /// What guards it.
    pub fn guard(&self) -> Option<&Guard> {
        self.guard.as_ref()
    }

    /// The configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The plugin with this id, in its one file.
    pub fn find_plugin(&self, id: &str) -> Result<&PluginEntry, PluginLookupError> {
        let all: Vec<&PluginEntry> =
            self.plugins.iter().filter(|entry| entry.manifest.plugin.id == id).collect();
        let mut usable = all.iter().filter(|entry| entry.state == PluginState::Usable);
        match usable.next() {
            Some(entry) => Ok(entry),
            None if all.is_empty() => {
                let ids = self.plugins.iter().map(|entry| entry.manifest.plugin.id.as_str());
                let nearest = nearest(id, ids).map(str::to_owned);
                Err(PluginLookupError::Unknown { id: id.to_owned(), nearest })
            }
            None => Err(PluginLookupError::Several {
                id: id.to_owned(),
                files: all.iter().map(|entry| entry.path.clone()).collect(),
            }),
        }
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
        self.standing(id) != Standing::Off
    }

    /// Who turned a pass on.
    pub fn standing(&self, id: PassId) -> Standing {
        Standing::of_pass(&self.config, self.plugin_of(id).enable, &self.record(id).name)
    }

    /// What the registry's files say of a pass.
    pub fn config_of(&self, id: PassId) -> Option<&PassConfig> {
        self.config.passes.get(&self.record(id).name)
    }

    /// Whether the registry's files enable or disable a pass by name.
    pub fn enabled_by(&self, id: PassId) -> Option<&Set<bool>> {
        self.config_of(id)?.enabled.as_ref()
    }

    /// The pass with this id, alias, or last part of an id where only one has it.
    pub fn find(&self, name: &str) -> Result<PassId, LookupError> {
        self.names.find(name, self)
    }

    /// What a user should know of the plugins that were opened; each is told once.
    pub fn take_warnings(&self) -> Vec<String> {
        self.notes.take()
    }

    /// The files that would offer a pass of this name if they could be used, with the reasons.
    pub(super) fn unusable_offers(&self, name: &str) -> Vec<String> {
        let offers = |error: &ManifestError| {
            let named =
                |pass: &PassRecord| pass.name == name || pass.aliases.iter().any(|it| it == name);
            error.passes().iter().any(named)
        };
        let all = self.unusable.iter().filter(|(_, error)| offers(error));
        all.map(|(_, error)| error.to_string()).collect()
    }

    pub(super) fn candidate(&self, id: PassId) -> Candidate {
        let entry = self.plugin_of(id);
        Candidate {
            pass: self.record(id).name.clone(),
            plugin: entry.manifest.plugin.id.clone(),
            version: entry.manifest.plugin.version.clone(),
            path: entry.path.clone(),
        }
    }
}
