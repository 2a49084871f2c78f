//! Which names stand bare, and how all others are quoted.

use std::borrow::Cow;
use std::fmt::Write;

use crate::DType;
use crate::printable::is_unseen;

/// Words that begin something other than the name of an operator or a scalar function.
const RESERVED: &[&str] = &[
    "_",
    "bindings",
    "block",
    "const",
    "dataflow",
    "dim",
    "do",
    "else",
    "eval",
    "extern",
    "false",
    "fn",
    "for",
    "if",
    "inf",
    "let",
    "module",
    "nan",
    "none",
    "op",
    "prim",
    "private",
    "ret",
    "shape",
    "alloc",
    "true",
    "unknown",
    "weights",
    "with",
    "broadcast",
    "floordiv",
    "lit",
    "max",
    "min",
    "object",
    "ramp",
    "select",
    "term",
    "dtype",
    "init",
    "reads",
    "writes",
    "out",
    "in",
];

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Whether a variable or a label of this name needs no quotes: `x`, `x_1`, `12`.
pub(super) fn is_bare_var(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(is_name_byte)
}

/// Whether a function or weight of this name needs no quotes: `main`, `layer1.0.weight`.
pub(super) fn is_bare_global(name: &str) -> bool {
    name.split('.').all(is_bare_var)
}

/// Whether a name is a word: `mix`, `my.fold2d`, `data_layout`.
pub(super) fn is_word(name: &str) -> bool {
    name.split('.').all(|part| is_bare_var(part) && !part.as_bytes()[0].is_ascii_digit())
}

/// Whether an operator or scalar function of this name needs no quotes.
pub(super) fn is_bare_op(name: &str) -> bool {
    is_word(name) && (name.contains('.') || !RESERVED.contains(&name)) && scalar(name).is_none()
}

/// Dtype and lanes of the scalar or vector type that a word names: `f32`, `i8x16`.
pub(super) fn scalar(word: &str) -> Option<(DType, u16)> {
    if let Some(dtype) = DType::from_name(word) {
        return Some((dtype, 1));
    }
    let (dtype, lanes) = word.rsplit_once('x')?;
    let lanes = lanes.parse().ok().filter(|_| !lanes.starts_with('+'))?;
    Some((DType::from_name(dtype)?, lanes))
}

/// Writes a name with its quotes when it needs them.
pub(super) fn write_name(out: &mut String, name: &str, is_bare: bool) {
    match is_bare {
        true => out.push_str(name),
        false => write_quoted(out, name),
    }
}

/// Writes a string.
pub(super) fn write_quoted(out: &mut String, text: &str) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            _ if is_unseen(character) => {
                write!(out, "\\u{{{:x}}}", character as u32).expect("a string takes all");
            }
            _ => out.push(character),
        }
    }
    out.push('"');
}

/// The text of a string token, its quotes included. The error is the offset of a wrong escape.
pub(super) fn unquote(token: &str) -> Result<Cow<'_, str>, usize> {
    let inside = &token[1..token.len() - 1];
    if !inside.contains('\\') {
        return Ok(Cow::Borrowed(inside));
    }
    let mut out = String::with_capacity(inside.len());
    let mut at = 0;
    while let Some(found) = inside[at..].find('\\') {
        let escape = at + found;
        out.push_str(&inside[at..escape]);
        let (character, len) = match inside.as_bytes().get(escape + 1) {
            Some(b'n') => ('\n', 2),
            Some(b'r') => ('\r', 2),
            Some(b't') => ('\t', 2),
            Some(b'0') => ('\0', 2),
            Some(b'\\') => ('\\', 2),
            Some(b'"') => ('"', 2),
            Some(b'u') => {
                let (code, len) = unicode(&inside[escape + 2..]).ok_or(escape + 1)?;
                (code, 2 + len)
            }
            _ => return Err(escape + 1),
        };
        out.push(character);
        at = escape + len;
    }
    out.push_str(&inside[at..]);
    Ok(Cow::Owned(out))
}

/// The character in `{…}` at the start of `text`, and the length of that.
fn unicode(text: &str) -> Option<(char, usize)> {
    let end = text.find('}')?;
    let digits = text[..end].strip_prefix('{')?;
    Some((char::from_u32(u32::from_str_radix(digits, 16).ok()?)?, end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoting_and_unquoting_are_inverse() {
        for text in ["", "a b", "é\"\\\n\t\r\0x", "\u{202e}abc\u{7f}", "\\u{41}", "日本\u{1}語"]
        {
            let mut quoted = String::new();
            write_quoted(&mut quoted, text);
            assert!(!quoted.contains('\n'));
            assert_eq!(unquote(&quoted).unwrap(), text, "{quoted}");
        }
        assert_eq!(unquote(r#""a\u{41}b\u{e9}c""#).unwrap(), "aAbéc");
        assert_eq!(unquote(r#""ab\q""#), Err(3));
        assert_eq!(unquote(r#""\u{110000}""#), Err(1));
    }

    #[test]
    fn bare_names() {
        assert!(is_bare_var("12") && is_bare_var("x_1") && !is_bare_var("a.b") && !is_bare_var(""));
        assert!(
            is_bare_global("layer1.0.weight") && !is_bare_global("a/b") && !is_bare_global("a.")
        );
        assert!(is_word("my.fold2d") && !is_word("my.0") && !is_word(".a"));
        assert!(!is_bare_op("if") && is_bare_op("my.if"));
    }
}
