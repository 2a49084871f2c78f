//! What is found wrong of a plugin.

use std::fmt;

/// A sentence of the report: what the answer was, and what was expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Finding(pub(super) String);

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The first few of many, each once, as a report has them.
pub(super) fn first(mut found: Vec<Finding>) -> Vec<String> {
    found.dedup();
    found.truncate(3);
    found.into_iter().map(|finding| finding.0).collect()
}
