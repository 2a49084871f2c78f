//! Where a value was written.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::diagnostics::{Diagnostic, Source};

/// A place in a file or in a pipeline's text.
#[derive(Clone, Debug)]
pub struct Place {
    source: Arc<Source>,
    span: Range<usize>,
    /// The number of its line in a file; none in a pipeline's text.
    line: Option<usize>,
}

/// A value, and the place that set it.
#[derive(Clone, Debug)]
pub struct Set<T> {
    /// The value.
    pub value: T,
    /// The place.
    pub place: Place,
}

impl Place {
    /// Bytes of a file, in its line of this number, from 1.
    pub fn new(source: &Arc<Source>, span: Range<usize>, line: usize) -> Self {
        Self { source: source.clone(), span, line: Some(line) }
    }

    /// Bytes of a pipeline's text.
    pub fn in_pipeline(source: &Arc<Source>, span: Range<usize>) -> Self {
        Self { source: source.clone(), span, line: None }
    }

    /// The name of the source.
    pub fn file(&self) -> &str {
        &self.source.name
    }

    /// The number of the line, from 1, in a file.
    pub fn line(&self) -> Option<usize> {
        self.line
    }

    /// What is written there.
    pub fn text(&self) -> &str {
        &self.source.text[self.span.clone()]
    }

    /// Whether a string is written there without escapes.
    pub(crate) fn is_verbatim(&self, string: &str) -> bool {
        self.text().len() == string.len() + 2
            && self.text().get(1..).is_some_and(|rest| rest.starts_with(string))
    }

    /// The bytes `inside` of a string that is written there without escapes.
    pub(crate) fn within(&self, inside: &Range<usize>) -> Place {
        let start = self.span.start + 1;
        Place { span: start + inside.start..start + inside.end, ..self.clone() }
    }

    /// An error about this place.
    pub fn error(&self, message: impl Into<String>, label: impl Into<String>) -> Diagnostic {
        Diagnostic::error(message).in_source(&self.source).label(self.span.clone(), label)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}", self.file()),
            None => f.write_str(self.file()),
        }
    }
}
