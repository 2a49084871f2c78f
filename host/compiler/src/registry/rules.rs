//! Rules: which of those that plugins offer for a key are asked, and in what order.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use tenon_plugin_api::op::OpError;

use super::{PluginEntry, PluginState, Registry, RuleRecord};
use crate::ir::Rule;
use crate::suggest::nearest;

/// The rules of a facet for a key in a version, or why they cannot be used.
type Found = Result<Arc<[Rule]>, OpError>;

/// The numbers of plugins, and of the rules in them, by facet, by key.
type ByKey = BTreeMap<Arc<str>, HashMap<String, Vec<(usize, usize)>>>;

/// The rules of the plugins of a registry.
#[derive(Default)]
pub(super) struct RuleIndex {
    /// Made when a rule is first looked for.
    by_key: OnceLock<ByKey>,
    /// Those that were asked for.
    opened: RwLock<HashMap<(String, String, u64), Found>>,
}

impl RuleIndex {
    fn by_key(&self, plugins: &[PluginEntry]) -> &ByKey {
        self.by_key.get_or_init(|| {
            let mut by_key = ByKey::new();
            let usable = |entry: &&PluginEntry| entry.state == PluginState::Usable;
            for (plugin, entry) in plugins.iter().enumerate().filter(|(_, entry)| usable(entry)) {
                for (number, record) in entry.manifest.rules.iter().enumerate() {
                    let of_facet = by_key.entry(record.facet.clone()).or_default();
                    of_facet.entry(record.key.clone()).or_default().push((plugin, number));
                }
            }
            by_key
        })
    }
}

impl Registry {
    /// What the plugins that may be used say of their rules, by facet and key, the one that is asked first in front.
    pub fn rule_records(&self) -> Vec<(&PluginEntry, &RuleRecord)> {
        let mut all = Vec::new();
        for (facet, keys) in self.rule_index.by_key(&self.plugins) {
            let mut keys: Vec<&String> = keys.keys().collect();
            keys.sort_unstable();
            all.extend(keys.into_iter().flat_map(|key| self.ordered(facet, key)));
        }
        all
    }

    /// The rules of a facet for a key in the order in which they are asked: the chosen plugin's first, then by benefit.
    pub fn rules_for(&self, facet: &str, key: &str) -> Vec<(&PluginEntry, &RuleRecord)> {
        self.ordered(facet, key)
    }

    fn ordered(&self, facet: &str, key: &str) -> Vec<(&PluginEntry, &RuleRecord)> {
        let numbers =
            self.rule_index.by_key(&self.plugins).get(facet).and_then(|keys| keys.get(key));
        let numbers = numbers.map_or(&[][..], Vec::as_slice);
        let found = numbers.iter().map(|&(plugin, record)| {
            let entry = &self.plugins[plugin];
            (entry, &entry.manifest.rules[record])
        });
        let mut found: Vec<_> =
            found.filter(|(entry, record)| self.takes_part(entry, record)).collect();
        found.sort_by_key(|(entry, record)| {
            let is_chosen = self.is_chosen(entry, record);
            (!is_chosen, std::cmp::Reverse(record.benefit), record.since, &entry.path)
        });
        found
    }

    /// A plugin that merely lies in a directory has a say in what is its own: its operators, and domains of model formats.
    fn takes_part(&self, entry: &PluginEntry, record: &RuleRecord) -> bool {
        let operators = &entry.manifest.operators;
        let is_of_own_operator =
            || operators.binary_search_by(|op| op.name().cmp(&record.key)).is_ok();
        entry.is_on()
            || record.key.contains("::")
            || is_of_own_operator()
            || self.is_chosen(entry, record)
    }

    /// Whether the registry says that a plugin's rule for its key is asked first.
    pub fn is_chosen(&self, entry: &PluginEntry, record: &RuleRecord) -> bool {
        let choice = self.config().rules.get(&record.name());
        choice.is_some_and(|set| set.value == entry.manifest.plugin.id)
    }

    /// What is wrong with the rules of a facet for a key: a choice of what is not there, or two that come first.
    pub fn rule_conflict(&self, facet: &str, key: &str, version: Option<u64>) -> Option<String> {
        let mut all = self.ordered(facet, key);
        if let Some(choice) = self.config().rules.get(&format!("{facet}:{key}"))
            && !all.iter().any(|(entry, record)| self.is_chosen(entry, record))
        {
            return Some(format!(
                "{} takes the rule `{facet}:{key}` from `{}`, which has none that may be used",
                choice.place, choice.value
            ));
        }
        all.retain(|(_, record)| version.is_none_or(|version| record.holds_in(version)));
        let tied = all.windows(2).find(|pair| {
            let [(one, first), (other, second)] = pair else { return false };
            self.is_chosen(one, first) == self.is_chosen(other, second) && first.ties_with(second)
        });
        let [(one, record), (other, _)] = tied? else { return None };
        Some(format!(
            "two plugins give the rule `{}` with the benefit {}: {} ({}) and {} ({}); say in registry.toml which comes \
             first: [rules.\"{}\"] provider = \"{}\"",
            record.name(),
            record.benefit,
            one.manifest.plugin.id,
            one.path.display(),
            other.manifest.plugin.id,
            other.path.display(),
            record.name(),
            one.manifest.plugin.id
        ))
    }

