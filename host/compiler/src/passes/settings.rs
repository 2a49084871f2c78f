//! Options beyond one pipeline: of passes, as their manifests declare them, and of the host's own parts.
//!
//! | whose | key | declared |
//! |---|---|---|
//! | a pass's | `acme.Fuse.depth` | in its plugin's manifest |
//! | the host's | `print.elements` | by a [`HostOption`] beside the code that reads it |
//!
//! Both have a type, a default, a range and a help text, and are checked in the same way when they are set. A pass
//! reads its options; the host's own are read through the item that declares them, so none is read that is not
//! declared.

use std::collections::BTreeMap;

use super::options::Given;
use super::pipeline::{Element, Pipeline};
use super::plan::PlanError;
use crate::diagnostics::{Diagnostic, Source};
use crate::registry::{OptionRecord, OptionValue, PassId, Place, Registry, Set};
use crate::suggest::nearest;

/// An option of the host's own.
pub struct HostOption {
    /// Its key.
    pub key: &'static str,
    /// Its value when nothing is said.
    pub default: i64,
    /// The least value.
    pub min: i64,
    /// The greatest value.
    pub max: i64,
    /// What it does.
    pub help: &'static str,
}

inventory::collect!(&'static HostOption);

impl HostOption {
    /// Its value.
    pub fn get(&self, settings: &Settings) -> i64 {
        match settings.values.get(self.key).map(|set| &set.value) {
            Some(OptionValue::Int(value)) => *value,
            _ => self.default,
        }
    }

    fn record(&self) -> OptionRecord {
        let help = self.help.to_owned();
        OptionRecord { help, ..OptionRecord::new_int(self.key, self.default, self.min, self.max) }
    }
}

/// An option that may be set.
pub struct Declared {
    /// Its key.
    pub key: String,
    /// Whose it is: a plugin's id, or `tenon`.
    pub owner: String,
    /// Its type, default, range and help.
    pub record: OptionRecord,
}

/// Values of options, each with the place that set it.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    values: BTreeMap<String, Set<OptionValue>>,
}

impl Settings {
    /// All options that may be set, in the order of their keys.
    pub fn declared(registry: &Registry) -> Vec<Declared> {
        let mut all: Vec<Declared> = inventory::iter::<&HostOption>()
            .map(|option| Declared {
                key: option.key.to_owned(),
                owner: "tenon".to_owned(),
                record: option.record(),
            })
            .collect();
        // One whose name leads to another pass declares nothing.
        let is_meant =
            |&id: &PassId| !registry.find(&registry.record(id).name).is_ok_and(|found| found != id);
        for id in registry.passes().filter(is_meant) {
            let (record, owner) = (registry.record(id), &registry.plugin_of(id).manifest.plugin.id);
            all.extend(record.options.iter().map(|option| Declared {
                key: format!("{}.{}", record.name, option.name),
                owner: owner.clone(),
                record: option.clone(),
            }));
        }
        all.sort_by(|a, b| a.key.cmp(&b.key));
        all
    }

    /// Sets options as a user writes them: `acme.Fuse.depth=8, print.elements=10`. A pass is known by its
    /// aliases as well.
    pub fn set_text(&mut self, registry: &Registry, text: &str) -> Result<(), PlanError> {
        // The options of a pipeline's element have the same form.
        let braced = format!("options{{{text}}}");
        let pipeline = Pipeline::parse(&braced);
        let source = Source::new("the configuration", braced.clone());
        let elements = pipeline.map_err(|error| {
            let place = Place::in_pipeline(&source, error.at..braced.len().min(error.at + 1));
            place.error(format!("the configuration does not read well: {}", error.message), "")
        })?;
        let [Element::Pass(spec)] = elements.0.as_slice() else {
            return Err(Diagnostic::error(format!("`{text}` is no list of KEY=VALUE")).into());
        };
        for option in &spec.options {
            let name = Place::in_pipeline(&source, option.name.at.clone());
            let place = Place::in_pipeline(&source, option.at.clone());
            self.set(
                registry,
                &option.name.text,
                &name,
                Set { value: option.value.clone(), place },
            )?;
        }
        Ok(())
    }

    /// Sets an option.
    fn set(
        &mut self,
        registry: &Registry,
        key: &str,
        name: &Place,
        set: Set<OptionValue>,
    ) -> Result<(), PlanError> {
        let full = full_key(registry, key);
        let declared = Self::declared(registry);
        let Some(option) = declared.iter().find(|option| option.key == full) else {
            let error = name.error(format!("there is no option `{key}`"), "");
            let keys = declared.iter().map(|option| option.key.as_str());
            return Err(match nearest(&full, keys) {
                Some(near) => error.help(format!("did you mean `{near}`?")),
                None => error.help("`tenon options list` shows all"),
            }
            .into());
        };
        let value = option.record.fit(&set.value).map_err(|misfit| {
            let error = set.place.error(format!("option `{full}` {}", misfit.message), "");
            misfit.help.into_iter().fold(error, Diagnostic::help)
        })?;
        self.values.insert(full, Set { value, place: set.place });
        Ok(())
    }

    /// Sets an option of all passes that declare it, of whatever plugin, and says how many these are. `text` is what the user
    /// wrote.
    pub fn set_of_all(
        &mut self,
        registry: &Registry,
        option: &str,
        value: &OptionValue,
        text: &str,
    ) -> usize {
        let source = Source::new("the options", text.to_owned());
        let is_meant = |key: &str| key.rsplit_once('.').is_some_and(|(_, name)| name == option);
        let declared = Self::declared(registry).into_iter();
        let keys = declared.map(|declared| declared.key).filter(|key| is_meant(key));
        keys.map(|key| {
            let place = Place::in_pipeline(&source, 0..text.len());
            self.values.insert(key, Set { value: value.clone(), place });
        })
        .count()
    }

    /// The value that was set, by the full key.
    pub fn get(&self, key: &str) -> Option<&OptionValue> {
        self.values.get(key).map(|set| &set.value)
    }

    /// What is set of a pass.
    pub(super) fn of_pass(&self, pass: &str) -> impl Iterator<Item = Given> {
        let own = move |(key, set): (&String, &Set<OptionValue>)| {
            let name = key.strip_prefix(pass)?.strip_prefix('.')?.to_owned();
            // The option of a pass with a longer name.
            if name.contains('.') {
                return None;
            }
            let place = set.place.clone();
            Some(Given { name: Set { value: name, place }, value: set.clone() })
        };
        self.values.iter().filter_map(own)
    }
}

/// The key with the full name of its pass.
fn full_key(registry: &Registry, key: &str) -> String {
    let full = key.rsplit_once('.').and_then(|(pass, option)| {
        let id = registry.find(pass).ok()?;
        Some(format!("{}.{option}", registry.record(id).name))
    });
    full.unwrap_or_else(|| key.to_owned())
}
