//! Parsing a trace.

use std::collections::HashMap;
use std::fmt;

use crate::primitives;

use super::{Args, Handle, Kind, Param, Primitive, Value};

/// Lists within lists, and the arguments of one instruction, are at most so many.
const MAX_ITEMS: usize = 4096;

/// A trace as it is written, before it is applied to a program.
#[derive(Clone, Debug)]
pub struct Script {
    pub(super) steps: Vec<Step>,
}

/// An instruction as it is written.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) names: Vec<String>,
    /// `[i] = …` names a list of one.
    pub(super) primitive: &'static Primitive,
    pub(super) args: Vec<Raw>,
}

/// An argument as it is written: names are resolved when it is known what they name.
#[derive(Clone, Debug)]
pub(super) enum Raw {
    Name(String),
    Int(i64),
    Text(String),
    List(Vec<Raw>),
}

/// What is wrong with the text of a trace, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TraceError {
    /// The byte at which it was noticed.
    pub at: usize,
    /// What is wrong.
    pub message: String,
    near: String,
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.near.as_str() {
            "" => write!(f, "at the end of the trace: {}", self.message),
            near => write!(f, "in the trace at `{near}`: {}", self.message),
        }
    }
}

impl std::error::Error for TraceError {}

impl std::str::FromStr for Script {
    type Err = TraceError;

    fn from_str(text: &str) -> Result<Self, TraceError> {
        let mut parser = Parser { text, at: 0 };
        let mut steps = Vec::new();
        loop {
            while parser.eat(";") {}
            if parser.is_at_end() {
                return Ok(Self { steps });
            }
            steps.push(parser.step()?);
        }
    }
}

impl Script {
    pub(super) fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Number of instructions.
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// Whether there is no instruction.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }
}

impl Step {
    pub(super) fn primitive(&self) -> &'static Primitive {
        self.primitive
    }

    /// The names that the instruction gives to its results.
    pub(super) fn names(&self, results: usize) -> Result<&[String], String> {
        match self.names.len() {
            0 => Ok(&[]),
            names if names == results => Ok(&self.names),
            names => Err(format!("it gives {results} results, of which {names} are named")),
        }
    }

    pub(super) fn given_names(&self) -> Option<Vec<String>> {
        (!self.names.is_empty()).then(|| self.names.clone())
    }

    /// The arguments, with the loops and blocks that are named.
    pub(super) fn resolve(&self, known: &HashMap<&str, Handle>) -> Result<Args, String> {
        let params = self.primitive.params;
        let values = params.iter().zip(&self.args).map(|(param, raw)| value(param, raw, known));
        Ok(Args(values.collect::<Result<_, _>>()?))
    }
}

fn value(param: &Param, raw: &Raw, known: &HashMap<&str, Handle>) -> Result<Value, String> {
    let item = |kind: Kind, raw: &Raw| -> Result<Value, String> {
        let handle = |name: &str| known.get(name).copied();
        let number = |name: &str| match handle(name) {
            Some(it @ Handle::Number(_)) => Ok(Value::Handle(it)),
            Some(_) => Err(format!(
                "`{name}` is no number, and `{}` takes {}",
                param.name,
                kind.describe()
            )),
            None => Err(format!("nothing is called `{name}`")),
        };
        match (kind, raw) {
            (Kind::Loop | Kind::Block | Kind::LoopOrBlock | Kind::Place, Raw::Name(name)) => {
                let is_taken = |handle| match handle {
                    Handle::Loop(_) => kind != Kind::Block,
                    Handle::Block(_) => matches!(kind, Kind::Block | Kind::LoopOrBlock),
                    Handle::Place(_) => kind == Kind::Place,
                    Handle::Number(_) => false,
                };
                match handle(name) {
                    None => Err(format!("nothing is called `{name}`")),
                    Some(handle) if is_taken(handle) => Ok(Value::Handle(handle)),
                    Some(handle) => {
                        let (is, takes) = (handle.describe(), kind.describe());
                        Err(format!("`{name}` is {is}, and `{}` takes {takes}", param.name))
                    }
                }
            }
            (Kind::Int | Kind::Choice, Raw::Int(value)) => Ok(Value::Int(*value)),
            (Kind::Factors | Kind::Choice, Raw::Name(name)) if name == "_" => Ok(Value::Open),
            (Kind::Int | Kind::Choice | Kind::Factors, Raw::Name(name)) => number(name),
            (Kind::Text, Raw::Text(text)) => Ok(Value::Text(text.clone())),
            (Kind::Word(words), Raw::Name(word)) if words.contains(&word.as_str()) => {
                Ok(Value::Word(word.clone()))
            }
            (Kind::Word(words), _) => {
                Err(format!("`{}` is one of {}", param.name, words.join(", ")))
            }
            _ => Err(format!("`{}` takes {}", param.name, kind.describe())),
        }
    };
    let element = match param.kind {
        Kind::Loops => Kind::Loop,
        Kind::Blocks => Kind::Block,
        Kind::LoopOrBlocks if matches!(raw, Raw::List(_)) => Kind::Block,
        Kind::LoopOrBlocks => return item(Kind::Loop, raw),
        Kind::Ints => Kind::Int,
        Kind::Factors => Kind::Factors,
        kind => return item(kind, raw),
    };
    let Raw::List(items) = raw else {
        return Err(format!("`{}` takes {}", param.name, param.kind.describe()));
    };
    let values = items.iter().map(|raw| match (element, raw) {
        (Kind::Factors, Raw::Int(value)) => Ok(Value::Int(*value)),
        _ => item(element, raw),
    });
    Ok(Value::List(values.collect::<Result<_, _>>()?))
}

