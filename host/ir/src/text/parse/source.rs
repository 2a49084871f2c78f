//! What nodes came from: `loc("/layer1/conv1/Conv")` behind a binding, a label, or the head of a tensor program.

use super::Parser;
use super::cursor::{Parsed, range};
use crate::NodeSource;
use crate::text::lexer::Tok;

impl Parser<'_, '_> {
    /// `loc(…)`, where it stands here.
    pub(super) fn source(&mut self) -> Parsed<Option<NodeSource>> {
        if !self.eat_word("loc") {
            return Ok(None);
        }
        self.expect(Tok::LParen)?;
        let mut more = 0;
        let parts = self.list(Tok::RParen, |parser| {
            if parser.at(Tok::Int) {
                let token = parser.bump();
                more = match parser.slice(token).parse() {
                    Ok(more) => more,
                    Err(_) => return Err(parser.wrong_number(token, "a count of 32 bits")),
                };
                return match parser.eat_word("more") && parser.at(Tok::RParen) {
                    true => Ok(NodeSource::NONE),
                    false => Err(parser.expected("`more` and the end of the list")),
                };
            }
            let name = parser.expect(Tok::Str)?;
            let scope = match parser.eat_word("in") {
                true => Some(parser.expect(Tok::Str)?),
                false => None,
            };
            let name = parser.unquoted(name, 0)?;
            let scope = scope.map(|scope| parser.unquoted(scope, 0)).transpose()?;
            Ok(NodeSource::named(parser.cx, &name, scope.as_deref().unwrap_or("")))
        })?;
        let source = NodeSource::union(self.cx, parts).and_more(self.cx, more);
        match source.is_none() {
            true => {
                let message = "`loc` names what a node came from, at least one thing";
                Err(self.error_at(range(self.token), message, ""))
            }
            false => Ok(Some(source)),
        }
    }
}

/// A place in a text as the context counts it, whose offsets begin at `base` there.
pub(super) fn in_context(source: NodeSource, base: Option<u32>) -> NodeSource {
    match (source.place(), base) {
        (None, _) => source,
        (Some(_), Some(base)) => NodeSource(source.0 + base),
        (Some(_), None) => NodeSource::NONE,
    }
}
