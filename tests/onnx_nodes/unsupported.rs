//! The list of cases that do not pass as they are given through compiled code: how far each comes, and below what
//! it needs.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::Path;

const HEADER: &str = "\
# Cases that do not pass as they are given through compiled code, by what they need.
# TENON_BLESS=1 cargo test --release --test onnx_nodes list writes this.
";

/// How far a case comes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Stage {
    /// The evaluator gives what is expected, and there is no code.
    EvaluatorOnly,
    /// It passes once inputs are constants.
    FixedInputs,
    /// Both.
    EvaluatorWithFixedInputs,
    /// It is imported, and there is no data to judge it by.
    Unjudged,
    /// Nothing could be judged.
    Unsupported,
}

impl Stage {
    const ALL: [Stage; 5] = [
        Stage::EvaluatorOnly,
        Stage::FixedInputs,
        Stage::EvaluatorWithFixedInputs,
        Stage::Unjudged,
        Stage::Unsupported,
    ];

    fn text(self) -> &'static str {
        match self {
            Stage::EvaluatorOnly => "right in the evaluator, not compiled",
            Stage::FixedInputs => "right, compiled, with inputs made constants",
            Stage::EvaluatorWithFixedInputs => {
                "right in the evaluator with inputs made constants, not compiled"
            }
            Stage::Unjudged => "imported, without data to judge it by",
            Stage::Unsupported => "not imported",
        }
    }
}

/// What a case needs.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Lack {
    stage: Stage,
    reason: String,
}

impl Lack {
    pub(crate) fn new(stage: Stage, reason: String) -> Lack {
        Lack { stage, reason }
    }
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.stage.text(), self.reason)
    }
}

/// What each case that does not pass needs.
#[derive(Default)]
pub(crate) struct UnsupportedCases(BTreeMap<String, Lack>);

impl UnsupportedCases {
    pub(crate) fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap_or_default();
        let mut cases = Self::default();
        let (mut stage, mut reason) = (Stage::Unsupported, "");
        for line in text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
            let section = line.strip_prefix('[').and_then(|line| line.strip_suffix(']'));
            if let Some(found) = Stage::ALL.into_iter().find(|stage| section == Some(stage.text()))
            {
                stage = found;
            } else if let Some(name) = line.strip_prefix("  ") {
                cases.0.insert(name.to_owned(), Lack::new(stage, reason.to_owned()));
            } else {
                reason = line;
            }
        }
        cases
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Lack> {
        self.0.get(name)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// The list as text, with the number of all cases and of those in each part.
    pub(crate) fn text(&self, total: usize) -> String {
        let mut by_lack: BTreeMap<&Lack, Vec<&str>> = BTreeMap::new();
        for (name, lack) in &self.0 {
            by_lack.entry(lack).or_default().push(name);
        }
        let count = |stage| self.0.values().filter(|lack| lack.stage == stage).count();
        let mut text = HEADER.to_owned();
        text += &format!("# {total} cases, {} pass", total - self.0.len());
        for stage in Stage::ALL {
            text += &format!("; {}: {}", stage.text(), count(stage));
        }
        text += "\n";
        for stage in Stage::ALL {
            text += &format!("\n[{}]\n", stage.text());
            for (lack, names) in by_lack.iter().filter(|(lack, _)| lack.stage == stage) {
                text += &format!("{}\n", lack.reason);
                names.iter().for_each(|name| text += &format!("  {name}\n"));
            }
        }
        text
    }
}

impl FromIterator<(String, Lack)> for UnsupportedCases {
    fn from_iter<I: IntoIterator<Item = (String, Lack)>>(cases: I) -> Self {
        Self(cases.into_iter().collect())
    }
}