impl Handle {
    fn describe(self) -> &'static str {
        match self {
            Handle::Loop(_) => "a loop",
            Handle::Block(_) => "a block",
            Handle::Number(_) => "a number",
            Handle::Place(_) => "a place",
        }
    }
}

impl Kind {
    fn describe(self) -> &'static str {
        match self {
            Kind::Loop => "a loop",
            Kind::Block => "a block",
            Kind::LoopOrBlock => "a loop or a block",
            Kind::Loops => "a list of loops",
            Kind::Blocks => "a list of blocks",
            Kind::LoopOrBlocks => "a loop or a list of blocks",
            Kind::Place => "a loop, or a place that was drawn",
            Kind::Int => "an integer",
            Kind::Choice => "an integer or `_`",
            Kind::Factors => "a list of integers, of which one may be `_`",
            Kind::Ints => "a list of integers",
            Kind::Word(_) => "a word",
            Kind::Text => "a text in quotes",
        }
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl Parser<'_> {
    fn step(&mut self) -> Result<Step, TraceError> {
        let start = self.at;
        let names = match self.names() {
            Some(names) => names,
            None => {
                self.at = start;
                Vec::new()
            }
        };
        let place = self.at;
        let Some(name) = self.word() else { return self.fail("a primitive is expected") };
        let Some(primitive) = primitives::find(&name) else {
            self.at = place;
            let known: Vec<&str> = primitives::all().iter().map(|known| known.name).collect();
            return self
                .fail(&format!("no primitive is called `{name}`; there are {}", known.join(", ")));
        };
        if self.eat("@") {
            let version = self.number()?;
            if version != i64::from(primitive.version) {
                let own = primitive.version;
                return self.fail(&format!("`{name}` is of version {own}, not of {version}"));
            }
        }
        self.expect("(")?;
        let args = self.args(primitive)?;
        Ok(Step { names, primitive, args })
    }

    /// `name =` or `[name, name] =`.
    fn names(&mut self) -> Option<Vec<String>> {
        let mut names = Vec::new();
        match self.eat("[") {
            true => loop {
                names.push(self.word()?);
                if self.eat("]") {
                    break;
                }
                self.eat(",").then_some(())?;
            },
            false => names.push(self.word()?),
        }
        self.eat("=").then_some(names)
    }

