//! Reproducers: all that it takes to see a pass fail again, in one file that `tenon opt` runs.

use serde::{Deserialize, Serialize};

use super::plan::Plan;
use crate::registry::{Registry, sha256};

/// What stands on top of a module's text, as comments: how it was run, by whom, and what went wrong.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reproducer {
    /// The passes that run over the module, as a pipeline's text.
    pub pipeline: String,
    /// The optimization level.
    pub opt_level: u8,
    /// Passes that do not run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disable: Vec<String>,
    /// Passes that run whatever their level.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub require: Vec<String>,
    /// What watched the passes and may stop them, as the options of `tenon opt` say it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub instrument: Vec<String>,
    /// Whether the module was checked after each pass.
    #[serde(default, skip_serializing_if = "is_false")]
    pub verify_each: bool,
    /// The seed with which results were compared after each pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validate: Option<u64>,
    /// The target, as `--target` takes it.
    pub target: String,
    /// What went wrong.
    pub error: String,
    /// The plugins of these passes.
    #[serde(default)]
    pub plugins: Vec<PluginDigest>,
}

fn is_false(value: &bool) -> bool {
    !value
}

/// A plugin as it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PluginDigest {
    /// Its id.
    pub id: String,
    /// Its version.
    pub version: String,
    /// The digest of its file, in hexadecimal.
    pub sha256: String,
}

/// The first line of a reproducer.
const FIRST: &str = "//! tenon reproducer 1";
const COMMENT: &str = "//! ";

impl Reproducer {
    /// The steps of a plan from one on, up to where the next phase begins; `self` says how they ran.
    pub fn with_plan(self, registry: &Registry, plan: &Plan, from: usize) -> Self {
        let suffix = plan.suffix(from);
        let mut plugins = Vec::new();
        for id in suffix.passes().filter_map(|step| step.pass.id()) {
            let entry = registry.plugin_of(id);
            let record = &entry.manifest.plugin;
            if plugins.iter().any(|known: &PluginDigest| known.id == record.id) {
                continue;
            }
            if let Ok(sha256) = sha256(&entry.path) {
                let (id, version) = (record.id.clone(), record.version.to_string());
                plugins.push(PluginDigest { id, version, sha256 });
            }
        }
        Self { pipeline: suffix.to_string(), plugins, ..self }
    }

    /// The lines on top of the module's text.
    pub fn to_comments(&self) -> String {
        let fields = toml::to_string(self).expect("texts and numbers have a place in TOML");
        let mut text = format!("{FIRST}\n");
        for line in fields.lines() {
            text.push_str(format!("{COMMENT}{line}").trim_end());
            text.push('\n');
        }
        text
    }

    /// Reads them back; `None` when the text is no reproducer's.
    pub fn of_text(text: &str) -> Option<Self> {
        let lines = text.strip_prefix(FIRST)?.strip_prefix('\n')?.lines();
        let fields: Vec<&str> = lines
            .map_while(|line| match line.strip_prefix(COMMENT.trim_end()) {
                Some(field) => Some(field.strip_prefix(' ').unwrap_or(field)),
                None => None,
            })
            .collect();
        toml::from_str(&fields.join("\n")).ok()
    }

    /// The plugins that are not what they were, or not there.
    pub fn other_plugins(&self, registry: &Registry) -> Vec<&PluginDigest> {
        let is_same = |known: &&PluginDigest| {
            registry.plugins.iter().any(|entry| {
                entry.manifest.plugin.id == known.id
                    && sha256(&entry.path).is_ok_and(|digest| digest == known.sha256)
            })
        };
        self.plugins.iter().filter(|known| !is_same(known)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{PluginDigest, Reproducer};

    #[test]
    fn what_is_written_is_read_back() {
        let digest = PluginDigest {
            id: "acme.passes".to_owned(),
            version: "1.2.3".to_owned(),
            sha256: "00ff".to_owned(),
        };
        let reproducer = Reproducer {
            pipeline: "acme.A{name=\"x\"}, acme.B".to_owned(),
            opt_level: 3,
            disable: vec!["acme.C".to_owned()],
            require: Vec::new(),
            instrument: vec!["acme.Count".to_owned()],
            verify_each: true,
            validate: Some(7),
            target: "llvm".to_owned(),
            error: "pass `acme.A`: two\nlines and a \"quote\"".to_owned(),
            plugins: vec![digest.clone(), digest],
        };
        let text = format!("{}fn @main(%x: f32[4]) {{ ret %x }}\n", reproducer.to_comments());
        assert!(
            text.lines()
                .take_while(|line| !line.starts_with("fn"))
                .all(|line| line.starts_with("//!"))
        );
        assert_eq!(Reproducer::of_text(&text), Some(reproducer));
        assert_eq!(Reproducer::of_text("fn @main(%x: f32[4]) { ret %x }"), None);
    }
}
