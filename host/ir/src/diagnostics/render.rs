//! Diagnostics as text and as JSON.
//!
//! Only the lines around the labels go to the renderer, and of a very long line only the part around
//! its labels, and lines are counted once for all errors of a text: many in a large one cost no more than reading it.

use std::borrow::Cow;
use std::ops::Range;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use serde_json::json;

use super::excerpt::{Margin, around, clamp};
use super::{Diagnostic, Label, Severity, Source};
use crate::printable::{is_unseen, printable, printable_line};

/// What is shown around a label.
const SHOWN: Margin = Margin { lines: 1, bytes: 160 };

pub(super) fn render(diagnostic: &Diagnostic, in_color: bool) -> String {
    let level = match diagnostic.severity {
        Severity::Note => Level::NOTE,
        Severity::Warning => Level::WARNING,
        Severity::Error => Level::ERROR,
    };
    let title = level.primary_title(printable(&diagnostic.message));
    let mut group = Group::with_title(title);
    if let Some(source) = &diagnostic.source {
        for window in windows(source, &diagnostic.labels) {
            group = group.element(snippet(source, &window));
        }
    }
    let notes = diagnostic.notes.iter().map(|text| Level::NOTE.message(printable(text)));
    let help = diagnostic.help.iter().map(|text| Level::HELP.message(printable(text)));
    let group = group.elements(notes.chain(help));
    let renderer = if in_color { Renderer::styled() } else { Renderer::plain() };
    renderer.render(&[group])
}

/// A part of the source, with the labels that lie in it and their numbers in the diagnostic.
struct Window<'d> {
    range: Range<usize>,
    line: usize,
    labels: Vec<(usize, &'d Label)>,
}

/// One window around each label; those that touch become one.
fn windows<'d>(source: &Source, labels: &'d [Label]) -> Vec<Window<'d>> {
    let mut windows: Vec<Window<'d>> = Vec::new();
    for (number, label) in labels.iter().enumerate() {
        let mut range = around(&source.text, clamp(&source.text, &label.span), SHOWN);
        let mut inside = vec![(number, label)];
        windows.retain_mut(|window| {
            let is_apart = window.range.end < range.start || range.end < window.range.start;
            if !is_apart {
                range = range.start.min(window.range.start)..range.end.max(window.range.end);
                inside.append(&mut window.labels);
            }
            is_apart
        });
        let line = source.place_of(range.start).line;
        windows.push(Window { range, line, labels: inside });
    }
    // The place that the message is about comes first.
    windows.sort_by_key(|window| window.labels.iter().map(|label| label.0).min());
    windows
}

fn snippet<'s>(
    source: &'s Source,
    window: &Window<'s>,
) -> Snippet<'s, annotate_snippets::Annotation<'s>> {
    let mut snippet = Snippet::source(in_place(&source.text[window.range.clone()]))
        .path(printable_line(&source.name))
        .line_start(window.line);
    for &(number, label) in &window.labels {
        let kind = if number == 0 { AnnotationKind::Primary } else { AnnotationKind::Context };
        let span = clamp(&source.text, &label.span);
        let span = span.start - window.range.start..span.end - window.range.start;
        let text = Some(printable(&label.text)).filter(|text| !text.is_empty());
        snippet = snippet.annotation(kind.span(span).label(text));
    }
    snippet
}

/// A source with stand-ins of the same size for what is not seen, so that labels stay where they are. The renderer has
/// its own for ASCII.
fn in_place(text: &str) -> Cow<'_, str> {
    let is_hidden = |c: char| !c.is_ascii() && is_unseen(c);
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    let stand_in = |c: char| match c.len_utf8() {
        2 => '¿',
        3 => char::REPLACEMENT_CHARACTER,
        _ => '\u{1fbc4}',
    };
    text.chars().map(|c| if is_hidden(c) { stand_in(c) } else { c }).collect::<String>().into()
}

pub(super) fn json(diagnostic: &Diagnostic) -> serde_json::Value {
    let place = |label: &Label| match &diagnostic.source {
        Some(source) => {
            let span = clamp(&source.text, &label.span);
            let place = source.place_of(span.start);
            json!({
                "start": label.span.start,
                "end": label.span.end,
                "line": place.line,
                "column": place.column,
                "text": label.text,
            })
        }
        None => json!({ "start": label.span.start, "end": label.span.end, "text": label.text }),
    };
    let mut json = json!({
        "severity": diagnostic.severity.text(),
        "message": diagnostic.message,
        "file": diagnostic.source.as_ref().map(|source| source.name.as_str()),
        "labels": diagnostic.labels.iter().map(place).collect::<Vec<_>>(),
        "notes": diagnostic.notes,
        "help": diagnostic.help,
    });
    if let Some(source) = diagnostic.source.as_ref().filter(|source| source.is_excerpt()) {
        json["excerpt"] = source.text.as_str().into();
    }
    json
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::diagnostics::{Diagnostic, Source};

    #[test]
    fn json_says_where_in_bytes_lines_and_characters() {
        let source = Source::new("model.ir", "a\nüb c\n");
        let error = Diagnostic::error("wrong").in_source(&source).label(4..5, "this");
        let error = error.label(100..200, "beyond").note("so it is").help("change it");
        assert_eq!(
            error.to_json(),
            json!({
                "severity": "error",
                "message": "wrong",
                "file": "model.ir",
                "labels": [
                    { "start": 4, "end": 5, "line": 2, "column": 2, "text": "this" },
                    { "start": 100, "end": 200, "line": 3, "column": 1, "text": "beyond" },
                ],
                "notes": ["so it is"],
                "help": ["change it"],
            })
        );
    }

    #[test]
    fn nothing_that_is_told_steers_a_terminal() {
        let hostile = "\u{1b}[2Ja\u{202e}b\u{9b}1m";
        let source = Source::new(hostile, format!("{hostile} here\n"));
        let error = Diagnostic::error(hostile).in_source(&source).label(0..3, hostile);
        let shown = error.note(hostile).help(hostile).render(false);
        let steers = |c: char| c != '\n' && crate::printable::is_unseen(c);
        assert!(!shown.contains(steers), "{shown:?}");
        assert_eq!(shown.matches("\\u{202e}b").count(), 5, "{shown}");
    }

    #[test]
    fn json_without_a_source_has_no_lines() {
        assert_eq!(
            Diagnostic::warning("odd").label(1..2, "").to_json(),
            json!({
                "severity": "warning",
                "message": "odd",
                "file": null,
                "labels": [{ "start": 1, "end": 2, "text": "" }],
                "notes": [],
                "help": [],
            })
        );
    }

    #[test]
    fn json_has_the_lines_of_an_excerpt() {
        let lines: String = (1..=100).map(|line| format!("line {line}\n")).collect();
        let at = lines.find("line 50").expect("it is there");
        let (source, place) = Source::excerpt("@main", &lines, &(at..at + 7));
        let json = Diagnostic::error("wrong").in_source(&source).label(place, "").to_json();
        let label = &json["labels"][0];
        assert_eq!((&label["line"], &label["column"]), (&json!(50), &json!(1)));
        let excerpt = json["excerpt"].as_str().expect("a text");
        assert!(excerpt.starts_with("line 30\n") && excerpt.ends_with("\nline 70"), "{excerpt}");
        let start = label["start"].as_u64().expect("a number") as usize;
        assert!(excerpt[start..].starts_with("line 50\n"));
    }
}
