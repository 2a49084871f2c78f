//! `registry.toml`: where plugins are, which passes are on, how the pipelines are made.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use thiserror::Error;

/// The registry's file, checked.
#[derive(Clone, Debug)]
pub struct Config {
    /// The file.
    pub path: PathBuf,
    /// Directories of plugins, in search order, as absolute paths.
    pub dirs: Vec<DirConfig>,
    /// Settings of single passes, by id.
    pub passes: BTreeMap<String, PassConfig>,
    /// The phases' own passes.
    pub phases: BTreeMap<String, PhaseConfig>,
    /// The named pipelines.
    pub pipelines: BTreeMap<String, PipelineConfig>,
}

/// A directory of plugins.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DirConfig {
    /// The directory; relative to the file that names it.
    pub path: PathBuf,
    /// Which of its passes are on.
    #[serde(default)]
    pub enable: Enable,
}

/// Which passes of a directory are on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Enable {
    /// All of them.
    All,
    /// Those that the registry or a pipeline names.
    #[default]
    Named,
}

/// Settings of one pass.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PassConfig {
    /// Whether it may run.
    pub enabled: Option<bool>,
    /// The plugin it is taken from, when several offer it.
    pub provider: Option<String>,
    /// Values of its options.
    #[serde(default)]
    pub options: BTreeMap<String, toml::Value>,
}

/// The passes of a phase.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PhaseConfig {
    /// Passes in order, each as in a textual pipeline.
    pub passes: Vec<String>,
}

/// A named pipeline.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PipelineConfig {
    /// Whole phases, in order.
    #[serde(default)]
    pub phases: Vec<String>,
    /// Passes in order, each as in a textual pipeline; instead of phases.
    #[serde(default)]
    pub passes: Vec<String>,
}

/// Why `registry.toml` cannot be used.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// No file was found.
    #[error(
        "no registry.toml was found; looked for {}. Give one with --registry",
        .searched.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
    )]
    NotFound {
        /// Where it was looked for.
        searched: Vec<PathBuf>,
    },
    /// It cannot be read.
    #[error("{}: cannot be read: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It does not say what it should.
    #[error("{}: {message}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// What is wrong and where, with the line shown.
        message: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawConfig {
    schema: u32,
    #[serde(default)]
    plugins: RawPlugins,
    #[serde(default)]
    passes: BTreeMap<String, PassConfig>,
    #[serde(default)]
    phases: BTreeMap<String, PhaseConfig>,
    #[serde(default)]
    pipelines: BTreeMap<String, PipelineConfig>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPlugins {
    #[serde(default)]
    dir: Vec<DirConfig>,
}

/// Version of the file's layout.
const SCHEMA: u32 = 1;

impl Config {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Config, ConfigError> {
        let io = |source| ConfigError::Io { path: path.to_owned(), source };
        let text = std::fs::read_to_string(path).map_err(io)?;
        let path = path.canonicalize().map_err(io)?;
        Self::parse(&text, &path)
    }

    /// Parses the text of the file at `path`, an absolute path.
    pub fn parse(text: &str, path: &Path) -> Result<Config, ConfigError> {
        let invalid = |message: String| ConfigError::Invalid { path: path.to_owned(), message };
        let raw: RawConfig = toml::from_str(text).map_err(|error| invalid(error.to_string()))?;
        if raw.schema != SCHEMA {
            return Err(invalid(format!(
                "its schema is {}, this version of Tenon reads {SCHEMA}",
                raw.schema
            )));
        }
        let known = |phase: &String| crate::ir::PHASES.contains(&phase.as_str());
        let named = raw.pipelines.values().flat_map(|pipeline| &pipeline.phases);
        if let Some(phase) = raw.phases.keys().chain(named).find(|phase| !known(phase)) {
            return Err(invalid(format!(
                "there is no phase `{phase}`; the phases are {}",
                crate::ir::PHASES.join(", ")
            )));
        }
        for (name, pipeline) in &raw.pipelines {
            if pipeline.phases.is_empty() == pipeline.passes.is_empty() {
                return Err(invalid(format!(
                    "pipeline `{name}` has either `phases` or `passes`, and not both"
                )));
            }
        }
        let folder = path.parent().unwrap_or(Path::new("/"));
        let dirs = raw
            .plugins
            .dir
            .into_iter()
            .map(|dir| DirConfig { path: folder.join(&dir.path), ..dir })
            .collect();
        Ok(Config {
            path: path.to_owned(),
            dirs,
            passes: raw.passes,
            phases: raw.phases,
            pipelines: raw.pipelines,
        })
    }

    /// The file to read when none is named: `TENON_REGISTRY`, else `registry.toml` beside the program or
    /// in one of the two folders above it, else in `/etc/tenon`. Never the working directory.
    pub fn default_path() -> Result<PathBuf, ConfigError> {
        if let Some(path) = std::env::var_os("TENON_REGISTRY") {
            return Ok(path.into());
        }
        let program = std::env::current_exe().and_then(|path| path.canonicalize()).ok();
        let mut searched: Vec<PathBuf> = program
            .iter()
            .flat_map(|path| path.ancestors().skip(1).take(3))
            .map(|folder| folder.join("registry.toml"))
            .collect();
        searched.push("/etc/tenon/registry.toml".into());
        match searched.iter().find(|path| path.is_file()) {
            Some(path) => Ok(path.clone()),
            None => Err(ConfigError::NotFound { searched }),
        }
    }
}
