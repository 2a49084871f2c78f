//! Text that others wrote, as a terminal, a log or a reader may be given it: nothing in it moves a cursor, changes a
//! color, or turns the order of what stands beside it.

use std::borrow::Cow;
use std::fmt::Write;

/// Whether a character is not seen where it stands: controls, what turns the order of a line (as in
/// <https://trojansource.codes>), and what has no width.
pub fn is_unseen(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_control();
    }
    let is_format = matches!(
        c,
        '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}'
    );
    c.is_control() || is_format
}

/// A text of several lines, everything else that is not seen escaped.
pub fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, |c| matches!(c, '\n' | '\t'), |out, c| write!(out, "{}", c.escape_debug()))
}

/// A text that is to stay on its line.
pub fn printable_line(text: &str) -> Cow<'_, str> {
    escaped(text, |_| false, |out, c| write!(out, "{}", c.escape_debug()))
}

/// A text in JSON, which says the same with every unseen character of its strings escaped.
pub fn printable_json(text: &str) -> Cow<'_, str> {
    let escape = |out: &mut String, c: char| {
        let mut units = [0; 2];
        c.encode_utf16(&mut units).iter().try_for_each(|unit| write!(out, "\\u{unit:04x}"))
    };
    escaped(text, |c| c == '\n', escape)
}

fn escaped(
    text: &str,
    is_kept: impl Fn(char) -> bool,
    escape: impl Fn(&mut String, char) -> std::fmt::Result,
) -> Cow<'_, str> {
    let is_escaped = |c: char| is_unseen(c) && !is_kept(c);
    let Some(first) = text.find(is_escaped) else { return Cow::Borrowed(text) };
    let mut out = String::with_capacity(text.len() + 16);
    out.push_str(&text[..first]);
    for c in text[first..].chars() {
        match is_escaped(c) {
            true => escape(&mut out, c).expect("a text takes whatever is written"),
            false => out.push(c),
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::{printable, printable_json, printable_line};

    #[test]
    fn what_is_not_seen_is_escaped() {
        let text = "ä\t\"x\"\n\u{1b}[31mred\u{9b}0m \u{202e}txt\u{e0041}";
        let shown = "\\u{1b}[31mred\\u{9b}0m \\u{202e}txt\\u{e0041}";
        assert_eq!(printable(text), format!("ä\t\"x\"\n{shown}"));
        assert_eq!(printable_line(text), format!("ä\\t\"x\"\\n{shown}"));
        assert_eq!(printable("wie es ist\n"), "wie es ist\n");
    }

    #[test]
    fn json_says_the_same() {
        let said = "\u{202e}a\u{7f}\u{e0041}\u{1b}";
        let json = serde_json::to_string(said).unwrap();
        let shown = printable_json(&json);
        assert_eq!(shown, r#""\u202ea\u007f\udb40\udc41\u001b""#);
        assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), said);
    }
}
