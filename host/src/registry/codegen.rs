//! Code generators, which are found and opened as passes are.

use std::sync::Arc;

use super::{CodegenRecord, Plugin, PluginEntry, PluginState, Registry, competing};
use crate::border::{Generators, Run};
use crate::ir::{Function, Module, Symbol};
use crate::suggest::nearest;

impl Registry {
    /// The code generators of the plugins that may be used, with what they say of themselves.
    pub fn generators(&self) -> impl Iterator<Item = (&PluginEntry, &CodegenRecord)> {
        let usable = self.plugins.iter().filter(|entry| entry.state == PluginState::Usable);
        usable.flat_map(|entry| entry.manifest.generators.iter().map(move |record| (entry, record)))
    }

    fn generator(&self, name: &str) -> Result<(&PluginEntry, &CodegenRecord), String> {
        match *competing(self.generators().filter(|(_, record)| record.name == name)) {
            [found] => Ok(found),
            [(one, _), (other, _), ..] => Err(format!(
                "two plugins have a code generator `{name}`: {} and {}; take one of the files away",
                one.path.display(),
                other.path.display()
            )),
            [] => {
                let names = self.generators().map(|(_, record)| record.name.as_str());
                let near = nearest(name, names)
                    .map_or(String::new(), |near| format!(": did you mean `{near}`?"));
                let dirs: Vec<String> =
                    self.config().dirs.iter().map(|dir| dir.path.display().to_string()).collect();
                Err(format!(
                    "no plugin has a code generator `{name}`{near} (looked in {})",
                    dirs.join(", ")
                ))
            }
        }
    }
}

impl Registry {
    /// Opens the plugin of a code generator, which runs in this process.
    fn open_generator(&self, entry: &PluginEntry) -> Result<Arc<Plugin>, String> {
        let id = &entry.manifest.plugin.id;
        match self.config().isolate.get(id).filter(|set| set.value) {
            Some(set) => Err(format!(
                "{} keeps `{id}` out of this process, where its code generator would run",
                set.place
            )),
            None => self.open_plugin(entry, None).map_err(|error| error.to_string()),
        }
    }
}

impl Generators for Registry {
    fn patterns(&self, name: &str) -> Result<Vec<String>, String> {
        Ok(self.generator(name)?.1.patterns.clone())
    }

    fn accepts(
        &self,
        name: &str,
        run: &Arc<Run>,
        function: &Arc<Function>,
    ) -> Result<bool, String> {
        let (entry, _) = self.generator(name)?;
        let plugin = self.open_generator(entry)?;
        plugin
            .accepts(name, run, function)
            .map_err(|failure| format!("code generator `{name}`: {}", failure.message))
    }

    fn generate(
        &self,
        name: &str,
        run: &Arc<Run>,
        module: &Module,
        names: &[Symbol],
    ) -> Result<Vec<u8>, String> {
        let (entry, _) = self.generator(name)?;
        let plugin = self.open_generator(entry)?;
        plugin
            .generate(name, run, module, names)
            .map_err(|failure| format!("code generator `{name}`: {}", failure.message))
    }
}
