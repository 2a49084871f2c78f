//! Textual pipelines: `FoldConstant, FuseOps{max_depth=8}, phase(fuse)`.

use std::fmt;
use std::ops::Range;

use thiserror::Error;

use crate::registry::OptionValue;

/// Elements in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pipeline(pub Vec<Element>);

/// One element of a pipeline.
#[derive(Clone, Debug, PartialEq)]
pub enum Element {
    /// A pass.
    Pass(PassSpec),
    /// All passes of a phase, or the marker of it in a plan.
    Phase(Word),
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
    /// Parses a pipeline.
    pub fn parse(text: &str) -> Result<Pipeline, PipelineError> {
        let mut parser = Parser { text, at: 0 };
        let mut elements = Vec::new();
        parser.skip_space();
        while parser.at < text.len() {
            elements.push(parser.element()?);
            parser.skip_space();
            if parser.at < text.len() {
                parser.expect(',', "`,` or the end")?;
                parser.skip_space();
            }
        }
        Ok(Pipeline(elements))
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
        let end = rest
            .find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '.' | '-' | '+')))
            .unwrap_or(rest.len());
        if end == 0 {
            return self.error(format!("expected {what}"));
        }
        self.at += end;
        Ok(&rest[..end])
    }

    fn element(&mut self) -> Result<Element, PipelineError> {
        let name = self.word("the name of a pass")?;
        if name.text == "phase" && self.eat('(') {
            self.skip_space();
            let phase = self.word("the name of a phase")?;
            self.skip_space();
            self.expect(')', "`)`")?;
            return Ok(Element::Phase(phase));
        }
        let mut options = Vec::new();
        self.skip_space();
        if self.eat('{') {
            self.skip_space();
            while !self.eat('}') {
                options.push(self.option()?);
                self.comma_before('}', "`,` or `}`")?;
            }
        }
        Ok(Element::Pass(PassSpec { name, options }))
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
        for (i, element) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str(", ")?;
            }
            match element {
                Element::Pass(pass) => write!(f, "{pass}")?,
                Element::Phase(phase) => write!(f, "phase({})", phase.text)?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for PassSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name.text)?;
        if self.options.is_empty() {
            return Ok(());
        }
        let options: Vec<String> =
            self.options.iter().map(|set| format!("{}={}", set.name.text, set.value)).collect();
        write!(f, "{{{}}}", options.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_what_it_parses() {
        let text =
            r#"a.B, c{x=1, y=-2.5, z=true, w="v v"}, d{s="a\\\"b", l=[1, "2"], e=[]}, phase(fuse)"#;
        assert_eq!(Pipeline::parse(text).unwrap().to_string(), text);
    }

    #[test]
    fn says_where_and_what() {
        let error = Pipeline::parse("a, b{x 1}").unwrap_err();
        assert_eq!(
            error.to_string(),
            "in the pipeline `a, b{x 1}`, at column 8: expected `=` and a value"
        );
    }
}
