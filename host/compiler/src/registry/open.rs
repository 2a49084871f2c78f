//! Opens plugins, each when the first of its passes is needed.

use std::ffi::OsString;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use tenon_plugin_api::rule::{Facet, Interpreters};

use super::entry::Held;
use super::trust::{Trust, trusted_users};
use super::{
    IsolatedPass, LibraryFile, LoadError, LookupError, ManifestError, PassConfig, PassId,
    PassLimits, Place, Plugin, PluginEntry, PluginInstrument, PluginState, Reason, Registry, Set,
    TrustPolicy, Worker, competing,
};
use crate::border::interpreter_of;
use crate::ir::Cx;
use crate::suggest::nearest;

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

impl Registry {
    /// The pass called `name`, its plugin opened if it was not.
    pub fn get_pass(&self, name: &str) -> Result<LoadedPass, GetPassError> {
        let id = self.find(name)?;
        Ok(self.load(id)?)
    }

    /// Opens the plugin of a pass, the first time it is asked for.
    pub fn load(&self, id: PassId) -> Result<LoadedPass, Arc<LoadError>> {
        let entry = self.plugin_of(id);
        let of_pass = self.config_of(id).and_then(|config| config.sha256.as_ref());
        if self.is_isolated(id) || entry.manifest.interpreter.is_some() {
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
            self.note_if_untrusted(entry);
            let (command, threads) = match &entry.manifest.interpreter {
                Some(extension) => (self.interpreter(entry, extension)?, None),
                None => {
                    let guard = self.guard.as_ref().ok_or_else(|| LoadError::Untried {
                        path: entry.path.clone(),
                        reason: "this program does not say where `tenon` is".to_owned(),
                    })?;
                    (Worker::command(guard), guard.threads())
                }
            };
            let limits = self.config.probe_limits();
            Worker::start(command, &entry.path, digest, limits, threads).map(Arc::new)
        };
        let worker = entry.worker.get_or_init(|| start().map_err(Arc::new)).clone()?;
        let config = self.config_of(id);
        let limits = config.map_or_else(|| PassLimits::new(None, None), PassConfig::limits);
        Ok(IsolatedPass { worker, name: self.record(id).name.clone(), limits })
    }

    /// The command that runs texts whose names end so.
    fn interpreter(
        &self,
        entry: &PluginEntry,
        extension: &str,
    ) -> Result<Vec<OsString>, LoadError> {
        let said = self.config.interpreters.get(extension);
        if let Some(Set { place, .. }) = said {
            self.check_who_says(entry, place)?;
        }
        let said = said.map(|set| &set.value);
        let wanted = said.or_else(|| self.config.own_interpreters.get(extension));
        let wanted = wanted.map(String::as_str);
        let cx = Cx::with_operators(self.operators());
        let found = interpreter_of(&cx, extension, wanted);
        let command = found.and_then(|command| {
            command.ok_or_else(|| {
                let who = self.who_would_have(Interpreters::NAME, extension);
                let who =
                    if who.is_empty() { String::new() } else { format!(": {}", who.join("; ")) };
                format!("no plugin runs files that end in `.{extension}`{who}")
            })
        });
        match command {
            Ok(command) => Ok(command.into_iter().map(OsString::from).collect()),
            Err(reason) => Err(LoadError::Incompatible { path: entry.path.clone(), reason }),
        }
    }

    /// Whoever names an interpreter decides what runs here, as whoever can write a library does.
    fn check_who_says(&self, entry: &PluginEntry, place: &Place) -> Result<(), LoadError> {
        let mut trust = Trust::default();
        let policy = trust.policy(self.config.trust.policy.as_ref());
        let file = Path::new(place.file());
        let Some(writers) = trust.writers(file, &trusted_users(file)) else { return Ok(()) };
        let reason = format!("{place} names its interpreter, and {writers}");
        match policy {
            TrustPolicy::Allow => Ok(()),
            TrustPolicy::Warn => {
                self.notes.add(format!("{}: {reason}, and it is used", entry.path.display()));
                Ok(())
            }
            TrustPolicy::Deny => {
                let reason = format!(
                    "{reason}. Take the permission away, or see `policy` in docs/registry.md"
                );
                Err(LoadError::Incompatible { path: entry.path.clone(), reason })
            }
        }
    }

    fn note_if_untrusted(&self, entry: &PluginEntry) {
        if let Some(reason) = &entry.untrusted {
            self.notes.add(format!("{}: {reason}, and it is used", entry.path.display()));
        }
    }

    /// Opens a plugin, the first time it is asked for. `wanted` is a digest that its file must have besides.
    pub(super) fn open_plugin(
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
            self.note_if_untrusted(entry);
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

    /// Makes an instrument of a plugin's, opening the plugin if it was not.
    pub fn create_instrument(&self, name: &str) -> Result<PluginInstrument, Reason> {
        let all = || {
            let usable = self.plugins.iter().filter(|it| it.state == PluginState::Usable);
            usable.flat_map(|it| it.manifest.instruments.iter().map(move |record| (it, record)))
        };
        let entry = match *competing(all().filter(|(_, record)| record.name == name)) {
            [(entry, _)] => entry,
            [] => {
                let near = nearest(name, all().map(|(_, record)| record.name.as_str()));
                let near = near.map_or(String::new(), |near| format!(": did you mean `{near}`?"));
                return Err(format!("no instrument is called `{name}`{near}").into());
            }
            [(one, _), (other, _), ..] => {
                let files = [one, other].map(|entry| entry.path.display().to_string());
                return Err(
                    format!("the instrument `{name}` is in {}", files.join(" and in ")).into()
                );
            }
        };
        let plugin =
            self.open_plugin(entry, None).map_err(|error| Reason::from(error.to_string()))?;
        let path = entry.path.display();
        let failed = || Reason::from(format!("{path}: the instrument `{name}` was not made"));
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
}

/// Opens the file of a plugin, which must still say what it said when it was listed.
fn hold(entry: &PluginEntry) -> Result<Held, LoadError> {
    let file = LibraryFile::open(&entry.path)?;
    match file.manifest() {
        Ok(manifest) if manifest == entry.manifest => Ok(Held { file, digest: OnceLock::new() }),
        // What is read late of a manifest may be what is broken.
        Err(ManifestError::Broken { path, reason }) => {
            Err(LoadError::Incompatible { path, reason: format!("broken manifest: {reason}") })
        }
        _ => Err(LoadError::Replaced { path: entry.path.clone() }),
    }
}