    /// What the registry's files say of rules that no plugin has, each with its place and the name that is nearest.
    pub fn choices_of_nothing(&self) -> Vec<String> {
        let choices = &self.config().rules;
        if choices.is_empty() {
            return Vec::new();
        }
        let by_key = self.rule_index.by_key(&self.plugins);
        let is_known = |name: &str| {
            let (facet, key) = name.split_once(':')?;
            by_key.get(facet)?.get(key)
        };
        let idle = choices.iter().filter(|(name, _)| is_known(name).is_none());
        let names: Vec<String> = self.rule_records().iter().map(|(_, rule)| rule.name()).collect();
        let told = idle.map(|(name, choice)| {
            let near = nearest(name, names.iter().map(String::as_str));
            let near = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
            format!("{}: no plugin has a rule `{name}`{near}", choice.place)
        });
        told.collect()
    }

    /// Who has a rule of a facet for a key, and why it is not asked, or in which versions it holds.
    pub(super) fn who_would_have(&self, facet: &str, key: &str) -> Vec<String> {
        let mut told = Vec::new();
        for entry in &self.plugins {
            let rules = entry.manifest.rules.iter();
            for rule in rules.filter(|rule| *rule.facet == *facet && rule.key == key) {
                let why = match &entry.state {
                    PluginState::PinnedAway(why) => format!("is not used: {why}"),
                    PluginState::Twice => "is not used: there are several files of it".to_owned(),
                    PluginState::Usable if self.takes_part(entry, rule) => {
                        let since = rule.since.unwrap_or(0);
                        let until = rule.until.map_or("…".to_owned(), |until| until.to_string());
                        format!("has it for the versions {since} to {until}")
                    }
                    PluginState::Usable => format!(
                        "has it and is not on: enable its directory, or write [rules.\"{}\"] provider = \"{}\"",
                        rule.name(),
                        entry.manifest.plugin.id
                    ),
                };
                let id = &entry.manifest.plugin.id;
                told.push(format!("`{id}` ({}) {why}", entry.path.display()));
            }
        }
        told.dedup();
        told
    }

    /// The rules of a facet for a key in a version, their plugins opened if they were not.
    pub(super) fn open_rules(&self, facet: &str, key: &str, version: u64) -> Found {
        let is_known = self
            .rule_index
            .by_key(&self.plugins)
            .get(facet)
            .is_some_and(|keys| keys.contains_key(key));
        if !is_known && !self.config().rules.contains_key(&format!("{facet}:{key}")) {
            return Ok(Arc::new([]));
        }
        let name = (facet.to_owned(), key.to_owned(), version);
        let opened = || self.rule_index.opened.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = opened().get(&name) {
            return known.clone();
        }
        // Two threads may both open them: they get the same libraries.
        let found = self.newly_opened(facet, key, version);
        let mut opened = self.rule_index.opened.write().unwrap_or_else(PoisonError::into_inner);
        opened.entry(name).or_insert(found).clone()
    }

    fn newly_opened(&self, facet: &str, key: &str, version: u64) -> Found {
        if let Some(conflict) = self.rule_conflict(facet, key, Some(version)) {
            return Err(OpError::Conflict(conflict));
        }
        let holds = |record: &RuleRecord| record.holds_in(version);
        let all = self.ordered(facet, key);
        all.into_iter()
            .filter(|(_, record)| holds(record))
            .map(|(entry, record)| {
                let id = &entry.manifest.plugin.id;
                if let Some(set) = self.config().isolate.get(id).filter(|set| set.value) {
                    return Err(OpError::Conflict(format!(
                        "{} keeps `{id}` out of this process, where its rule `{}` would run",
                        set.place,
                        record.name()
                    )));
                }
                let plugin = self.open_plugin(entry, None);
                let plugin = plugin.map_err(|error| OpError::Conflict(error.to_string()))?;
                let number = entry.manifest.rules.iter().position(|own| own == record);
                let code = number.and_then(|number| plugin.rule(number)).ok_or_else(|| {
                    OpError::Conflict(format!("{}: the library lacks it", entry.path.display()))
                })?;
                Ok(Rule { provider: id.as_str().into(), code })
            })
            .collect()
    }
}
