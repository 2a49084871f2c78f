//! The node tests of onnx, models of one operator and of many at random, models of one operator of `com.microsoft`, and models with
//! open dimensions: each is imported as it is given, evaluated by the reference, compiled, and run.
//!
//! The tests come out of the onnx wheel, what is right for the others out of ONNX Runtime
//! (`scripts/setup-python.sh --models`); where that was not run they count as ignored. A trial holds the cases of one
//! operator, so that the plugins and LLVM are loaded once for them. What a case that does not pass needs stands in
//! `unsupported.txt`, `random_unsupported.txt`, `graphs_unsupported.txt`, `microsoft_unsupported.txt` and `open_unsupported.txt`, and how many there are of each kind. Where we
//! and ONNX Runtime differ, `differences.txt` and `microsoft_differences.txt` say who is right, and `node_differences.txt` where
//! we and onnx's own numbers do.

mod case;
mod compare;
#[path = "../support/compiled.rs"]
mod compiled;
mod differences;
#[path = "../support/evaluated.rs"]
mod evaluated;
mod unsupported;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::{env, fs};

use libtest_mimic::{Arguments, Failed, Trial};

use case::Outcome;
use differences::{Differences, counts};
use unsupported::UnsupportedCases;

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let suites = [
        ("cases", "onnx-nodes"),
        ("random", "onnx-random"),
        ("graphs", "onnx-graphs"),
        ("microsoft", "onnx-microsoft"),
        ("open", "onnx-open"),
    ];
    let trials = match suites.iter().all(|(_, folder)| root.join(".cache").join(folder).exists()) {
        true => suites
            .into_iter()
            .flat_map(|(kind, folder)| Suite::new(root, kind, folder).trials())
            .collect(),
        false => vec![missing(root)],
    };
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// A folder of cases, and the lists of those that do not pass.
struct Suite {
    kind: &'static str,
    folder: PathBuf,
    names: Vec<String>,
    list: PathBuf,
    listed: UnsupportedCases,
    differences_list: PathBuf,
    differences: Differences,
}

/// What stands for all cases where they are not there.
fn missing(root: &Path) -> Trial {
    let reason = fs::read_to_string(root.join(".cache/models-unavailable"))
        .unwrap_or_else(|_| "scripts/setup-python.sh --models was not run".into());
    let reason = format!("the node tests of onnx are skipped: {}", reason.trim());
    if !env::args().any(|arg| arg == "--list") {
        eprintln!("{reason}");
    }
    Trial::test("all_cases", move || Err(reason.into())).with_ignored_flag(true)
}

impl Suite {
    fn new(root: &Path, kind: &'static str, folder: &str) -> Self {
        let (folder, lists) = (root.join(".cache").join(folder), root.join("tests/onnx_nodes"));
        let (list, differences) = match kind {
            "random" => ("random_unsupported.txt", "differences.txt"),
            "graphs" => ("graphs_unsupported.txt", "graphs_differences.txt"),
            "microsoft" => ("microsoft_unsupported.txt", "microsoft_differences.txt"),
            "open" => ("open_unsupported.txt", "open_differences.txt"),
            _ => ("unsupported.txt", "node_differences.txt"),
        };
        let (list, differences_list) = (lists.join(list), lists.join(differences));
        Self {
            kind,
            names: case::names(&folder),
            folder,
            listed: UnsupportedCases::read(&list),
            list,
            differences: Differences::read(&differences_list),
            differences_list,
        }
    }

    fn trials(self) -> Vec<Trial> {
        let suite = Arc::new(self);
        let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for name in &suite.names {
            groups.entry(group(name)).or_default().push(name.clone());
        }
        let trial = |(group, cases): (String, Vec<String>)| {
            let of = Arc::clone(&suite);
            Trial::test(format!("{}::{group}", suite.kind), move || of.check(&cases))
        };
        let mut trials: Vec<Trial> = groups.into_iter().map(trial).collect();
        trials.push(Trial::test(format!("{}_list_is_complete", suite.kind), move || {
            match env::var_os("TENON_BLESS") {
                Some(_) => suite.write_lists(),
                None => suite.check_lists(),
            }
        }));
        trials
    }

