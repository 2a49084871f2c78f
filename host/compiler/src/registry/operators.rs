//! Operators, which are found and opened as passes are.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use tenon_plugin_api::op::OpError;

use super::{ManifestError, OpOffer, OpRecord, PluginEntry, PluginState, Registry, competing};
use crate::ir::{OpBook, OpCode, OpDef, Origin, Rule};
use crate::ops::{Combined, own_operators};
use crate::suggest::several_nearest;

/// The operators of the plugins of a registry.
#[derive(Default)]
pub(super) struct OpIndex {
    /// By name and by alias: the numbers of the plugins, and of the operators in them. Lists need none of it.
    by_name: OnceLock<HashMap<String, Vec<(usize, usize)>>>,
    /// Those that were asked for.
    opened: RwLock<HashMap<String, Result<Arc<OpDef>, OpError>>>,
}

impl OpIndex {
    fn by_name(&self, plugins: &[PluginEntry]) -> &HashMap<String, Vec<(usize, usize)>> {
        self.by_name.get_or_init(|| {
            let mut by_name: HashMap<String, Vec<(usize, usize)>> = HashMap::new();
            let usable = |entry: &&PluginEntry| entry.state == PluginState::Usable;
            for (plugin, entry) in plugins.iter().enumerate().filter(|(_, entry)| usable(entry)) {
                for (number, offer) in entry.manifest.operators.iter().enumerate() {
                    let aliases = offer.aliases().iter().map(String::as_str);
                    for name in std::iter::once(offer.name()).chain(aliases) {
                        by_name.entry(name.to_owned()).or_default().push((plugin, number));
                    }
                }
            }
            by_name
        })
    }
}

impl Registry {
    /// The operators of the plugins that may be used, and the host's own, for a context.
    pub fn operators(&self) -> Arc<dyn OpBook> {
        Combined::with_plugins(Arc::new(self.clone()))
    }

    /// The operators of the plugins that may be used.
    pub fn ops(&self) -> impl Iterator<Item = (&PluginEntry, &OpOffer)> {
        let usable = self.plugins.iter().filter(|entry| entry.state == PluginState::Usable);
        usable.flat_map(|entry| entry.manifest.operators.iter().map(move |offer| (entry, offer)))
    }

    /// What is said of the operator called `name`, by the one plugin that has it.
    pub fn find_op(&self, name: &str) -> Result<(&PluginEntry, &OpRecord), OpError> {
        let (entry, offer) = self.find_offer(name)?;
        let record = offer.record().map_err(|broken| {
            OpError::Unavailable(ManifestError::broken(&entry.path, broken).to_string())
        })?;
        Ok((entry, record))
    }

    fn find_offer(&self, name: &str) -> Result<(&PluginEntry, &OpOffer), OpError> {
        let numbers = self.op_index.by_name(&self.plugins).get(name).map_or(&[][..], Vec::as_slice);
        let found = numbers.iter().map(|&(plugin, number)| {
            let entry = &self.plugins[plugin];
            (entry, &entry.manifest.operators[number])
        });
        match *competing(found) {
            [found] => Ok(found),
            [] => Err(self.kept_out(name).unwrap_or_else(|| self.unknown_op(name))),
            [(one, _), (other, _), ..] => Err(OpError::Unavailable(format!(
                "two plugins have an operator `{name}`: {} and {}; take one of the files away",
                one.path.display(),
                other.path.display()
            ))),
        }
    }

    /// Why an operator cannot be used that a plugin has which is not used; none where no plugin has it.
    fn kept_out(&self, name: &str) -> Option<OpError> {
        let has_it = |entry: &&PluginEntry| {
            let mut offers = entry.manifest.operators.iter();
            offers.any(|it| it.name() == name || it.aliases().iter().any(|alias| alias == name))
        };
        let entry =
            self.plugins.iter().filter(has_it).find(|it| it.state != PluginState::Usable)?;
        let id = &entry.manifest.plugin.id;
        Some(OpError::Unavailable(match &entry.state {
            PluginState::PinnedAway(why) => {
                format!("{} has it and is not used: {why}", entry.path.display())
            }
            PluginState::Twice | PluginState::Usable => {
                let files = self.plugins.iter().filter(|it| it.manifest.plugin.id == *id);
                let files: Vec<String> = files.map(|it| it.path.display().to_string()).collect();
                format!(
                    "`{id}` has it, of which there are several files: {}; remove one, or choose one in registry.toml by \
                     [plugins.pin.\"{id}\"]",
                    files.join(", ")
                )
            }
        }))
    }

    fn unknown_op(&self, name: &str) -> OpError {
        let by_name = self.op_index.by_name(&self.plugins);
        let known = own_operators().chain(by_name.keys().map(String::as_str));
        let nearest = several_nearest(name, known, 3).into_iter().map(str::to_owned).collect();
        OpError::UnknownOp { name: name.to_owned(), nearest, searched: self.searched() }
    }

    fn open_op(&self, name: &str) -> Result<Arc<OpDef>, OpError> {
        let (entry, record) = self.find_op(name)?;
        let id = &entry.manifest.plugin.id;
        if let Some(set) = self.config().isolate.get(id).filter(|set| set.value) {
            return Err(OpError::Unavailable(format!(
                "{} keeps `{id}` out of this process, where its operators would run",
                set.place
            )));
        }
        let plugin = self.open_plugin(entry, None);
        let plugin = plugin.map_err(|error| OpError::Unavailable(error.to_string()))?;
        let code = plugin.operator(&record.name).ok_or_else(|| {
            OpError::Unavailable(format!("{}: the library lacks it", entry.path.display()))
        })?;
        Ok(Arc::new(OpDef::new(record.to_schema(), OpCode::Plugin(code))))
    }
}

impl OpBook for Registry {
    fn get(&self, name: &str) -> Result<Arc<OpDef>, OpError> {
        let opened = || self.op_index.opened.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = opened().get(name) {
            return known.clone();
        }
        // Two threads may both open it: they get the same library.
        let found = self.open_op(name);
        let mut opened = self.op_index.opened.write().unwrap_or_else(PoisonError::into_inner);
        opened.entry(name.to_owned()).or_insert(found).clone()
    }

    fn names(&self) -> Vec<String> {
        self.ops().map(|(_, offer)| offer.name().to_owned()).collect()
    }

    fn canonical(&self, alias: &str) -> Option<String> {
        let (_, offer) = self.find_offer(alias).ok()?;
        (offer.name() != alias).then(|| offer.name().to_owned())
    }

    fn rules(&self, facet: &str, key: &str, version: u64) -> Result<Arc<[Rule]>, OpError> {
        self.open_rules(facet, key, version)
    }

    fn missing_rule(&self, facet: &str, key: &str) -> Vec<String> {
        self.who_would_have(facet, key)
    }

    fn searched(&self) -> Vec<PathBuf> {
        let mut seen = HashSet::new();
        let own = self.config().own.iter();
        let all = self.config().dirs.iter().map(|dir| &dir.path).chain(own);
        all.filter(|path| seen.insert(*path)).cloned().collect()
    }

    fn origin(&self) -> Origin {
        let usable = self.plugins.iter().filter(|entry| entry.state == PluginState::Usable);
        let with = usable.filter(|entry| {
            !entry.manifest.operators.is_empty() || !entry.manifest.rules.is_empty()
        });
        let choices = self.config().rules.iter();
        Origin {
            libraries: with.map(|entry| (entry.path.clone(), entry.is_on())).collect(),
            choices: choices.map(|(name, set)| (name.clone(), set.value.clone())).collect(),
        }
    }
}
