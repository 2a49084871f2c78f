//! Finding a pass by name: one namespace over all plugins.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::path::PathBuf;

use semver::Version;
use thiserror::Error;

use super::{Config, PassId, PluginEntry, PluginState, Registry, Standing};
use crate::diagnostics::Diagnostic;
use crate::suggest::nearest;

/// The names of all passes.
pub(super) struct Names {
    /// The passes that may be used, in the order of their names, then of their plugins.
    sorted: Vec<PassId>,
    /// By their ids, by their aliases, by the last parts of their ids: what an earlier one leads to counts.
    by_name: [HashMap<String, Vec<PassId>>; 3],
    /// Why the registry's files keep a pass from being used.
    excluded: HashMap<PassId, String>,
}

/// A pass as several plugins may offer it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its name.
    pub pass: String,
    /// The id of its plugin.
    pub plugin: String,
    /// The version of its plugin.
    pub version: Version,
    /// The file of its plugin.
    pub path: PathBuf,
}

/// Why a name leads to no pass.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum LookupError {
    /// There is none.
    #[error("no pass is called `{name}`")]
    Unknown {
        /// The name.
        name: String,
        /// The nearest name there is.
        nearest: Option<String>,
        /// Where plugins were looked for.
        searched: Vec<PathBuf>,
    },
    /// Several have it.
    #[error("`{name}` is offered by several plugins or files")]
    Ambiguous {
        /// The name.
        name: String,
        /// Those that offer it.
        candidates: Vec<Candidate>,
    },
    /// The registry's files exclude whatever offers it.
    #[error("`{name}` is offered, but not as the registry wants it")]
    Excluded {
        /// The name.
        name: String,
        /// Those that offer it, and why each will not do.
        candidates: Vec<(Candidate, String)>,
    },
    /// Only files that cannot be used offer it.
    #[error("`{name}` is offered by a plugin that cannot be used: {}", .reasons.join("; "))]
    Unusable {
        /// The name.
        name: String,
        /// Files and reasons.
        reasons: Vec<String>,
    },
}

impl LookupError {
    /// The error as a person reads it, with the remedy.
    pub fn to_diagnostic(&self) -> Diagnostic {
        self.explain(Diagnostic::error(self.to_string()))
    }

    /// Adds to a diagnostic what there is, and the remedy.
    pub(crate) fn explain(&self, mut diagnostic: Diagnostic) -> Diagnostic {
        match self {
            LookupError::Unknown { nearest, searched, .. } => {
                if let Some(near) = nearest {
                    diagnostic = diagnostic.help(format!("did you mean `{near}`?"));
                }
                diagnostic.note(match searched.as_slice() {
                    [] => "the registry names no directory of plugins".to_owned(),
                    dirs => format!("searched in {}", told(dirs)),
                })
            }
            LookupError::Ambiguous { candidates, .. } => candidates
                .iter()
                .fold(diagnostic, |all, each| all.note(each.to_string()))
                .help(remedy(candidates)),
            LookupError::Excluded { candidates, .. } => candidates
                .iter()
                .fold(diagnostic, |all, (each, why)| all.note(format!("{each}: {why}"))),
            LookupError::Unusable { .. } => diagnostic,
        }
    }
}

/// Directories as a message tells them, with those that are not there.
fn told(dirs: &[PathBuf]) -> String {
    const MOST: usize = 8;
    let is_there = |dir: &PathBuf| if dir.exists() { "" } else { ", which is not there" };
    let one = |dir: &PathBuf| format!("{}{}", dir.display(), is_there(dir));
    let mut told: Vec<String> = dirs.iter().take(MOST).map(one).collect();
    if dirs.len() > MOST {
        told.push(format!("and {} more", dirs.len() - MOST));
    }
    told.join(", ")
}

/// What to write so that one of several is meant.
fn remedy(candidates: &[Candidate]) -> String {
    let [first, second, ..] = candidates else { return String::new() };
    if first.pass != second.pass {
        return format!("use the full name, such as `{}`", first.pass);
    }
    if first.plugin != second.plugin {
        return format!(
            "choose one in registry.toml, such as [passes.\"{}\"] provider = \"{}\"",
            first.pass, first.plugin
        );
    }
    if first.version != second.version {
        return format!(
            "remove a file, or choose one in registry.toml, such as [plugins.pin.\"{}\"] version = \
             \"={}\"; `tenon plugins pin FILE` writes it",
            first.plugin, first.version
        );
    }
    format!("remove one of the files: both are `{}` {}", first.plugin, first.version)
}

