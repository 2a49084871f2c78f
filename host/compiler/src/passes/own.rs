//! Passes that a program brings itself, by their names: what a pipeline's text may name besides the passes of plugins.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use thiserror::Error;

use super::pass::Pass;
use crate::registry::{LookupError, Registry, is_name_char};

/// Passes as values, by their names.
#[derive(Clone, Debug, Default)]
pub struct OwnPasses(BTreeMap<String, Pass>);

/// Why a pass is not registered.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum RegisterError {
    /// A pipeline's text cannot name it.
    #[error(
        "a pass cannot be registered as `{name}`: names are made of letters, digits, `_`, `.`, `-` and `+`"
    )]
    Name {
        /// The name.
        name: String,
    },
    /// The name means something else.
    #[error("a pass cannot be registered as `{name}`: {by} has that name")]
    Taken {
        /// The name.
        name: String,
        /// What has it.
        by: &'static str,
    },
}

impl OwnPasses {
    /// None.
    pub const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// Adds a pass, whose name must mean nothing else: no pass of a plugin by its name, alias or last part, no pipeline, none that was
    /// added before.
    pub fn register(&mut self, registry: &Registry, pass: Pass) -> Result<(), RegisterError> {
        let name = pass.name().to_owned();
        if name.is_empty() || !name.chars().all(is_name_char) {
            return Err(RegisterError::Name { name });
        }
        let is_of_plugin = !matches!(registry.find(&name), Err(LookupError::Unknown { .. }));
        let by = match self.0.entry(name.clone()) {
            Entry::Occupied(_) => "a pass that was registered before",
            Entry::Vacant(_) if registry.config().pipelines.contains_key(&name) => "a pipeline",
            Entry::Vacant(_) if is_of_plugin => "a plugin's pass",
            Entry::Vacant(place) => {
                place.insert(pass);
                return Ok(());
            }
        };
        Err(RegisterError::Taken { name, by })
    }

    /// The pass of this name.
    pub fn find(&self, name: &str) -> Option<&Pass> {
        self.0.get(name)
    }

    /// All names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// For who has none.
pub(super) static NONE: OwnPasses = OwnPasses::new();
