//! The registry: which plugins there are, which passes they offer, and under which names.
//!
//! [`config`] is `registry.toml`; [`manifest`] reads what a plugin says of itself without running it;
//! [`names`] finds a pass by name; [`trust`] says who else could have written a library; [`library_file`] keeps
//! what was checked and what is opened one file; [`load`] opens a library when the first of its passes is
//! needed, and [`layout`] compares what it says of the border with what the host says.

mod child;
mod codegen;
mod config;
mod digest;
mod guard;
mod journal;
mod last_words;
mod layout;
mod library_file;
mod load;
mod manifest;
mod names;
mod option;
mod probe;
mod sidecar;
mod spelling;
mod state;
mod trust;
mod worker;

use std::collections::{HashMap, HashSet};
use std::io::{self, ErrorKind};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use rayon::prelude::*;

pub use crate::border::PassFailure;
pub(crate) use child::limit_memory;
pub use config::{
    Config, ConfigError, DirConfig, Edit, Enable, PassConfig, PinConfig, PipelineConfig,
    PipelineContent, Place, Set, TrustConfig,
};
pub use digest::sha256;
pub use guard::Guard;
use guard::Notes;
pub use last_words::exit_at_once;
pub(crate) use last_words::{at_hand, leave, prepare as prepare_last_words};
pub use library_file::LibraryFile;
pub use load::{LoadError, Plugin, PluginInstrument};
pub use manifest::{
    CodegenRecord, InstrumentRecord, Manifest, ManifestError, PassKind, PassRecord, PluginRecord,
    Requirement,
};
use names::Names;
pub use names::{Candidate, LookupError};
pub use option::{Misfit, OptionRecord, OptionType, OptionValue, Scalar};
pub use probe::{PROBE_COMMAND, ProbeLimits, probe_here, try_out};
pub(crate) use spelling::is_name_char;
pub use state::{Quarantined, State};
pub use trust::TrustPolicy;
use trust::{Trust, trusted_users};
pub use worker::{IsolatedPass, PassLimits, WORKER_COMMAND, Worker, serve};

use self::ManifestError::{NoManifest, NotALibrary};
use crate::io::FileError;
use crate::suggest::nearest;

/// Plugins that were found, by manifest alone, and those of them that were opened. A clone is the same registry.
#[derive(Clone)]
pub struct Registry(Arc<Found>);

/// What a registry holds.
pub struct Found {
    config: Config,
    /// The plugins, in the order of their directories and file names.
    pub plugins: Vec<PluginEntry>,
    /// Files in the plugin directories that are no usable plugins, with the reason.
    pub unusable: Vec<(PathBuf, ManifestError)>,
    /// The plugin directories that are not there.
    pub missing: Vec<DirConfig>,
    names: Names,
    guard: Option<Guard>,
    notes: Notes,
}

impl Deref for Registry {
    type Target = Found;

    fn deref(&self) -> &Found {
        &self.0
    }
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
    /// Who else can write it, where the registry wants it used all the same.
    pub untrusted: Option<String>,
    /// Why it is in quarantine, where it is.
    pub quarantined: Option<String>,
    held: OnceLock<Result<Held, Arc<LoadError>>>,
    opened: OnceLock<Result<Arc<Plugin>, Arc<LoadError>>>,
    /// The process of those of its passes that are isolated.
    worker: OnceLock<Result<Arc<Worker>, Arc<LoadError>>>,
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
struct Held {
    file: LibraryFile,
    digest: OnceLock<Result<String, Arc<LoadError>>>,
}

/// A pass, by the numbers of its plugin and of its record.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct PassId {
    plugin: usize,
    pass: usize,
}

/// A pass whose plugin is open.
#[derive(Clone)]
pub enum LoadedPass {
    /// It runs in this process.
    Here {
        /// The library.
        plugin: Arc<Plugin>,
        /// The pass's number in it.
        index: u32,
    },
    /// It runs in another one.
    Isolated(IsolatedPass),
}

