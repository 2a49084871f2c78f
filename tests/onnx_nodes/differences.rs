//! The list of random cases where we and the judge differ: what of us differs, and below which reason.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::case::Failure;

/// What differs in each case, and why.
#[derive(Default)]
pub(crate) struct Differences(BTreeMap<String, String>);

impl Differences {
    /// A reason begins a line, which further ones may continue; `  NAME: WHAT` below it is a case.
    pub(crate) fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap_or_default();
        let entry = |line: &str| {
            let (name, what) = line.strip_prefix("  ")?.split_once(": ")?;
            Some((name.to_owned(), what.to_owned()))
        };
        Self(text.lines().filter_map(entry).collect())
    }

    /// Whether a case is listed, and whether as one that fails in this way.
    pub(crate) fn explain(&self, name: &str, failure: &Failure) -> bool {
        self.0.get(name).is_some_and(|what| what == failure.what)
    }

    pub(crate) fn contains(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

/// What the first line that is no comment says: how many cases there are, who judges them, and how many agree.
pub(crate) fn counts(folder: &Path, names: &[String], lacking: usize, differing: usize) -> String {
    let is_reference = |name: &&String| {
        let judge = fs::read_to_string(folder.join(name).join("judge")).unwrap_or_default();
        judge.trim() == "reference"
    };
    let (all, reference) = (names.len(), names.iter().filter(is_reference).count());
    format!(
        "# {all} random cases, {} judged by ONNX Runtime, {reference} by onnx's reference; {} agree as they are given; \
         not supported: {lacking}; explained differences: {differing}",
        all - reference,
        all - lacking - differing
    )
}
