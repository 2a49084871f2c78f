//! Textual pipelines: `acme.Fold, fixpoint(A, func(B, C{size=8})){max=4}, phase(fuse)`.
//!
//! | | |
//! |---|---|
//! | `NAME`, `NAME{option=value, …}` | a pass, or without options a named pipeline |
//! | `func(…)` | function passes, each function going through all of them |
//! | `fixpoint(…){max=N}` | passes in rounds, until a round changes nothing |
//! | `sequential(…){name="x", opt_level=N}` | passes that one name or level turns off together |
//! | `composite(…){name="x", opt_level=N}` | the same, and the passes' own levels and names are no matter |
//! | `phase(NAME)` | the module enters the phase, and the phase's passes run |
//! | `enter(NAME)` | the module enters the phase, and no more |
//!
//! What is read is flat, as plans are: a group is what stands between its beginning and its end.

use std::fmt;
use std::ops::Range;

use thiserror::Error;

use crate::registry::{OptionValue, is_name_char};
use crate::suggest::nearest;

/// The words that an opening parenthesis follows.
const GROUPS: [&str; 6] = ["func", "fixpoint", "sequential", "composite", "phase", "enter"];

/// Elements in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pipeline(pub Vec<Element>);

/// One element of a pipeline.
#[derive(Clone, Debug, PartialEq)]
pub enum Element {
    /// A pass, or a named pipeline.
    Pass(PassSpec),
    /// The module enters a phase, and all passes of it run.
    Phase(Word),
    /// The module enters a phase.
    Enter(Word),
    /// A group begins: `func`, `fixpoint`, `sequential` or `composite`.
    Begin(Word),
    /// The innermost group ends; its options.
    End(Vec<OptionSpec>),
}

/// A name, and its bytes in the text.
#[derive(Clone, Debug, PartialEq)]
pub struct Word {
    /// The name, as it was written.
    pub text: String,
    /// Where.
    pub at: Range<usize>,
}

/// A pass with values of some of its options.
#[derive(Clone, Debug, PartialEq)]
pub struct PassSpec {
    /// Its name.
    pub name: Word,
    /// Options and values.
    pub options: Vec<OptionSpec>,
}

/// A value of an option.
#[derive(Clone, Debug, PartialEq)]
pub struct OptionSpec {
    /// The option.
    pub name: Word,
    /// The value.
    pub value: OptionValue,
    /// The value's bytes in the text.
    pub at: Range<usize>,
}

/// What is wrong with a pipeline's text.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
#[error("in the pipeline `{text}`, at column {}: {message}", .at + 1)]
pub struct PipelineError {
    /// The text.
    pub text: String,
    /// Byte offset of the place.
    pub at: usize,
    /// What was expected.
    pub message: String,
}

