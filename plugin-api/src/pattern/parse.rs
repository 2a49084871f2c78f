//! Reads patterns, without recursion.

use std::fmt;
use std::str::FromStr;

use super::{AttrIs, Node, Pattern};

/// What is wrong with the text of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternError {
    /// The text.
    pub text: String,
    /// Byte offset of the place.
    pub at: usize,
    /// What was expected.
    pub message: String,
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "in the pattern `{}`, at column {}: {}", self.text, self.at + 1, self.message)
    }
}

impl std::error::Error for PatternError {}

/// What is open at a place of the text.
struct Open {
    what: Bracket,
    /// The complete parts between commas.
    parts: Vec<usize>,
    /// The choices of the part that is being read.
    choices: Vec<usize>,
    has_comma: bool,
}

enum Bracket {
    /// The whole text.
    Text,
    Group,
    Call(String),
}

impl Open {
    fn new(what: Bracket) -> Self {
        Self { what, parts: Vec::new(), choices: Vec::new(), has_comma: false }
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    pattern: Pattern,
}

impl FromStr for Pattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        let pattern = Pattern { nodes: Vec::new(), names: Vec::new() };
        let mut parser = Parser { text, at: 0, pattern };
        parser.run().map_err(|message| PatternError {
            text: text.to_owned(),
            at: parser.at,
            message,
        })?;
        Ok(parser.pattern)
    }
}

type Step<T> = Result<T, String>;

