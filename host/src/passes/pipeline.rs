//! Textual pipelines: `FoldConstant, FuseOps{max_depth=8}, phase(fuse)`.

use std::fmt;

use thiserror::Error;

/// Elements in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pipeline(pub Vec<Element>);

/// One element of a pipeline.
#[derive(Clone, Debug, PartialEq)]
pub enum Element {
    /// A pass.
    Pass(PassSpec),
    /// All passes of a phase, or the marker of it in a plan.
    Phase(String),
}

/// A pass with values of some of its options.
#[derive(Clone, Debug, PartialEq)]
pub struct PassSpec {
    /// Its name, as it was written.
    pub name: String,
    /// Options and values.
    pub options: Vec<(String, OptionValue)>,
}

/// The value of an option.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "each variant is the kind of value it holds")]
pub enum OptionValue {
    Int(i64),
    Float(f64),
    Bool(bool),
    Str(String),
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

    fn word(&mut self, what: &str) -> Result<&'a str, PipelineError> {
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
        if name == "phase" && self.eat('(') {
            self.skip_space();
            let phase = self.word("the name of a phase")?;
            self.skip_space();
            self.expect(')', "`)`")?;
            return Ok(Element::Phase(phase.to_owned()));
        }
        let mut options = Vec::new();
        self.skip_space();
        if self.eat('{') {
            self.skip_space();
            while !self.eat('}') {
                let key = self.word("the name of an option or `}`")?;
                self.skip_space();
                self.expect('=', "`=` and a value")?;
                self.skip_space();
                options.push((key.to_owned(), self.value()?));
                self.skip_space();
                if !self.rest().starts_with('}') {
                    self.expect(',', "`,` or `}`")?;
                    self.skip_space();
                }
            }
        }
        Ok(Element::Pass(PassSpec { name: name.to_owned(), options }))
    }

    fn value(&mut self) -> Result<OptionValue, PipelineError> {
        if self.eat('"') {
            let Some(end) = self.rest().find('"') else {
                return self.error("expected the end of a string, `\"`");
            };
            let text = self.rest()[..end].to_owned();
            self.at += end + 1;
            return Ok(OptionValue::Str(text));
        }
        let word = self.word("a value")?;
        Ok(match word {
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
}

impl fmt::Display for Pipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, element) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str(", ")?;
            }
            match element {
                Element::Pass(pass) => write!(f, "{pass}")?,
                Element::Phase(phase) => write!(f, "phase({phase})")?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for PassSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if self.options.is_empty() {
            return Ok(());
        }
        let options: Vec<String> =
            self.options.iter().map(|(key, value)| format!("{key}={value}")).collect();
        write!(f, "{{{}}}", options.join(", "))
    }
}

impl fmt::Display for OptionValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OptionValue::Int(value) => write!(f, "{value}"),
            OptionValue::Float(value) => write!(f, "{value:?}"),
            OptionValue::Bool(value) => write!(f, "{value}"),
            OptionValue::Str(value) => write!(f, "\"{value}\""),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_what_it_parses() {
        let text = "a.B, c{x=1, y=-2.5, z=true, w=\"v v\"}, phase(fuse)";
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