impl Pipeline {
    /// Parses a pipeline. Groups may be nested to any depth.
    pub fn parse(text: &str) -> Result<Pipeline, PipelineError> {
        let mut parser = Parser { text, at: 0 };
        let mut elements = Vec::new();
        let mut open = 0;
        parser.skip_space();
        while parser.at < text.len() {
            let element = match open > 0 && parser.eat(')') {
                true => Element::End(parser.options()?),
                false => parser.element()?,
            };
            parser.skip_space();
            match &element {
                Element::Begin(_) => open += 1,
                Element::End(_) => open -= 1,
                _ => {}
            }
            let is_open = matches!(element, Element::Begin(_));
            elements.push(element);
            let is_last = parser.at == text.len() || open > 0 && parser.rest().starts_with(')');
            if !is_open && !is_last {
                parser.expect(',', if open > 0 { "`,` or `)`" } else { "`,` or the end" })?;
                parser.skip_space();
            }
        }
        match open {
            0 => Ok(Pipeline(elements)),
            _ => parser.error("expected `)`"),
        }
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn error<T>(&self, message: impl Into<String>) -> Result<T, PipelineError> {
        Err(PipelineError { text: self.text.to_owned(), at: self.at, message: message.into() })
    }

    fn skip_space(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    fn eat(&mut self, expected: char) -> bool {
        let found = self.rest().starts_with(expected);
        if found {
            self.at += expected.len_utf8();
        }
        found
    }

    fn expect(&mut self, expected: char, what: &str) -> Result<(), PipelineError> {
        if self.eat(expected) { Ok(()) } else { self.error(format!("expected {what}")) }
    }

    fn word(&mut self, what: &str) -> Result<Word, PipelineError> {
        let start = self.at;
        let text = self.bare(what)?.to_owned();
        Ok(Word { text, at: start..self.at })
    }

    /// Letters, digits, and what else stands in names and numbers.
    fn bare(&mut self, what: &str) -> Result<&'a str, PipelineError> {
        let rest = self.rest();
        let end = rest.find(|c: char| !is_name_char(c)).unwrap_or(rest.len());
        if end == 0 {
            return self.error(format!("expected {what}"));
        }
        self.at += end;
        Ok(&rest[..end])
    }

    fn element(&mut self) -> Result<Element, PipelineError> {
        let name = self.word("the name of a pass")?;
        if !self.eat('(') {
            let options = self.options()?;
            return Ok(Element::Pass(PassSpec { name, options }));
        }
        self.skip_space();
        let is_phase = match name.text.as_str() {
            "func" | "fixpoint" | "sequential" | "composite" => return Ok(Element::Begin(name)),
            "phase" => true,
            "enter" => false,
            other => {
                let near = nearest(other, GROUPS.into_iter());
                let near = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
                self.at = name.at.start;
                return self.error(format!("`{other}(` begins nothing{near}"));
            }
        };
        let phase = self.word("the name of a phase")?;
        self.skip_space();
        self.expect(')', "`)`")?;
        Ok(if is_phase { Element::Phase(phase) } else { Element::Enter(phase) })
    }

    /// `{name=value, …}`, where it stands.
    fn options(&mut self) -> Result<Vec<OptionSpec>, PipelineError> {
        let mut options = Vec::new();
        self.skip_space();
        if self.eat('{') {
            self.skip_space();
            while !self.eat('}') {
                options.push(self.option()?);
                self.comma_before('}', "`,` or `}`")?;
            }
        }
        Ok(options)
    }

    fn option(&mut self) -> Result<OptionSpec, PipelineError> {
        let name = self.word("the name of an option or `}`")?;
        self.skip_space();
        self.expect('=', "`=` and a value")?;
        self.skip_space();
        let start = self.at;
        let value = match self.eat('[') {
            true => self.list()?,
            false => self.scalar()?,
        };
        Ok(OptionSpec { name, value, at: start..self.at })
    }

    fn list(&mut self) -> Result<OptionValue, PipelineError> {
        let mut items = Vec::new();
        self.skip_space();
        while !self.eat(']') {
            items.push(self.scalar()?);
            self.comma_before(']', "`,` or `]`")?;
        }
        Ok(OptionValue::List(items))
    }

    /// A comma, unless the list ends here.
    fn comma_before(&mut self, end: char, what: &str) -> Result<(), PipelineError> {
        self.skip_space();
        if !self.rest().starts_with(end) {
            self.expect(',', what)?;
            self.skip_space();
        }
        Ok(())
    }

    fn scalar(&mut self) -> Result<OptionValue, PipelineError> {
        if self.eat('"') {
            return self.string();
        }
        Ok(match self.bare("a value")? {
            "true" => OptionValue::Bool(true),
            "false" => OptionValue::Bool(false),
            word => {
                if let Ok(value) = word.parse() {
                    OptionValue::Int(value)
                } else if let Ok(value) = word.parse() {
                    OptionValue::Float(value)
                } else {
                    OptionValue::Str(word.to_owned())
                }
            }
        })
    }

    /// The rest of a text in quotes; `\"` and `\\` stand for the characters themselves.
    fn string(&mut self) -> Result<OptionValue, PipelineError> {
        let mut text = String::new();
        let mut chars = self.rest().char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    self.at += at + 1;
                    return Ok(OptionValue::Str(text));
                }
                '\\' => text.extend(chars.next().map(|(_, escaped)| escaped)),
                c => text.push(c),
            }
        }
        self.error("expected the end of a text, `\"`")
    }
}

impl fmt::Display for Pipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut is_first = true;
        for element in &self.0 {
            if !is_first && !matches!(element, Element::End(_)) {
                f.write_str(", ")?;
            }
            is_first = matches!(element, Element::Begin(_));
            match element {
                Element::Pass(pass) => {
                    f.write_str(&pass.name.text)?;
                    write_options(f, &pass.options)?;
                }
                Element::Phase(phase) => write!(f, "phase({})", phase.text)?,
                Element::Enter(phase) => write!(f, "enter({})", phase.text)?,
                Element::Begin(kind) => write!(f, "{}(", kind.text)?,
                Element::End(options) => {
                    f.write_str(")")?;
                    write_options(f, options)?;
                }
            }
        }
        Ok(())
    }
}

fn write_options(f: &mut fmt::Formatter<'_>, options: &[OptionSpec]) -> fmt::Result {
    if options.is_empty() {
        return Ok(());
    }
    let options: Vec<String> =
        options.iter().map(|set| format!("{}={}", set.name.text, set.value)).collect();
    write!(f, "{{{}}}", options.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_what_it_parses() {
        let text = concat!(
            r#"a.B, c{x=1, y=-2.5, z=true, w="v v"}, d{s="a\\\"b", l=[1, "2"], e=[]}, phase(fuse), "#,
            "fixpoint(a, func(b, c{x=1}), enter(plan)){max=3}, func(), e"
        );
        assert_eq!(Pipeline::parse(text).unwrap().to_string(), text);
    }

    #[test]
    fn says_where_and_what() {
        let message = |text: &str| Pipeline::parse(text).unwrap_err().to_string();
        let column = |text: &str, rest: &str| format!("in the pipeline `{text}`, at column {rest}");
        assert_eq!(message("a, b{x 1}"), column("a, b{x 1}", "8: expected `=` and a value"));
        assert_eq!(message("func(a, b"), column("func(a, b", "10: expected `)`"));
        assert_eq!(message("func(a b)"), column("func(a b)", "8: expected `,` or `)`"));
        assert_eq!(message("a)"), column("a)", "2: expected `,` or the end"));
        let slip = "1: `fixpiont(` begins nothing; did you mean `fixpoint`?";
        assert_eq!(message("fixpiont(a)"), column("fixpiont(a)", slip));
    }

    #[test]
    fn depth_costs_no_stack() {
        let depth = 100_000;
        let text = format!("{}a{}", "fixpoint(".repeat(depth), ")".repeat(depth));
        assert_eq!(Pipeline::parse(&text).unwrap().to_string(), text);
    }
}