    fn args(&mut self, primitive: &'static Primitive) -> Result<Vec<Raw>, TraceError> {
        let params = primitive.params;
        let mut given: Vec<Option<Raw>> = vec![None; params.len()];
        let mut next = 0;
        while !self.eat(")") {
            let place = self.at;
            let mut slot = next;
            if let Some(name) = self.word()
                && self.eat("=")
            {
                match params.iter().position(|param| param.name == name) {
                    Some(found) => slot = found,
                    None => {
                        let usage = primitive.usage();
                        return self.fail(&format!("`{name}` is no parameter of `{usage}`"));
                    }
                }
            } else {
                self.at = place;
                next += 1;
            }
            let value = self.value()?;
            match given.get_mut(slot) {
                Some(place @ None) => *place = Some(value),
                _ => return self.fail(&format!("too many arguments for `{}`", primitive.usage())),
            }
            if !self.eat(",") {
                self.expect(")")?;
                break;
            }
        }
        let mut args = Vec::new();
        for (param, given) in params.iter().zip(given) {
            match (given, param.default) {
                (Some(given), _) => args.push(given),
                (None, Some(default)) => {
                    args.push(Parser { text: default, at: 0 }.value()?);
                }
                (None, None) => {
                    let usage = primitive.usage();
                    return self.fail(&format!("`{}` of `{usage}` is missing", param.name));
                }
            }
        }
        Ok(args)
    }

    /// A value. Lists hold no lists.
    fn value(&mut self) -> Result<Raw, TraceError> {
        if !self.eat("[") {
            return self.item();
        }
        let mut items = Vec::new();
        while !self.eat("]") {
            items.push(self.item()?);
            if items.len() > MAX_ITEMS {
                return self.fail("the list is too long");
            }
            if !self.eat(",") {
                self.expect("]")?;
                break;
            }
        }
        Ok(Raw::List(items))
    }

    fn item(&mut self) -> Result<Raw, TraceError> {
        self.skip_space();
        match self.rest().chars().next() {
            Some('"') => self.string().map(Raw::Text),
            Some(c) if c == '-' || c.is_ascii_digit() => self.number().map(Raw::Int),
            _ => match self.word() {
                Some(name) => Ok(Raw::Name(name)),
                None => self.fail("a value is expected"),
            },
        }
    }

    fn string(&mut self) -> Result<String, TraceError> {
        let mut text = String::new();
        let mut chars = self.rest().char_indices().skip(1);
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    self.at += at + 1;
                    return Ok(text);
                }
                '\\' => match chars.next() {
                    Some((_, 'n')) => text.push('\n'),
                    Some((_, c)) => text.push(c),
                    None => break,
                },
                c => text.push(c),
            }
        }
        self.fail("the text has no end")
    }

    fn number(&mut self) -> Result<i64, TraceError> {
        self.skip_space();
        let is_digit = |(at, c): &(usize, char)| c.is_ascii_digit() || (*at == 0 && *c == '-');
        let len = self.rest().char_indices().take_while(is_digit).count();
        match self.rest()[..len].parse() {
            Ok(value) => {
                self.at += len;
                Ok(value)
            }
            Err(_) => self.fail("an integer of 64 bits is expected"),
        }
    }

    fn word(&mut self) -> Option<String> {
        self.skip_space();
        let is_part = |c: &char| c.is_ascii_alphanumeric() || *c == '_';
        let len = self.rest().chars().take_while(is_part).count();
        let word = &self.rest()[..len];
        if word.is_empty() || word.starts_with(|c: char| c.is_ascii_digit()) {
            return None;
        }
        let word = word.to_owned();
        self.at += len;
        Some(word)
    }

    fn expect(&mut self, token: &str) -> Result<(), TraceError> {
        match self.eat(token) {
            true => Ok(()),
            false => self.fail(&format!("`{token}` is expected")),
        }
    }

    fn eat(&mut self, token: &str) -> bool {
        self.skip_space();
        let is_there = self.rest().starts_with(token);
        if is_there {
            self.at += token.len();
        }
        is_there
    }

    fn is_at_end(&mut self) -> bool {
        self.skip_space();
        self.rest().is_empty()
    }

    fn skip_space(&mut self) {
        let space: usize =
            self.rest().chars().take_while(|c| c.is_whitespace()).map(char::len_utf8).sum();
        self.at += space;
    }

    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn fail<T>(&self, message: &str) -> Result<T, TraceError> {
        let near: String = self.rest().chars().take(24).take_while(|&c| c != '\n').collect();
        Err(TraceError { at: self.at, message: message.to_owned(), near: near.trim().to_owned() })
    }
}