    /// Whether each case does what is listed, or passes.
    fn check(&self, cases: &[String]) -> Result<(), Failed> {
        let mut problems = Vec::new();
        for name in cases {
            // Shown when code that was compiled ends the process.
            eprintln!("{name}");
            let problem = match (case::run(&self.folder.join(name)), self.listed.get(name)) {
                (Outcome::Failed(failure), None) if self.differences.explain(name, &failure) => {
                    continue;
                }
                (Outcome::Failed(failure), _) => failure.text,
                _ if self.differences.contains(name) => {
                    "a difference is explained that is gone".to_owned()
                }
                (Outcome::Passed, None) => continue,
                (Outcome::Unsupported(found), Some(lack)) if found == *lack => continue,
                (Outcome::Passed, Some(_)) => "it passes, and is listed as unsupported".to_owned(),
                (Outcome::Unsupported(found), None) => format!("it does not pass: {found}"),
                (Outcome::Unsupported(found), Some(lack)) => {
                    format!("it is listed as {lack}; it is {found}")
                }
            };
            problems.push(format!("{name}: {problem}"));
        }
        match problems.is_empty() {
            true => Ok(()),
            false => Err(problems.join("\n").into()),
        }
    }

    /// Whether the lists have their own form, counts included, and name cases that there are.
    fn check_lists(&self) -> Result<(), Failed> {
        let is_gone = |name: &&str| !self.names.iter().any(|other| other == name);
        if let Some(name) = self.listed.names().chain(self.differences.names()).find(is_gone) {
            return Err(format!("{name} is listed, and there is no such case").into());
        }
        let written = [(&self.list, self.listed.text(self.names.len()))];
        let written = written.into_iter().chain(self.counted(&self.listed));
        for (path, text) in written {
            if fs::read_to_string(path)? != text {
                return Err(format!("{} is not as TENON_BLESS=1 writes it", path.display()).into());
            }
        }
        Ok(())
    }

    /// Writes the list of cases that lack something today, and counts in that of the differences; nothing where a case is wrong, which
    /// would be counted as one that passes.
    fn write_lists(&self) -> Result<(), Failed> {
        let found = self.found()?;
        fs::write(&self.list, found.text(self.names.len()))?;
        if let Some((path, text)) = self.counted(&found) {
            fs::write(path, text)?;
        }
        Ok(())
    }

    /// The list of differences with the counts of today.
    fn counted(&self, lacking: &UnsupportedCases) -> Option<(&PathBuf, String)> {
        let text = fs::read_to_string(&self.differences_list).ok()?;
        let (lacking, differing) = (lacking.names().count(), self.differences.names().count());
        let counts = counts(&self.folder, &self.names, lacking, differing);
        let is_counts = |line: &&str| line.starts_with("# ") && line.contains(" random cases, ");
        let old = text.lines().find(is_counts)?;
        Some((&self.differences_list, text.replacen(old, &counts, 1)))
    }

    /// The cases that lack something today, where no case is wrong but as it is explained.
    fn found(&self) -> Result<UnsupportedCases, Failed> {
        let (mut wrong, mut lacking) = (Vec::new(), Vec::new());
        for name in &self.names {
            match case::run(&self.folder.join(name)) {
                Outcome::Passed => {}
                Outcome::Unsupported(lack) => lacking.push((name.clone(), lack)),
                Outcome::Failed(failure) if self.differences.explain(name, &failure) => {}
                Outcome::Failed(failure) => {
                    wrong.push(format!("{name}: {} ({})", failure.text, failure.what));
                }
            }
        }
        match wrong.is_empty() {
            true => Ok(lacking.into_iter().collect()),
            false => Err(format!("nothing is written:\n{}", wrong.join("\n")).into()),
        }
    }
}

/// The first word of a case's name, which most often is the operator.
fn group(name: &str) -> String {
    let name = name.strip_prefix("test_").unwrap_or(name);
    name.split('_').next().unwrap_or(name).to_owned()
}
