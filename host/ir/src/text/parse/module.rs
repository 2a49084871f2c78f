//! Modules: attributes, the weights file, functions.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use super::Parser;
use super::body::Body;
use super::cursor::{Halt, Parsed, range};
use super::graph::Graph;
use super::prim::Prim;
use crate::diagnostics::{Diagnostic, Diagnostics};
use crate::suggest::nearest;
use crate::text::WeightsFile;
use crate::text::lexer::Tok;
use crate::{Context, Function, Module, Symbol};

/// The words that begin an item of a module.
const ITEMS: &[&str] = &["fn", "prim", "private", "module", "weights"];

impl<'s> Parser<'s, '_> {
    /// Reads all of the text.
    pub(super) fn module(mut self) -> Result<Module, Diagnostics> {
        let mut module = Module::new(self.cx.clone());
        let mut places = HashMap::new();
        while !self.at(Tok::End) && !self.is_hopeless() {
            if self.item(&mut module, &mut places).is_err() {
                self.skip_item();
            }
        }
        if self.errors > self.diagnostics.len() {
            let more = self.errors - self.diagnostics.len();
            let message = format!("there are more errors than these; {more} were not reported");
            self.diagnostics.push(Diagnostic::error(message));
        }
        match self.diagnostics.is_empty() {
            true => Ok(module),
            false => Err(Diagnostics(self.diagnostics)),
        }
    }

    fn item(
        &mut self,
        module: &mut Module,
        places: &mut HashMap<Symbol, Range<usize>>,
    ) -> Parsed<()> {
        let token = self.token;
        if !self.at(Tok::Word) {
            return Err(self.expected("`fn`, `prim`, `module` or `weights`"));
        }
        match self.slice(token) {
            "module" => {
                self.bump();
                module.attrs = if self.at_attrs() { self.attrs()? } else { self.dict()? };
                Ok(())
            }
            "weights" => {
                self.bump();
                let name = self.expect(Tok::Str)?;
                let name = self.unquoted(name, 0)?.into_owned();
                let sha256 = match self.eat_word("sha256") {
                    true => Some(self.sha256()?),
                    false => None,
                };
                self.weights_file = Some(WeightsFile { name, sha256 });
                Ok(())
            }
            "fn" | "prim" | "private" => {
                let is_private = self.eat_word("private");
                if !self.at_word("fn") && !self.at_word("prim") {
                    return Err(self.expected("`fn` or `prim`"));
                }
                let keyword = self.bump();
                let is_prim = self.slice(keyword) == "prim";
                let name = self.expect(Tok::Global)?;
                let text = self.unquoted(name, 1)?;
                let symbol = self.cx.symbol(&text);
                if let Some(old) = places.insert(symbol, range(name)) {
                    let message = format!("{} is already defined", self.slice(name));
                    let diagnostic = Diagnostic::error(message)
                        .label(range(name), "defined again")
                        .label(old, "defined before");
                    self.report(diagnostic);
                }
                if let Some(function) = self.function(is_private, is_prim)? {
                    module.insert(symbol, function);
                }
                Ok(())
            }
            word => {
                let near = nearest(word, ITEMS.iter().copied());
                let mut diagnostic = Diagnostic::error(format!(
                    "expected `fn`, `prim`, `module` or `weights`, found `{word}`"
                ))
                .label(range(token), "does not begin an item of a module");
                if let Some(near) = near {
                    diagnostic = diagnostic.help(format!("did you mean `{near}`?"));
                }
                Err(self.report(diagnostic))
            }
        }
    }

    /// A digest, in quotes.
    fn sha256(&mut self) -> Parsed<String> {
        let token = self.expect(Tok::Str)?;
        let digest = self.unquoted(token, 0)?.to_ascii_lowercase();
        if digest.len() != 64 || !digest.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            let message = "a SHA-256 digest has 64 hexadecimal digits";
            return Err(self.error_at(range(token), message, "not a digest"));
        }
        Ok(digest)
    }

    /// Reads a function behind its name; `None` when it has errors but was read to its end.
    fn function(&mut self, is_private: bool, is_prim: bool) -> Parsed<Option<Arc<Function>>> {
        let body = Body::new(self.cx);
        let read = match is_prim {
            true => Prim { body, parser: self, frames: Vec::new(), stmts: Vec::new() }
                .function(is_private)?,
            false => Graph {
                body,
                parser: self,
                frames: Vec::new(),
                values: Vec::new(),
                bindings: Vec::new(),
            }
            .function(is_private)?,
        };
        match read {
            Some((body, root)) => self.publish(body, root).map(Some),
            None => Ok(None),
        }
    }

    /// The symbol of an operator. Another name that it has stands for its own.
    pub(super) fn op_symbol(&mut self, name: &'s str) -> Symbol {
        *self.ops.entry(name).or_insert_with(|| match self.cx.operators().canonical(name) {
            Some(own) => self.cx.symbol(&own),
            None => self.cx.symbol(name),
        })
    }

    /// Skips to the next item after an error outside of a body.
    fn skip_item(&mut self) {
        while !self.at(Tok::End) && !self.is_item_start() {
            self.bump();
        }
    }

    /// Whether an item of the module begins here, so that the body before it was not closed.
    pub(super) fn is_item_start(&self) -> bool {
        if !self.at(Tok::Word) || !self.is_line_start() {
            return false;
        }
        let mut ahead = self.ahead().map(|token| token.tok);
        match self.slice(self.token) {
            "fn" | "prim" => ahead.next() == Some(Tok::Global),
            "private" => ahead.nth(1) == Some(Tok::Global),
            "module" => ahead.next() == Some(Tok::LBrace),
            _ => false,
        }
    }

    /// Skips to where a statement begins, or to the brace that ends the scope. What stands in braces is
    /// skipped as a whole. `words` begin statements.
    pub(super) fn skip_statement(&mut self, words: &[&str]) -> Parsed<()> {
        // The braces of dictionaries that were being read are still to come.
        let dicts = std::mem::take(&mut self.open_dicts);
        let mut depth = dicts;
        loop {
            match self.token.tok {
                Tok::End => return Err(Halt),
                _ if self.is_item_start() => return Err(Halt),
                Tok::LBrace => depth += 1,
                Tok::RBrace if depth == 0 => return Ok(()),
                Tok::RBrace => depth -= 1,
                _ if depth <= dicts && self.is_statement_start(words) => return Ok(()),
                _ => {}
            }
            self.bump();
        }
    }

    /// Whether a statement begins here that is sure to step over its first token.
    fn is_statement_start(&self, words: &[&str]) -> bool {
        if !self.is_line_start() {
            return false;
        }
        let next = self.ahead().next().map(|token| token.tok);
        match self.token.tok {
            Tok::Var | Tok::Label => {
                matches!(next, Some(Tok::Colon | Tok::Assign | Tok::LBracket))
            }
            Tok::Word => words.contains(&self.slice(self.token)),
            _ => false,
        }
    }
}