impl Found {
    /// Finds the plugins that a configuration leads to.
    fn of(config: Config) -> Found {
        let mut plugins = Vec::new();
        let mut unusable = Vec::new();
        let mut missing = Vec::new();
        let mut seen: HashSet<PathBuf> = HashSet::new();
        let mut trust = Trust::default();
        let policy = trust.policy(config.trust.policy.as_ref());
        for dir in &config.dirs {
            let mut paths = match libraries(&dir.path) {
                Ok(paths) => paths,
                Err(cause) if cause.kind() == ErrorKind::NotFound => {
                    missing.push(dir.clone());
                    continue;
                }
                Err(cause) => {
                    let error = FileError::Open { path: dir.path.clone(), cause };
                    unusable.push((dir.path.clone(), error.into()));
                    continue;
                }
            };
            paths.retain(|path| seen.insert(path.clone()));
            // A manifest takes microseconds to read: threads are for hundreds of them.
            let manifests: Vec<Result<Manifest, ManifestError>> =
                paths.par_iter().with_min_len(64).map(|path| Manifest::read_notes(path)).collect();
            let registry = Path::new(dir.place.file());
            let users = trusted_users(registry);
            let mut writers = |path: &Path| match policy {
                TrustPolicy::Allow => None,
                // What everybody can name is as unsafe as what everybody can write.
                _ => trust.writers(registry, &users).or_else(|| trust.writers(path, &users)),
            };
            for (path, manifest) in paths.into_iter().zip(manifests) {
                let mut untrusted = writers(&path);
                let manifest = match (manifest, sidecar::path_of(&path)) {
                    // Who may write that file is known before a byte of it is read.
                    (Err(NoManifest { .. } | NotALibrary { .. }), Some(beside)) => {
                        let beside = beside.canonicalize().unwrap_or(beside);
                        untrusted = untrusted.or_else(|| writers(&beside));
                        match &untrusted {
                            Some(reason) if policy == TrustPolicy::Deny => {
                                let (path, reason) = (path.clone(), reason.clone());
                                Err(ManifestError::Untrusted { path, reason, manifest: None })
                            }
                            _ => Manifest::read(&path),
                        }
                    }
                    (manifest, _) => manifest,
                };
                if let Ok(manifest) = &manifest
                    && let Some(only) = config.only_file.get(&manifest.plugin.id)
                    && *only != path
                {
                    continue;
                }
                match (manifest, untrusted) {
                    (Ok(manifest), Some(reason)) if policy == TrustPolicy::Deny => {
                        let manifest = Some(Box::new(manifest));
                        let error =
                            ManifestError::Untrusted { path: path.clone(), reason, manifest };
                        unusable.push((path, error));
                    }
                    (Ok(manifest), untrusted) => plugins.push(PluginEntry {
                        standing: Standing::of_plugin(&config, dir.enable, &manifest),
                        path,
                        manifest,
                        enable: dir.enable,
                        state: PluginState::Usable,
                        untrusted,
                        quarantined: None,
                        held: OnceLock::new(),
                        opened: OnceLock::new(),
                        worker: OnceLock::new(),
                    }),
                    (Err(error), _) => unusable.push((path, error)),
                }
            }
        }
        settle_states(&config, &mut plugins);
        let names = Names::new(&config, &plugins);
        Found { config, plugins, unusable, missing, names, guard: None, notes: Notes::default() }
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

    /// Reads the one file `path`, then the manifests of the plugins in its directories.
    pub fn open(path: &Path) -> Result<Registry, ConfigError> {
        Ok(Self::from_config(Config::read(path)?))
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

    /// The pass called `name`, its plugin opened if it was not.
    pub fn get_pass(&self, name: &str) -> Result<LoadedPass, GetPassError> {
        let id = self.find(name)?;
        Ok(self.load(id)?)
    }

    /// Opens the plugin of a pass, the first time it is asked for.
    pub fn load(&self, id: PassId) -> Result<LoadedPass, Arc<LoadError>> {
        let entry = self.plugin_of(id);
        let of_pass = self.config_of(id).and_then(|config| config.sha256.as_ref());
        if self.is_isolated(id) {
            let held = self.checked(entry, of_pass)?;
            return self.load_isolated(id, held).map(LoadedPass::Isolated);
        }
        if let Some((place, what)) = self.config_of(id).and_then(PassConfig::limit) {
            let reason = format!(
                "{place} limits the {what} of `{}`, and only a pass in a process of its own can be ended: set \
                 `isolate = true` as well",
                self.record(id).name
            );
            return Err(LoadError::Incompatible { path: entry.path.clone(), reason }.into());
        }
        let plugin = self.open_plugin(entry, of_pass)?;
        let index = plugin.index_of(&self.record(id).name).ok_or_else(|| {
            Arc::new(LoadError::Lie {
                path: entry.path.clone(),
                difference: format!("the library lacks the pass `{}`", self.record(id).name),
            })
        })?;
        Ok(LoadedPass::Here { plugin, index })
    }

    /// Whether a pass runs in a process of its own: what the registry says of it, else of its plugin.
    pub fn is_isolated(&self, id: PassId) -> bool {
        let of_pass = self.config_of(id).and_then(|config| config.isolate.as_ref());
        let of_plugin = || self.config.isolate.get(&self.plugin_of(id).manifest.plugin.id);
        of_pass.or_else(of_plugin).is_some_and(|set| set.value)
    }

    fn load_isolated(&self, id: PassId, held: &Held) -> Result<IsolatedPass, Arc<LoadError>> {
        let entry = self.plugin_of(id);
        let digest = self.digest(held)?;
        let start = || {
            let guard = self.guard.as_ref().ok_or_else(|| LoadError::Untried {
                path: entry.path.clone(),
                reason: "this program does not say where `tenon` is".to_owned(),
            })?;
            let limits = self.config.probe_limits();
            Worker::start(guard, &entry.path, digest, limits).map(Arc::new)
        };
        let worker = entry.worker.get_or_init(|| start().map_err(Arc::new)).clone()?;
        let config = self.config_of(id);
        let limits = config.map_or_else(|| PassLimits::new(None, None), PassConfig::limits);
        Ok(IsolatedPass { worker, name: self.record(id).name.clone(), limits })
    }

    /// Opens a plugin, the first time it is asked for. `wanted` is a digest that its file must have besides.
    fn open_plugin(
        &self,
        entry: &PluginEntry,
        wanted: Option<&Set<String>>,
    ) -> Result<Arc<Plugin>, Arc<LoadError>> {
        let held = self.checked(entry, wanted)?;
        entry.opened.get_or_init(|| self.open_held(entry, held)).clone()
    }

    /// The file of a plugin, which has the digests that the registry demands.
    fn checked<'e>(
        &self,
        entry: &'e PluginEntry,
        wanted: Option<&Set<String>>,
    ) -> Result<&'e Held, Arc<LoadError>> {
        let held = entry.held.get_or_init(|| hold(entry).map_err(Arc::new));
        let held = held.as_ref().map_err(Arc::clone)?;
        self.check_digest(entry, wanted, held)?;
        Ok(held)
    }

