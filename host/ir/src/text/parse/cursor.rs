//! Walks over the tokens and reports what was expected.

use std::borrow::Cow;
use std::ops::Range;

use super::Parser;
use crate::diagnostics::Diagnostic;
use crate::text::lexer::{Tok, Token};
use crate::text::names::unquote;

/// The parser cannot go on from here; what is wrong was reported.
#[derive(Debug)]
pub(super) struct Halt;

pub(super) type Parsed<T> = Result<T, Halt>;

/// Errors after which a text is given up.
const MOST_ERRORS: usize = 50;

impl<'s> Parser<'s, '_> {
    /// The text of a token.
    pub(super) fn slice(&self, token: Token) -> &'s str {
        &self.text[token.start as usize..token.end as usize]
    }

    /// Steps over the current token and returns it.
    pub(super) fn bump(&mut self) -> Token {
        let token = self.token;
        self.last_end = token.end;
        self.token = self.lexer.next();
        token
    }

    /// Continues at byte `at`.
    pub(super) fn jump(&mut self, at: usize) {
        self.last_end = at as u32;
        self.lexer.seek(at);
        self.token = self.lexer.next();
    }

    /// The tokens after the current one.
    pub(super) fn ahead(&self) -> impl Iterator<Item = Token> + use<'s> {
        let mut lexer = self.lexer;
        std::iter::repeat_with(move || lexer.next())
    }

    pub(super) fn at(&self, tok: Tok) -> bool {
        self.token.tok == tok
    }

    pub(super) fn at_word(&self, word: &str) -> bool {
        self.at(Tok::Word) && self.slice(self.token) == word
    }

    pub(super) fn eat(&mut self, tok: Tok) -> bool {
        let is_here = self.at(tok);
        if is_here {
            self.bump();
        }
        is_here
    }

    pub(super) fn eat_word(&mut self, word: &str) -> bool {
        let is_here = self.at_word(word);
        if is_here {
            self.bump();
        }
        is_here
    }

    pub(super) fn expect(&mut self, tok: Tok) -> Parsed<Token> {
        match self.at(tok) {
            true => Ok(self.bump()),
            false => Err(self.expected(tok.text())),
        }
    }

    /// Whether the current token is the first one on its line.
    pub(super) fn is_line_start(&self) -> bool {
        let between = self.last_end as usize..self.token.start as usize;
        self.last_end == 0 || self.text.as_bytes()[between].contains(&b'\n')
    }

    /// Items up to `end`, with commas between them and perhaps one behind them.
    pub(super) fn list<T>(
        &mut self,
        end: Tok,
        mut item: impl FnMut(&mut Self) -> Parsed<T>,
    ) -> Parsed<Vec<T>> {
        let mut items = Vec::new();
        while !self.at(end) {
            items.push(item(self)?);
            if !self.eat(Tok::Comma) && !self.at(end) {
                return Err(self.expected(&format!("`,` or {}", end.text())));
            }
        }
        self.bump();
        Ok(items)
    }

    /// The text of a string, with its quotes and a sigil before it or not.
    pub(super) fn unquoted(&mut self, token: Token, sigil: usize) -> Parsed<Cow<'s, str>> {
        let text = &self.slice(token)[sigil..];
        if !text.starts_with('"') {
            return Ok(Cow::Borrowed(text));
        }
        unquote(text).map_err(|offset| {
            let at = token.start as usize + sigil + offset;
            let known = "known escapes are \\n \\r \\t \\0 \\\\ \\\" and \\u{…}";
            let diagnostic = Diagnostic::error("unknown escape in a string")
                .label(at..at + 2, "this escape")
                .help(known);
            self.report(diagnostic)
        })
    }

    /// The current token is not what it should be.
    pub(super) fn expected(&mut self, what: &str) -> Halt {
        let token = self.token;
        let found = self.described(token);
        let diagnostic = Diagnostic::error(format!("expected {what}, found {found}"))
            .label(range(token), format!("expected {what}"));
        self.report(diagnostic)
    }

    /// A token as it is named in messages.
    pub(super) fn described(&self, token: Token) -> String {
        match token.tok {
            Tok::End | Tok::OpenStr => token.tok.text().to_owned(),
            _ => {
                let text: String = self.slice(token).chars().take(40).collect();
                let cut = if text.len() < self.slice(token).len() { "…" } else { "" };
                format!("`{text}{cut}`")
            }
        }
    }

    /// Reports an error with one place.
    pub(super) fn error_at(
        &mut self,
        span: Range<usize>,
        message: impl Into<String>,
        label: impl Into<String>,
    ) -> Halt {
        self.report(Diagnostic::error(message).label(span, label))
    }

    /// Reports. Whoever cannot go on returns the result.
    pub(super) fn report(&mut self, diagnostic: Diagnostic) -> Halt {
        self.errors += 1;
        if self.errors <= MOST_ERRORS {
            self.diagnostics.push(diagnostic.in_source(self.source));
        }
        Halt
    }

    /// Whether there were so many errors that no more are reported.
    pub(super) fn is_hopeless(&self) -> bool {
        self.errors > MOST_ERRORS
    }
}

/// The bytes of a token.
pub(super) fn range(token: Token) -> Range<usize> {
    token.start as usize..token.end as usize
}
