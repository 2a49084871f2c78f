//! What is told to a user: a message, the places it is about, and what to do.
//!
//! A diagnostic carries the text that its places refer to, so it can be stored, sent to another
//! thread, and shown at the very end as a person ([`Diagnostic::render`]) or a program
//! ([`Diagnostic::to_json`]) wants to read it.

mod count;
mod excerpt;
mod render;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

pub use count::count_of;
use excerpt::{Margin, Place, Places, around, clamp, line_of};

/// What an excerpt keeps around its place.
const KEPT: Margin = Margin { lines: 20, bytes: 1 << 14 };

/// A text with a name, usually a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// What stands before line and column in messages.
    pub name: String,
    /// The text.
    pub text: String,
    /// The number of its first line, where the text is an excerpt of a longer one.
    first_line: Option<usize>,
    places: Places,
}

impl Source {
    /// A shared source.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Arc<Self> {
        Arc::new(Self {
            name: name.into(),
            text: text.into(),
            first_line: None,
            places: Places::default(),
        })
    }

    /// The lines around a place of a text, and the place in them. Lines keep their numbers.
    pub fn excerpt(
        name: impl Into<String>,
        text: &str,
        place: &Range<usize>,
    ) -> (Arc<Self>, Range<usize>) {
        let place = clamp(text, place);
        let kept = around(text, place.clone(), KEPT);
        let source = Self {
            name: name.into(),
            text: text[kept.clone()].to_owned(),
            first_line: Some(line_of(text, kept.start)),
            places: Places::default(),
        };
        (Arc::new(source), place.start - kept.start..place.end - kept.start)
    }

    /// The bytes of the word that starts at `at`, which is where a node stands that was parsed there.
    pub fn word_at(&self, at: usize) -> Range<usize> {
        let rest = self.text.get(at..).unwrap_or("");
        let ends = |c: char| c.is_whitespace() || matches!(c, '(' | ')' | ',' | '{');
        let len = rest.find(ends).unwrap_or(rest.len());
        at..at + len.max(1).min(rest.len())
    }

    /// Whether the text is a part of a longer one, which nobody may have.
    pub fn is_excerpt(&self) -> bool {
        self.first_line.is_some()
    }

    /// Where a byte of the text stands that begins a character.
    fn place_of(&self, at: usize) -> Place {
        let place = self.places.find(&self.text, at);
        Place { line: self.first_line.map_or(0, |first| first - 1) + place.line, ..place }
    }
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// For information.
    Note,
    /// Suspicious, but nothing stops.
    Warning,
    /// The input cannot be used, or a pass failed.
    Error,
}

impl Severity {
    /// The word that stands before the message.
    pub fn text(self) -> &'static str {
        match self {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

/// A place in a source, in bytes, and what is to be said about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// The bytes that are underlined.
    pub span: Range<usize>,
    /// What stands beside the line; may be empty.
    pub text: String,
}

/// A message with its places. The first label is the place the message is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong, in one sentence without a full stop.
    pub message: String,
    /// What the labels refer to.
    pub source: Option<Arc<Source>>,
    /// The places.
    pub labels: Vec<Label>,
    /// What else is to be known.
    pub notes: Vec<String>,
    /// What to do.
    pub help: Vec<String>,
}

impl Diagnostic {
    /// An error without a place.
    pub fn error(message: impl Into<String>) -> Self {
        Self::new(Severity::Error, message)
    }

    /// A warning without a place.
    pub fn warning(message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, message)
    }

    /// A diagnostic without a place.
    pub fn new(severity: Severity, message: impl Into<String>) -> Self {
        Self {
            severity,
            message: message.into(),
            source: None,
            labels: Vec::new(),
            notes: Vec::new(),
            help: Vec::new(),
        }
    }

    /// Sets the text that labels refer to.
    pub fn in_source(mut self, source: &Arc<Source>) -> Self {
        self.source = Some(source.clone());
        self
    }

    /// Adds a place.
    pub fn label(mut self, span: Range<usize>, text: impl Into<String>) -> Self {
        self.labels.push(Label { span, text: text.into() });
        self
    }

    /// Adds what else is to be known.
    pub fn note(mut self, text: impl Into<String>) -> Self {
        self.notes.push(text.into());
        self
    }

    /// Adds that more than this is wrong, if it is.
    pub fn more_places(self, others: usize) -> Self {
        match others {
            0 => self,
            1 => self.note("1 more place is wrong"),
            _ => self.note(format!("{others} more places are wrong")),
        }
    }

    /// Adds what to do.
    pub fn help(mut self, text: impl Into<String>) -> Self {
        self.help.push(text.into());
        self
    }

    /// The text a person reads, with the lines around each place; `in_color` for a terminal.
    pub fn render(&self, in_color: bool) -> String {
        render::render(self, in_color)
    }

    /// The same for programs. Spans are in bytes of the file, or of the `excerpt` where there is one; lines
    /// and columns count from 1, columns in characters.
    pub fn to_json(&self) -> serde_json::Value {
        render::json(self)
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

/// All that is wrong with an input, in the order of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostics(pub Vec<Diagnostic>);

impl Diagnostics {
    /// Whether one of them is an error.
    pub fn has_errors(&self) -> bool {
        self.0.iter().any(|diagnostic| diagnostic.severity == Severity::Error)
    }

    /// Each as a person reads it, a blank line between two.
    pub fn render(&self, in_color: bool) -> String {
        let texts: Vec<String> = self.0.iter().map(|each| each.render(in_color)).collect();
        texts.join("\n\n")
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl std::error::Error for Diagnostics {}

impl From<Diagnostic> for Diagnostics {
    fn from(diagnostic: Diagnostic) -> Self {
        Self(vec![diagnostic])
    }
}
