//! The conformance kit: what every plugin should do, tried on one of them.
//!
//! All passes of the plugin run in a process of its own, so that whatever they do is a line of the report. Passes
//! that they require, and those of earlier phases, are the registry's.
//!
//! | check | what holds |
//! |---|---|
//! | manifest | the file has one, of this architecture and API |
//! | opening | it opens without harm; root, manifest, layouts in both directions, and names of passes are right; of a library |
//! | runs | on each module of the corpus the pass ends, with a module or with an error of its own |
//! | well formed | what it gives is well formed and has types |
//! | same results | the reference evaluator computes what it computed before |
//! | deterministic | again, and in another process with one thread, it gives the same text or error |
//! | idempotent | where the manifest claims it, a second run changes nothing |
//! | unknown kinds | nodes of a kind that nobody knows are still there |
//! | errors | when the host refuses an edit, the pass fails and says why, or goes without |
//! | cancellation | when it is told to stop, it does |
//! | options | with each value that their declarations allow, it ends well too |
//!
//! Of an operator, on calls at random:
//!
//! | check | what holds |
//! |---|---|
//! | inference | a call has a type or is refused with a word, without a panic |
//! | sizes | with integers for symbols the type is that of the symbols, or the call is refused |
//! | defaults | attributes that are given as they are by default change nothing |
//! | evaluation | the value has the type, and is the same again |
//!
//! What does not end is a failure of the check that it was in, and of its operator nothing more is looked at.
//!
//! Of its rules about operators, on calls at random, by the passes that ask for them:
//!
//! | check | what holds |
//! |---|---|
//! | same results | the reference evaluator computes what it computed before |
//! | derivatives | gradients are those of central differences in f64 |
//!
//! Of its tensor intrinsics:
//!
//! | check | what holds |
//! |---|---|
//! | description | it is one assignment in loops of constant extents, with all that has to be said |
//! | same results | where this processor has it, its code computes what the reference evaluator makes of the loops |

mod corpus;
mod finding;
mod intrinsic;
mod operator;
mod pass;
mod patience;
mod rules;
mod vocabulary;

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use tenon_plugin_api::rule::{Facet, Intrinsics};

use crate::diagnostics::Source;
use crate::diagnostics::count_of;
use crate::io::FileError;
use crate::ir::Cx;
use crate::registry::{
    Config, DirConfig, Enable, Guard, LibraryFile, Manifest, ManifestError, OpOffer, PassConfig,
    Place, Registry, Set, try_out,
};
use crate::target::Target;
use corpus::Corpus;
use patience::{Progress, with_patience};

/// How much is tried.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Where random modules and inputs come from.
    pub seed: u64,
    /// Random modules.
    pub modules: usize,
    /// Seconds that a pass may run over one of them, and what is tried of an operator or rule over one call.
    pub time_limit: u64,
}

/// What was found out of a plugin.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Its id.
    pub plugin: String,
    /// Its version.
    pub version: String,
    /// Its file.
    pub file: String,
    /// The digest of its file.
    pub sha256: String,
    /// The version of the host.
    pub tenon: &'static str,
    /// Where random modules and inputs came from.
    pub seed: u64,
    /// What was looked at, in order.
    pub checks: Vec<Check>,
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
pub struct Check {
    /// The pass or operator it is about; none where it is about the plugin.
    pub pass: Option<String>,
    /// Its name.
    pub check: &'static str,
    /// How it went.
    pub outcome: Outcome,
    /// On how much it was tried, why it was not, or what is wrong: a line each.
    pub details: Vec<String>,
}

/// How a check went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// As it should.
    Passed,
    /// Not as it should.
    Failed,
    /// There was nothing to look at.
    Skipped,
}

/// Why a plugin cannot be examined at all.
#[derive(Debug, thiserror::Error)]
pub enum ConformanceError {
    /// Its file cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The folder of the examination cannot be made.
    #[error("no folder for the examination: {0}")]
    Folder(#[from] std::io::Error),
    /// The file is no plugin for this host.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
}

impl Report {
    /// The number of checks that ended in a way.
    pub fn count(&self, outcome: Outcome) -> usize {
        self.checks.iter().filter(|check| check.outcome == outcome).count()
    }
}

impl Check {
    fn new(pass: Option<&str>, check: &'static str, looked_at: String, wrong: Vec<String>) -> Self {
        let (outcome, details) = match wrong.is_empty() {
            true => (Outcome::Passed, vec![looked_at]),
            false => (Outcome::Failed, wrong),
        };
        Check { pass: pass.map(str::to_owned), check, outcome, details }
    }