    fn open_held(&self, entry: &PluginEntry, held: &Held) -> Result<Arc<Plugin>, Arc<LoadError>> {
        let open = || {
            if let Some(reason) = &entry.untrusted {
                self.notes.add(format!("{}: {reason}, and it is used", entry.path.display()));
            }
            Plugin::open(&held.file, &entry.manifest)
        };
        let plugin = match &self.guard {
            Some(guard) => {
                let (digest, limits) = (self.digest(held)?, self.config.probe_limits());
                guard.open(&held.file, digest, limits, &self.notes, open)
            }
            None => open(),
        };
        Ok(Arc::new(plugin.map_err(Arc::new)?))
    }

    fn digest<'h>(&self, held: &'h Held) -> Result<&'h str, Arc<LoadError>> {
        let digest = || match &self.guard {
            Some(guard) => guard.digest(&held.file, &self.notes),
            None => Ok(held.file.sha256()?),
        };
        let digest = held.digest.get_or_init(|| digest().map_err(Arc::new));
        digest.as_deref().map_err(Arc::clone)
    }

    /// What a user should know of the plugins that were opened; each is told once.
    pub fn take_warnings(&self) -> Vec<String> {
        self.notes.take()
    }

    /// Makes an instrument of a plugin's, opening the plugin if it was not.
    pub fn create_instrument(&self, name: &str) -> Result<PluginInstrument, String> {
        let all = || {
            let usable = self.plugins.iter().filter(|it| it.state == PluginState::Usable);
            usable.flat_map(|it| it.manifest.instruments.iter().map(move |record| (it, record)))
        };
        let entry = match *competing(all().filter(|(_, record)| record.name == name)) {
            [(entry, _)] => entry,
            [] => {
                let near = nearest(name, all().map(|(_, record)| record.name.as_str()));
                let near = near.map_or(String::new(), |near| format!(": did you mean `{near}`?"));
                return Err(format!("no instrument is called `{name}`{near}"));
            }
            [(one, _), (other, _), ..] => {
                let files = [one, other].map(|entry| entry.path.display().to_string());
                return Err(format!("the instrument `{name}` is in {}", files.join(" and in ")));
            }
        };
        let plugin = self.open_plugin(entry, None).map_err(|error| error.to_string())?;
        let failed = || format!("{}: the instrument `{name}` was not made", entry.path.display());
        plugin.create_instrument(name).ok_or_else(failed)
    }

    /// Compares the file of a plugin with the digests that the registry demands of it.
    fn check_digest(
        &self,
        entry: &PluginEntry,
        wanted: Option<&Set<String>>,
        held: &Held,
    ) -> Result<(), Arc<LoadError>> {
        let pin = self.config.pins.get(&entry.manifest.plugin.id);
        let of_plugin = pin.and_then(|pin| pin.sha256.as_ref());
        for wanted in wanted.into_iter().chain(of_plugin) {
            let digest = self.digest(held)?;
            if digest != wanted.value {
                let reason = format!(
                    "its SHA-256 digest is {digest}, and {} demands {}: use the file that was \
                     pinned, or pin this one with `tenon plugins pin {}`",
                    wanted.place,
                    wanted.value,
                    entry.path.display()
                );
                return Err(LoadError::Incompatible { path: entry.path.clone(), reason }.into());
            }
        }
        Ok(())
    }

    /// The files that would offer a pass of this name if they could be used, with the reasons.
    fn unusable_offers(&self, name: &str) -> Vec<String> {
        let offers = |error: &ManifestError| {
            let named =
                |pass: &PassRecord| pass.name == name || pass.aliases.iter().any(|it| it == name);
            error.passes().iter().any(named)
        };
        let all = self.unusable.iter().filter(|(_, error)| offers(error));
        all.map(|(_, error)| error.to_string()).collect()
    }

    fn candidate(&self, id: PassId) -> Candidate {
        let entry = self.plugin_of(id);
        Candidate {
            pass: self.record(id).name.clone(),
            plugin: entry.manifest.plugin.id.clone(),
            version: entry.manifest.plugin.version.clone(),
            path: entry.path.clone(),
        }
    }
}

