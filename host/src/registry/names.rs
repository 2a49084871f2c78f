//! Finding a pass by name: one namespace over all plugins.

use std::collections::HashMap;
use std::path::PathBuf;

use thiserror::Error;

use super::{Config, PassId, PluginEntry, Registry};

/// The names of all passes.
pub(super) struct Names {
    /// All passes, in the order of their names.
    sorted: Vec<PassId>,
    /// Ids and aliases.
    full: HashMap<String, Vec<PassId>>,
    /// The last part of each id.
    short: HashMap<String, Vec<PassId>>,
}

/// Why a name leads to no pass.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum LookupError {
    /// There is none.
    #[error("no pass is called `{name}`{}; searched in {}", near(.nearest), places(.searched))]
    Unknown {
        /// The name.
        name: String,
        /// The nearest names there are.
        nearest: Vec<String>,
        /// Where plugins were looked for.
        searched: Vec<PathBuf>,
    },
    /// Several have it.
    #[error(
        "`{name}` is offered by {}; choose one with `provider` in [passes.\"{name}\"] of \
         registry.toml, or use its full name",
        .candidates.join(" and ")
    )]
    Ambiguous {
        /// The name.
        name: String,
        /// Pass and plugin of each.
        candidates: Vec<String>,
    },
}

fn near(names: &[String]) -> String {
    match names {
        [] => String::new(),
        names => format!(" (did you mean `{}`?)", names.join("` or `")),
    }
}

fn places(dirs: &[PathBuf]) -> String {
    match dirs {
        [] => "no directory: registry.toml lists none".to_owned(),
        dirs => dirs.iter().map(|dir| dir.display().to_string()).collect::<Vec<_>>().join(", "),
    }
}

impl Names {
    pub(super) fn new(config: &Config, plugins: &[PluginEntry]) -> Self {
        let mut names = Names { sorted: Vec::new(), full: HashMap::new(), short: HashMap::new() };
        for (plugin, entry) in plugins.iter().enumerate() {
            for (pass, record) in entry.manifest.passes.iter().enumerate() {
                let id = PassId { plugin, pass };
                let wanted =
                    config.passes.get(&record.name).and_then(|pass| pass.provider.as_ref());
                if wanted.is_some_and(|provider| *provider != entry.manifest.plugin.id) {
                    continue;
                }
                names.sorted.push(id);
                for name in record.aliases.iter().chain([&record.name]) {
                    push(&mut names.full, name, id);
                }
                push(&mut names.short, last_part(&record.name), id);
            }
        }
        let name_of = |id: &PassId| &plugins[id.plugin].manifest.passes[id.pass].name;
        names.sorted.sort_by(|a, b| name_of(a).cmp(name_of(b)));
        names
    }

    pub(super) fn ids(&self) -> &[PassId] {
        &self.sorted
    }

    pub(super) fn find(&self, name: &str, registry: &Registry) -> Result<PassId, LookupError> {
        let candidates = self.full.get(name).or_else(|| self.short.get(name));
        match candidates.map(Vec::as_slice) {
            Some(&[id]) => Ok(id),
            Some(several) => Err(LookupError::Ambiguous {
                name: name.to_owned(),
                candidates: several
                    .iter()
                    .map(|&id| {
                        let plugin = registry.plugin_of(id);
                        format!(
                            "`{}` of {} ({})",
                            registry.record(id).name,
                            plugin.manifest.plugin.id,
                            plugin.path.display()
                        )
                    })
                    .collect(),
            }),
            None => Err(LookupError::Unknown {
                name: name.to_owned(),
                nearest: nearest(name, self.full.keys().chain(self.short.keys())),
                searched: registry.config().dirs.iter().map(|dir| dir.path.clone()).collect(),
            }),
        }
    }
}

fn push(map: &mut HashMap<String, Vec<PassId>>, name: &str, id: PassId) {
    let ids = map.entry(name.to_owned()).or_default();
    if !ids.contains(&id) {
        ids.push(id);
    }
}

fn last_part(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

/// Up to three names within an edit distance of a third of the length, the nearest first.
pub(crate) fn nearest<'a>(name: &str, names: impl Iterator<Item = &'a String>) -> Vec<String> {
    let limit = (name.len() / 3).max(2);
    let mut scored: Vec<(usize, &String)> = names
        .map(|other| (distance(&name.to_lowercase(), &other.to_lowercase()), other))
        .filter(|&(distance, _)| distance <= limit)
        .collect();
    scored.sort();
    scored.dedup();
    scored.into_iter().take(3).map(|(_, name)| name.clone()).collect()
}

/// Levenshtein's edit distance, row by row.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, &y) in b.iter().enumerate() {
            let changed = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}