impl Parser<'_> {
    fn run(&mut self) -> Step<()> {
        let mut open = vec![Open::new(Bracket::Text)];
        loop {
            // A term is expected here, or the end of an empty list.
            let Some(mut term) = self.term(&mut open)? else { continue };
            // What may follow a term, until the next one is expected.
            loop {
                let depth = open.len();
                let innermost = open.last_mut().expect("the text is open until its end");
                match self.peek() {
                    Some('.') => {
                        self.take('.')?;
                        let index = self.number()?;
                        term = self.node(Node::Item(term, index));
                    }
                    Some('|') => {
                        self.take('|')?;
                        innermost.choices.push(term);
                        break;
                    }
                    Some(',') if !matches!(innermost.what, Bracket::Text) => {
                        self.take(',')?;
                        innermost.choices.push(term);
                        let part = self.choice(&mut open);
                        let innermost = open.last_mut().expect("it was just there");
                        innermost.parts.push(part);
                        innermost.has_comma = true;
                        break;
                    }
                    Some(')') if depth > 1 => {
                        innermost.choices.push(term);
                        let part = self.choice(&mut open);
                        open.last_mut().expect("it was just there").parts.push(part);
                        term = self.close(&mut open)?;
                    }
                    None if depth == 1 => {
                        innermost.choices.push(term);
                        self.choice(&mut open);
                        return Ok(());
                    }
                    _ => return Err(expected(&open)),
                }
            }
        }
    }

    /// A term; `None` when a bracket was opened, behind which one is expected.
    fn term(&mut self, open: &mut Vec<Open>) -> Step<Option<usize>> {
        let first = self.peek();
        let node = match first {
            Some('*') => {
                self.take('*')?;
                Node::Any
            }
            Some('%') => {
                self.take('%')?;
                let name = self.word("a name")?;
                Node::Named(self.pattern.name(&name))
            }
            Some('(') => {
                self.take('(')?;
                open.push(Open::new(Bracket::Group));
                return Ok(None);
            }
            Some(')') => {
                let innermost = open.last().expect("the text is open until its end");
                let may_be_empty = innermost.choices.is_empty()
                    && (innermost.parts.is_empty() || innermost.has_comma)
                    && !matches!(innermost.what, Bracket::Text);
                if !may_be_empty {
                    return Err(TERM.to_owned());
                }
                return self.close(open).map(Some);
            }
            _ => {
                let word = self.word(TERM)?;
                match self.peek() {
                    Some('(') => {
                        self.take('(')?;
                        if !self.rest().starts_with("...") {
                            open.push(Open::new(Bracket::Call(word)));
                            return Ok(None);
                        }
                        self.at += 3;
                        self.take(')')?;
                        let attrs = self.attrs()?;
                        Node::Call { op: word, args: None, attrs }
                    }
                    _ if word == "const" => Node::Constant,
                    _ => return Err(format!("expected `(` behind the operator `{word}`")),
                }
            }
        };
        Ok(Some(self.node(node)))
    }

    /// Ends the innermost bracket, at its `)`.
    fn close(&mut self, open: &mut Vec<Open>) -> Step<usize> {
        self.take(')')?;
        let closed = open.pop().expect("a bracket is open");
        Ok(match closed.what {
            Bracket::Call(op) => {
                let attrs = self.attrs()?;
                self.node(Node::Call { op, args: Some(closed.parts), attrs })
            }
            _ if closed.parts.len() == 1 && !closed.has_comma => closed.parts[0],
            _ => self.node(Node::Tuple(closed.parts)),
        })
    }

    /// The part whose choices have all been read.
    fn choice(&mut self, open: &mut [Open]) -> usize {
        let innermost = open.last_mut().expect("the text is open until its end");
        let choices = std::mem::take(&mut innermost.choices);
        match choices[..] {
            // The root is the last node.
            [only] if only + 1 == self.pattern.nodes.len() || open.len() > 1 => only,
            _ => self.node(Node::Choice(choices)),
        }
    }

    fn attrs(&mut self) -> Step<Vec<(String, AttrIs)>> {
        let mut attrs = Vec::new();
        if self.peek() != Some('{') {
            return Ok(attrs);
        }
        self.take('{')?;
        while self.peek() != Some('}') {
            let name = self.word("the name of an attribute")?;
            self.take('=')?;
            attrs.push((name, self.value()?));
            if self.peek() == Some(',') {
                self.take(',')?;
            }
        }
        self.take('}')?;
        Ok(attrs)
    }

    fn value(&mut self) -> Step<AttrIs> {
        const VALUE: &str = "expected an integer, a float, true, false or a string";
        if self.peek() == Some('"') {
            let Some(end) = self.rest()[1..].find('"') else {
                return Err("the string has no end".to_owned());
            };
            let text = self.rest()[1..=end].to_owned();
            self.at += end + 2;
            return Ok(AttrIs::Str(text));
        }
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+' | '_');
        let word = self.rest().split(|c| !is_part(c)).next().unwrap_or("");
        let value = match word {
            "true" => AttrIs::Bool(true),
            "false" => AttrIs::Bool(false),
            word => match (word.parse(), word.parse()) {
                (Ok(int), _) => AttrIs::Int(int),
                (_, Ok(float)) => AttrIs::Float(float),
                _ => return Err(VALUE.to_owned()),
            },
        };
        self.at += word.len();
        Ok(value)
    }

    fn number(&mut self) -> Step<usize> {
        let rest = self.rest();
        let digits = &rest[..rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len())];
        let number = digits.parse().map_err(|_| "expected the number of a field".to_owned())?;
        self.at += digits.len();
        Ok(number)
    }

    /// A name with its dots; a dot with a digit behind it belongs to what follows.
    fn word(&mut self, what: &str) -> Step<String> {
        self.skip_space();
        let rest = self.rest();
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '.'));
        let word = rest[..end.unwrap_or(rest.len())].trim_end_matches('.').to_owned();
        let is_name = word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        if !is_name {
            return Err(match what {
                TERM => TERM.to_owned(),
                what => format!("expected {what}"),
            });
        }
        self.at += word.len();
        Ok(word)
    }

    fn take(&mut self, c: char) -> Step<()> {
        match self.peek() {
            Some(found) if found == c => {
                self.at += c.len_utf8();
                Ok(())
            }
            _ => Err(format!("expected `{c}`")),
        }
    }

    fn peek(&mut self) -> Option<char> {
        self.skip_space();
        self.rest().chars().next()
    }

    fn skip_space(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn node(&mut self, node: Node) -> usize {
        self.pattern.nodes.push(node);
        self.pattern.nodes.len() - 1
    }
}

const TERM: &str =
    "expected a pattern: `*`, `const`, `%name`, an operator with its arguments, or `(`";

/// What may stand behind a term.
fn expected(open: &[Open]) -> String {
    match open.last().map(|open| &open.what) {
        Some(Bracket::Text) | None => "expected `|`, `.` or the end",
        Some(_) => "expected `|`, `.`, `,` or `)`",
    }
    .to_owned()
}
