//! Maps of indices, as they are written in a trace: `(i, j) -> (i / 16, j, i % 16)`.

use tenon_plugin_api::ir::Expr;

use crate::index::{Space, Sum};

/// What is nested deeper than this is no map that anyone wrote.
const MAX_DEPTH: usize = 32;

/// A map from indices to indices.
pub(crate) struct IndexMap {
    pub(crate) inputs: Vec<String>,
    pub(crate) outputs: Vec<Term>,
}

/// An expression over the inputs of a map, by their numbers.
pub(crate) enum Term {
    Int(i64),
    Input(usize),
    Binary(char, Box<Term>, Box<Term>),
}

impl Term {
    /// The sum that it is; `/` rounds down. `None` where it divides by what is not positive, or grows too long.
    pub(crate) fn sum(&self, space: &mut Space, inputs: &[Expr]) -> Option<Sum> {
        match self {
            Term::Int(value) => Some(Sum::int(*value)),
            Term::Input(at) => Some(space.node(inputs[*at])),
            Term::Binary(op, a, b) => {
                let (a, b) = (a.sum(space, inputs)?, b.sum(space, inputs)?);
                match op {
                    '+' => Some(a.add(&b)),
                    '-' => Some(a.sub(&b)),
                    '*' => a.mul(&b),
                    _ if !space.is_natural(&b.add_int(-1)) => None,
                    '/' => Some(space.div(&a, &b)),
                    _ => Some(space.modulo(&a, &b)),
                }
            }
        }
    }
}

impl IndexMap {
    /// The product of all numbers by which it divides; `None` where that is too large.
    pub(crate) fn divisor(&self) -> Option<i64> {
        let mut product = 1i64;
        let mut stack: Vec<&Term> = self.outputs.iter().collect();
        while let Some(term) = stack.pop() {
            let Term::Binary(op, a, b) = term else { continue };
            if let (true, Term::Int(number)) = (matches!(op, '/' | '%'), b.as_ref()) {
                product = product.checked_mul((*number).max(1))?;
            }
            stack.extend([a.as_ref(), b.as_ref()]);
        }
        Some(product)
    }

    /// The inputs of which there are quotients, with the numbers by which they are divided.
    pub(crate) fn quotients(&self) -> Vec<(usize, i64)> {
        let (mut found, mut stack) = (Vec::new(), self.outputs.iter().collect::<Vec<&Term>>());
        while let Some(term) = stack.pop() {
            let Term::Binary(op, a, b) = term else { continue };
            if let ('/', Term::Input(at), Term::Int(by @ 1..)) = (op, a.as_ref(), b.as_ref()) {
                found.push((*at, *by));
            }
            stack.extend([a.as_ref(), b.as_ref()]);
        }
        found
    }

    /// Reads a map.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let Some((left, right)) = text.split_once("->") else {
            return Err("`->` is expected between old and new indices".into());
        };
        let list = |text: &str| -> Option<Vec<String>> {
            let inner = text.trim().strip_prefix('(')?.strip_suffix(')')?;
            Some(inner.split(',').map(|part| part.trim().to_owned()).collect())
        };
        let (Some(inputs), Some(outputs)) = (list(left), list(right)) else {
            return Err("indices stand in parentheses".into());
        };
        let is_name = |name: &String| {
            name.starts_with(|c: char| c.is_ascii_alphabetic())
                && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        };
        if let Some(wrong) = inputs.iter().find(|name| !is_name(name)) {
            return Err(format!("`{wrong}` is no name"));
        }
        let outputs = outputs
            .iter()
            .map(|output| {
                let mut parser = Parser { inputs: &inputs, rest: output };
                let term = parser.sum(MAX_DEPTH)?;
                match parser.rest.trim() {
                    "" => Ok(term),
                    rest => Err(format!("`{rest}` is not expected")),
                }
            })
            .collect::<Result<_, String>>()?;
        Ok(Self { inputs, outputs })
    }
}

struct Parser<'a> {
    inputs: &'a [String],
    rest: &'a str,
}

impl Parser<'_> {
    fn sum(&mut self, depth: usize) -> Result<Term, String> {
        let mut term = self.product(depth)?;
        while let Some(op) = self.eat(&['+', '-']) {
            term = Term::Binary(op, Box::new(term), Box::new(self.product(depth)?));
        }
        Ok(term)
    }

    fn product(&mut self, depth: usize) -> Result<Term, String> {
        let mut term = self.item(depth)?;
        while let Some(op) = self.eat(&['*', '/', '%']) {
            term = Term::Binary(op, Box::new(term), Box::new(self.item(depth)?));
        }
        Ok(term)
    }

    fn item(&mut self, depth: usize) -> Result<Term, String> {
        if depth == 0 {
            return Err("it is nested too deeply".into());
        }
        if self.eat(&['(']).is_some() {
            let term = self.sum(depth - 1)?;
            return match self.eat(&[')']) {
                Some(_) => Ok(term),
                None => Err("`)` is expected".into()),
            };
        }
        self.rest = self.rest.trim_start();
        let len = self.rest.chars().take_while(|&c| c.is_ascii_alphanumeric() || c == '_').count();
        let (word, rest) = self.rest.split_at(len);
        self.rest = rest;
        if let Ok(value) = word.parse() {
            return Ok(Term::Int(value));
        }
        match self.inputs.iter().position(|input| input == word) {
            Some(at) => Ok(Term::Input(at)),
            None => Err(format!("`{word}` is none of the old indices")),
        }
    }

    fn eat(&mut self, any: &[char]) -> Option<char> {
        self.rest = self.rest.trim_start();
        let first = self.rest.chars().next().filter(|c| any.contains(c))?;
        self.rest = &self.rest[first.len_utf8()..];
        Some(first)
    }
}