/// Opens the file of a plugin, which must still say what it said when it was listed.
fn hold(entry: &PluginEntry) -> Result<Held, LoadError> {
    let file = LibraryFile::open(&entry.path)?;
    match file.manifest() {
        Ok(manifest) if manifest == entry.manifest => Ok(Held { file, digest: OnceLock::new() }),
        _ => Err(LoadError::Replaced { path: entry.path.clone() }),
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

impl Standing {
    /// That of a pass of this name, from a directory that enables these.
    fn of_pass(config: &Config, enable: Enable, pass: &str) -> Standing {
        let by_name = config.passes.get(pass).and_then(|config| config.enabled.as_ref());
        match (by_name.map(|set| set.value), enable) {
            (Some(false), _) | (None, Enable::Named) => Standing::Off,
            (_, Enable::All) => Standing::All,
            (Some(true), Enable::Named) => Standing::Named,
        }
    }

    fn of_plugin(config: &Config, enable: Enable, manifest: &Manifest) -> Standing {
        let of_pass = |pass: &PassRecord| Standing::of_pass(config, enable, &pass.name);
        match enable {
            Enable::All => Standing::All,
            Enable::Named => manifest.passes.iter().map(of_pass).max().unwrap_or(Standing::Off),
        }
    }
}

/// Those of several plugins that count: the ones of the greatest standing.
fn competing<'e, T>(
    found: impl Iterator<Item = (&'e PluginEntry, T)>,
) -> Vec<(&'e PluginEntry, T)> {
    let mut found: Vec<_> = found.collect();
    let greatest = found.iter().map(|(entry, _)| entry.standing).max();
    found.retain(|(entry, _)| Some(entry.standing) == greatest);
    found
}

/// Finds the plugins that pins exclude, and those of which there is more than one file. A file of less standing is no
/// other file of one that has more.
fn settle_states(config: &Config, plugins: &mut [PluginEntry]) {
    // The greatest standing of a plugin's files, and how many have it.
    let mut files: HashMap<String, (Standing, usize)> = HashMap::new();
    for entry in plugins.iter_mut() {
        let plugin = &entry.manifest.plugin;
        let pinned = config.pins.get(&plugin.id).and_then(|pin| pin.version.as_ref());
        if let Some(Set { value: range, place }) =
            pinned.filter(|range| !range.value.matches(&plugin.version))
        {
            entry.state = PluginState::PinnedAway(format!("{place} pins version {range}"));
            continue;
        }
        let (greatest, count) = files.entry(plugin.id.clone()).or_insert((Standing::Off, 0));
        if entry.standing > *greatest {
            (*greatest, *count) = (entry.standing, 0);
        }
        *count += (entry.standing == *greatest) as usize;
    }
    for entry in plugins.iter_mut().filter(|entry| entry.state == PluginState::Usable) {
        if files[&entry.manifest.plugin.id] != (entry.standing, 1) {
            entry.state = PluginState::Twice;
        }
    }
}

/// The shared libraries in a directory, as canonical paths in the order of their names. A link that leads nowhere
/// stands for itself.
fn libraries(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let dir = dir.canonicalize()?;
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(&dir)? {
        let entry = entry?;
        let path = entry.path();
        if path.extension().is_none_or(|extension| extension != "so") {
            continue;
        }
        // In a canonical directory only a link's path is not canonical.
        let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
        paths.push(if is_link { path.canonicalize().unwrap_or(path) } else { path });
    }
    paths.sort();
    paths.dedup();
    Ok(paths)
}