    fn skipped(pass: &str, check: &'static str, why: &str) -> Self {
        let details = vec![why.to_owned()];
        Check { pass: Some(pass.to_owned()), check, outcome: Outcome::Skipped, details }
    }
}

/// Examines the plugin in a file with the program that runs its passes. The registry's configuration says where the
/// passes are that it needs.
pub fn examine(
    config: &Config,
    library: &Path,
    program: &Path,
    target: &Target,
    effort: Effort,
) -> Result<Report, ConformanceError> {
    let library = &library
        .canonicalize()
        .map_err(|cause| FileError::Open { path: library.to_owned(), cause })?;
    let file = LibraryFile::open(library)?;
    let manifest = file.manifest()?;
    let mut report = Report {
        plugin: manifest.plugin.id.clone(),
        version: manifest.plugin.version.to_string(),
        file: library.display().to_string(),
        sha256: file.sha256()?,
        tenon: env!("CARGO_PKG_VERSION"),
        seed: effort.seed,
        checks: Vec::new(),
    };
    let (passes, operators) = (manifest.passes.len(), manifest.operators.len());
    let offered = match operators {
        0 => count_of(passes, "pass"),
        _ => format!("{}, {}", count_of(passes, "pass"), count_of(operators, "operator")),
    };
    report.checks.push(Check::new(None, "manifest", offered, Vec::new()));
    // A text is never opened here: whether it can be run is seen when its passes are.
    if manifest.interpreter.is_none() {
        let trial = try_out(config, program, library, &report.sha256);
        let opens = trial.is_ok();
        let refusals = trial.err().iter().map(ToString::to_string).collect();
        let looked_at = "constructors, root, manifest, layouts, names, destructors".to_owned();
        report.checks.push(Check::new(None, "opening", looked_at, refusals));
        if !opens {
            return Ok(report);
        }
    }
    let folder = tempfile::tempdir()?;
    let name = format!("examined.{}", manifest.interpreter.as_deref().unwrap_or("so"));
    std::os::unix::fs::symlink(library, folder.path().join(name))?;
    let open = |threads| {
        let config = config_for(config, folder.path(), library, &manifest, effort);
        Registry::guarded(config, Guard::new(program, None).with_threads(threads))
    };
    let (registry, one_thread) = (open(None), open(Some(1)));
    // The passes of the plugin are kept out of this process; what its operators are is asked here.
    let book = Registry::of_origin(&registry.operators().origin())?.operators();
    let patience = Duration::from_secs(effort.time_limit);
    let vocabulary = vocabulary::found_within(patience, &book).unwrap_or_else(|endless| {
        report.checks.push(endless);
        None
    });
    let mut corpus = Corpus::new(&book, vocabulary.as_ref(), effort.seed, effort.modules);
    for record in &manifest.passes {
        let examination = pass::Examination {
            registry: &registry,
            one_thread: &one_thread,
            record,
            target,
            seed: effort.seed,
            time_limit: Duration::from_secs(effort.time_limit),
            has_hung: Cell::default(),
        };
        report.checks.extend(examination.checks(&mut corpus));
    }
    // Operators run in this process, as they do wherever they are used.
    let operators = Registry::of_files(&[library.to_owned()])?.operators();
    let cx = Cx::with_operators(operators.clone());
    let mut left: BTreeSet<&str> = BTreeSet::new();
    for name in manifest.operators.iter().map(OpOffer::name) {
        match operators.get(name) {
            Ok(op) => {
                let cx = cx.clone();
                let look =
                    move |progress: &Progress| operator::checks(&cx, &op, effort.seed, progress);
                match with_patience(patience, name, look) {
                    Ok(checks) => report.checks.extend(checks),
                    Err(endless) => {
                        report.checks.push(endless);
                        left.insert(name);
                    }
                }
            }
            Err(error) => {
                let wrong = vec![error.to_string()];
                report.checks.push(Check::new(Some(name), "opening", String::new(), wrong));
            }
        }
    }
    let here = Registry::from_config(Config {
        isolate: BTreeMap::new(),
        passes: config.passes.clone(),
        ..config_for(config, folder.path(), library, &manifest, effort)
    });
    let asked: BTreeSet<(&str, &str)> =
        manifest.rules.iter().map(|rule| (&*rule.facet, rule.key.as_str())).collect();
    for (facet, key) in asked {
        let (here, of, seed) = (here.clone(), facet.to_owned(), effort.seed);
        let found = if facet == Intrinsics::NAME {
            let name = key.to_owned();
            let look = move |progress: &Progress| intrinsic::checks(&here, &name, seed, progress);
            with_patience(patience, &format!("{facet} {key}"), look)
        } else {
            let op = here.operators().find(key).filter(|_| !left.contains(key));
            let Some(op) = op else { continue };
            let look = move |progress: &Progress| rules::checks(&here, &op, &of, seed, progress);
            with_patience(patience, &format!("{facet} of {key}"), look)
        };
        match found {
            Ok(checks) => report.checks.extend(checks),
            Err(endless) => report.checks.push(endless),
        }
    }
    Ok(report)
}

/// The registry with the plugin from this file and no other, its passes in a process of its own.
fn config_for(
    config: &Config,
    folder: &Path,
    library: &Path,
    manifest: &Manifest,
    effort: Effort,
) -> Config {
    let place = Place::in_pipeline(&Source::new(library.display().to_string(), ""), 0..0);
    let set = |value| Set { value, place: place.clone() };
    let mut config = config.clone();
    let path: PathBuf = folder.to_owned();
    config.dirs.insert(0, DirConfig { path, enable: Enable::All, place: place.clone() });
    config.only_file.insert(manifest.plugin.id.clone(), library.to_owned());
    config.pins.remove(&manifest.plugin.id);
    config.isolate.insert(manifest.plugin.id.clone(), set(true));
    for pass in &manifest.passes {
        // What the registry says of the pass is about its use, and not about what it does.
        let mut settings = PassConfig::at(place.clone());
        settings.enabled = Some(set(true));
        settings.time_limit = Some(Set { value: effort.time_limit, place: place.clone() });
        settings.provider = Some(Set { value: manifest.plugin.id.clone(), place: place.clone() });
        config.passes.insert(pass.name.clone(), settings);
    }
    config
}
