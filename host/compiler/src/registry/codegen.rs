//! Code generators, which are found and opened as passes are.

use std::sync::Arc;

use super::{CodegenRecord, Plugin, PluginEntry, PluginState, Registry, competing};
use crate::border::{GeneratorError, Generators, Run};
use crate::ir::{Function, Module, Symbol};
use crate::suggest::nearest;

impl Registry {
    /// The code generators of the plugins that may be used, with what they say of themselves.
    pub fn generators(&self) -> impl Iterator<Item = (&PluginEntry, &CodegenRecord)> {
        let usable = self.plugins.iter().filter(|entry| entry.state == PluginState::Usable);
        usable.flat_map(|entry| entry.manifest.generators.iter().map(move |record| (entry, record)))
    }

    fn generator(&self, name: &str) -> Result<(&PluginEntry, &CodegenRecord), GeneratorError> {
        match *competing(self.generators().filter(|(_, record)| record.name == name)) {
            [found] => Ok(found),
            [(one, _), (other, _), ..] => Err(GeneratorError::Twice {
                name: name.to_owned(),
                files: [one.path.clone(), other.path.clone()],
            }),
            [] => {
                let names = self.generators().map(|(_, record)| record.name.as_str());
                Err(GeneratorError::Unknown {
                    name: name.to_owned(),
                    nearest: nearest(name, names).map(str::to_owned),
                    searched: self.config().dirs.iter().map(|dir| dir.path.clone()).collect(),
                })
            }
        }
    }
}

impl Registry {
    /// Opens the plugin of a code generator, which runs in this process.
    fn open_generator(&self, entry: &PluginEntry) -> Result<Arc<Plugin>, GeneratorError> {
        let id = &entry.manifest.plugin.id;
        match self.config().isolate.get(id).filter(|set| set.value) {
            Some(set) => {
                Err(GeneratorError::Isolated { id: id.clone(), place: set.place.to_string() })
            }
            None => {
                self.open_plugin(entry, None).map_err(|error| GeneratorError::Load(Box::new(error)))
            }
        }
    }
}

impl Generators for Registry {
    fn patterns(&self, name: &str) -> Result<Vec<String>, GeneratorError> {
        Ok(self.generator(name)?.1.patterns.clone())
    }

    fn accepts(
        &self,
        name: &str,
        run: &Arc<Run>,
        function: &Arc<Function>,
    ) -> Result<bool, GeneratorError> {
        let (entry, _) = self.generator(name)?;
        let plugin = self.open_generator(entry)?;
        plugin
            .accepts(name, run, function)
            .map_err(|failure| GeneratorError::Failed { name: name.to_owned(), failure })
    }

    fn generate(
        &self,
        name: &str,
        run: &Arc<Run>,
        module: &Module,
        names: &[Symbol],
    ) -> Result<Vec<u8>, GeneratorError> {
        let (entry, _) = self.generator(name)?;
        let plugin = self.open_generator(entry)?;
        plugin
            .generate(name, run, module, names)
            .map_err(|failure| GeneratorError::Failed { name: name.to_owned(), failure })
    }
}
