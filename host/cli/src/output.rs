//! What the program says: results on standard output, failures on standard error.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{IsTerminal, Write};
use std::iter::repeat_n;

use tenon_compiler::diagnostics::{Diagnostic, Diagnostics};
use tenon_compiler::passes::PlanError;
use tenon_compiler::printable::{printable, printable_json, printable_line};
use tenon_compiler::registry::{ConfigError, LookupError, Place, Registry};
use tenon_compiler::session::SessionError;

/// Why a command failed.
pub(super) struct Failure(Vec<Diagnostic>);

impl Failure {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self(vec![Diagnostic::error(message)])
    }

    /// Adds what to do to the last message.
    pub(super) fn help(mut self, text: impl Into<String>) -> Self {
        if let Some(last) = self.0.pop() {
            self.0.push(last.help(text));
        }
        self
    }

    pub(super) fn from_diagnostic(diagnostic: Diagnostic) -> Self {
        Self(vec![diagnostic])
    }

    pub(super) fn from_diagnostics(diagnostics: Diagnostics) -> Self {
        Self(diagnostics.0)
    }
}

/// The messages alone.
impl Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let messages: Vec<&str> = self.0.iter().map(|error| error.message.as_str()).collect();
        f.write_str(&messages.join("; "))
    }
}

/// Any error of the library is a failure with its text; one that knows more of itself tells that.
impl<E: std::error::Error + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        let any: &(dyn std::error::Error + 'static) = &error;
        if let Some(error) = any.downcast_ref::<ConfigError>() {
            Self::from_diagnostics(error.to_diagnostics())
        } else if let Some(error) = any.downcast_ref::<PlanError>() {
            Self::from_diagnostic(error.to_diagnostic())
        } else if let Some(error) = any.downcast_ref::<SessionError>() {
            Self::from_diagnostics(error.to_diagnostics())
        } else if let Some(error) = any.downcast_ref::<LookupError>() {
            Self::from_diagnostic(error.to_diagnostic())
        } else {
            Self::new(error.to_string())
        }
    }
}

/// Tells why a command failed.
pub(super) fn report(failure: &Failure, is_json: bool) {
    let mut stderr = std::io::stderr().lock();
    let in_color = stderr.is_terminal();
    let text = if is_json {
        let errors: Vec<serde_json::Value> = failure.0.iter().map(Diagnostic::to_json).collect();
        printable_json(&serde_json::json!({ "errors": errors }).to_string()).into_owned()
    } else {
        let texts: Vec<String> = failure.0.iter().map(|error| error.render(in_color)).collect();
        texts.join("\n\n")
    };
    // Nobody is left to tell when standard error is closed.
    let _ = writeln!(stderr, "{text}");
}

/// Writes a result, in which nothing steers the terminal that shows it. A reader that has gone, as `head` does, is no
/// failure.
pub(super) fn print(text: impl AsRef<str>) -> Result<(), Failure> {
    let text = printable(text.as_ref());
    let mut stdout = std::io::stdout().lock();
    match write!(stdout, "{text}").and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::new(format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Writes a result as JSON.
pub(super) fn print_json(value: &impl serde::Serialize) -> Result<(), Failure> {
    print(format!("{}\n", printable_json(&serde_json::to_string_pretty(value)?)))
}

/// Says something on the side.
pub(super) fn note(text: impl AsRef<str>) {
    let _ = writeln!(std::io::stderr().lock(), "{}", printable(text.as_ref()));
}

/// Says what a user should know of the plugins that were opened, and of what the registry says of rules.
pub(super) fn warn_of_plugins(registry: &Registry) {
    for warning in registry.take_warnings().into_iter().chain(registry.choices_of_nothing()) {
        note(format!("warning: {warning}"));
    }
}

/// A place as JSON.
pub(super) fn place_json(place: &Place) -> serde_json::Value {
    serde_json::json!({ "file": place.file(), "line": place.line() })
}

/// Labels and values, empty ones left out.
pub(super) fn labelled(rows: &[(&str, String)]) -> String {
    rows.iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(label, value)| format!("{label:12} {}\n", printable_line(value)))
        .collect()
}

/// Rows as columns, each as wide as its widest cell; the last one is not padded.
pub(super) fn table(rows: &[Vec<String>]) -> String {
    let rows: Vec<Vec<Cow<'_, str>>> =
        rows.iter().map(|row| row.iter().map(|cell| printable_line(cell)).collect()).collect();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let padded = rows.iter().filter(|row| row.len() > column + 1);
        padded.map(|row| row[column].chars().count()).max()
    };
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in &rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            line.push_str(cell);
            // A width within a format is one of 16 bits.
            line.extend(repeat_n(' ', width.saturating_sub(cell.chars().count()) + 2));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}