impl fmt::Display for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` of {} {} ({})", self.pass, self.plugin, self.version, self.path.display())
    }
}

impl Names {
    pub(super) fn new(config: &Config, plugins: &[PluginEntry]) -> Self {
        let mut names =
            Names { sorted: Vec::new(), by_name: Default::default(), excluded: HashMap::new() };
        for (plugin, entry) in plugins.iter().enumerate() {
            let pinned_away = match &entry.state {
                PluginState::PinnedAway(why) => Some(why.clone()),
                PluginState::Usable | PluginState::Twice => None,
            };
            for (pass, record) in entry.manifest.passes.iter().enumerate() {
                let id = PassId { plugin, pass };
                let why = pinned_away.clone().or_else(|| unwanted(config, entry, &record.name));
                match why {
                    Some(why) => drop(names.excluded.insert(id, why)),
                    None => names.sorted.push(id),
                }
                let [full, aliases, short] = &mut names.by_name;
                push(full, &record.name, id);
                record.aliases.iter().for_each(|alias| push(aliases, alias, id));
                push(short, last_part(&record.name), id);
            }
        }
        names.sorted.sort_by(|a, b| {
            let key = |id: &PassId| {
                let manifest = &plugins[id.plugin].manifest;
                (&manifest.passes[id.pass].name, &manifest.plugin.id, id.plugin)
            };
            key(a).cmp(&key(b))
        });
        names
    }

    pub(super) fn ids(&self) -> &[PassId] {
        &self.sorted
    }

    pub(super) fn find(&self, name: &str, registry: &Registry) -> Result<PassId, LookupError> {
        let offers =
            self.by_name.each_ref().map(|ids| ids.get(name).map_or(&[][..], Vec::as_slice));
        let best = offers.map(|ids| self.best(ids, registry));
        let on = best.iter().flatten().find(|(standing, _)| *standing != Standing::Off);
        // What the registry excludes by its full name, no alias of what is off stands for.
        let is_open = |(ids, best): &(&&[PassId], &Option<_>)| ids.is_empty() || best.is_some();
        let mut open = offers.iter().zip(&best).take_while(is_open);
        let off = open.find_map(|(_, best)| best.as_ref());
        let name = name.to_owned();
        match on.or(off).map(|(_, ids)| ids.as_slice()) {
            Some(&[id]) => Ok(id),
            Some(several) => Err(LookupError::Ambiguous {
                name,
                candidates: several.iter().map(|&id| registry.candidate(id)).collect(),
            }),
            None => Err(self.why_none(name, offers.concat(), registry)),
        }
    }

    /// Of the passes that the registry's files do not exclude, those of the greatest standing.
    fn best(&self, ids: &[PassId], registry: &Registry) -> Option<(Standing, Vec<PassId>)> {
        let wanted = || ids.iter().copied().filter(|id| !self.excluded.contains_key(id));
        let greatest = wanted().map(|id| registry.standing(id)).max()?;
        Some((greatest, wanted().filter(|&id| registry.standing(id) == greatest).collect()))
    }

    /// Why a name leads to nothing that may be used.
    fn why_none(&self, name: String, mut offered: Vec<PassId>, registry: &Registry) -> LookupError {
        offered.retain(|id| self.excluded.contains_key(id));
        offered.sort_unstable();
        offered.dedup();
        if !offered.is_empty() {
            let excluded = |&id| (registry.candidate(id), self.excluded[&id].clone());
            let candidates = offered.iter().map(excluded).collect();
            return LookupError::Excluded { name, candidates };
        }
        match registry.unusable_offers(&name) {
            reasons if !reasons.is_empty() => LookupError::Unusable { name, reasons },
            _ => LookupError::Unknown {
                nearest: nearest(&name, self.usable().into_iter()).map(str::to_owned),
                searched: registry.config().dirs.iter().map(|dir| dir.path.clone()).collect(),
                name,
            },
        }
    }

    /// The names of passes that may be used, in the order of their letters.
    fn usable(&self) -> BTreeSet<&str> {
        let is_usable = |ids: &Vec<PassId>| ids.iter().any(|id| !self.excluded.contains_key(id));
        let names = self.by_name.iter().flatten();
        names.filter(|(_, ids)| is_usable(ids)).map(|(name, _)| name.as_str()).collect()
    }
}

/// Why the pass of this name is not wanted from a plugin.
fn unwanted(config: &Config, entry: &PluginEntry, pass: &str) -> Option<String> {
    let config = config.passes.get(pass)?;
    let plugin = &entry.manifest.plugin;
    if let Some(provider) = config.provider.as_ref().filter(|set| set.value != plugin.id) {
        return Some(format!("{} wants it from {}", provider.place, provider.value));
    }
    let range = config.version.as_ref()?;
    (!range.value.matches(&plugin.version))
        .then(|| format!("{} wants version {}", range.place, range.value))
}

fn push(map: &mut HashMap<String, Vec<PassId>>, name: &str, id: PassId) {
    let ids = map.entry(name.to_owned()).or_default();
    // The names of a pass come one after the other.
    if ids.last() != Some(&id) {
        ids.push(id);
    }
}

fn last_part(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}
