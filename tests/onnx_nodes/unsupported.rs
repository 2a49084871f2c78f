//! The list of cases that are not supported: a line for each reason, its cases below it.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::Path;

const HEADER: &str = "# Node tests of onnx that are not supported, by what they need. TENON_BLESS=1 rewrites this.\n";

/// Why each case is not supported.
#[derive(Default)]
pub(crate) struct UnsupportedCases(BTreeMap<String, String>);

impl UnsupportedCases {
    pub(crate) fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap_or_default();
        let mut cases = Self::default();
        let mut reason = "";
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            match line.strip_prefix("  ") {
                Some(name) => _ = cases.0.insert(name.to_owned(), reason.to_owned()),
                None => reason = line,
            }
        }
        cases
    }

    pub(crate) fn reason(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, reason)| (name.as_str(), reason.as_str()))
    }
}

impl FromIterator<(String, String)> for UnsupportedCases {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(cases: I) -> Self {
        Self(cases.into_iter().collect())
    }
}

impl fmt::Display for UnsupportedCases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (name, reason) in self.iter() {
            by_reason.entry(reason).or_default().push(name);
        }
        f.write_str(HEADER)?;
        for (reason, names) in by_reason {
            writeln!(f, "{reason}")?;
            for name in names {
                writeln!(f, "  {name}")?;
            }
        }
        Ok(())
    }
}
