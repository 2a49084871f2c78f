//! What a primitive is: its name, its parameters, and what it does.

use crate::refusal::{Refusal, Result, refuse};
use crate::schedule::{Block, Loop, Schedule};
use crate::tree::{Id, Node};

/// What an instruction gives: a loop or a block, or what was drawn at random.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Handle {
    /// A loop.
    Loop(Loop),
    /// A block.
    Block(Block),
    /// A number that was drawn.
    Number(Number),
    /// A place that was drawn.
    Place(Place),
}

/// A number that was drawn. Each draw gives its own, so that a trace says which one is meant.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Number {
    pub(crate) value: i64,
    pub(crate) draw: u32,
}

/// A place for a block to be computed at, which was drawn.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Place {
    pub(crate) at: At,
    pub(crate) draw: u32,
}

/// Where a block is computed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum At {
    /// Where it is read.
    Inline,
    /// Where it stands.
    Root,
    /// In a loop.
    Loop(Id),
}

impl Handle {
    /// The statement that it is, or is in.
    pub(crate) fn id(self) -> Option<Id> {
        match self {
            Handle::Loop(Loop(id)) | Handle::Block(Block(id)) => Some(id),
            Handle::Place(Place { at: At::Loop(id), .. }) => Some(id),
            Handle::Number(_) | Handle::Place(_) => None,
        }
    }
}

/// A transformation of a program.
#[derive(Debug)]
pub struct Primitive {
    /// Its name.
    pub name: &'static str,
    /// Its version: a trace says for which it was written.
    pub version: u32,
    /// What it does, in one line.
    pub summary: &'static str,
    pub(crate) params: &'static [Param],
    pub(crate) apply: fn(&mut Schedule, &Args) -> Result<Vec<Handle>>,
}

impl Primitive {
    /// How it is written: its name, and its parameters with their defaults.
    pub fn usage(&self) -> String {
        let param = |param: &Param| match param.default {
            None => param.name.to_owned(),
            Some(default) => format!("{} = {default}", param.name),
        };
        let params: Vec<String> = self.params.iter().map(param).collect();
        format!("{}({})", self.name, params.join(", "))
    }
}

/// A parameter of a primitive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Param {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// As it stands in a trace; none where the argument must be given.
    pub(crate) default: Option<&'static str>,
}

impl Param {
    pub(crate) const fn new(name: &'static str, kind: Kind) -> Self {
        Self { name, kind, default: None }
    }

    pub(crate) const fn or(self, default: &'static str) -> Self {
        Self { default: Some(default), ..self }
    }
}

/// What an argument may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Loop,
    Block,
    LoopOrBlock,
    Loops,
    Blocks,
    LoopOrBlocks,
    Int,
    /// An integer, or `_`.
    Choice,
    /// A loop, or a place that was drawn.
    Place,
    /// Integers, of which one may be open.
    Factors,
    Ints,
    /// One of these words.
    Word(&'static [&'static str]),
    Text,
}

/// An argument.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Value {
    Handle(Handle),
    Int(i64),
    Open,
    Word(String),
    Text(String),
    List(Vec<Value>),
}

impl Value {
    /// The number that it is, written or drawn.
    fn number(&self) -> Option<i64> {
        match self {
            Value::Int(value) => Some(*value),
            Value::Handle(Handle::Number(number)) => Some(number.value),
            _ => None,
        }
    }
}

/// The arguments of an instruction, one for each parameter.
#[derive(Clone, Debug)]
pub(crate) struct Args(pub(crate) Vec<Value>);

impl Args {
    /// Refuses what was taken away.
    pub(crate) fn check_alive(&self, schedule: &Schedule) -> Result<()> {
        let gone = self.handles().into_iter().find(|handle| {
            handle.id().is_some_and(|id| matches!(schedule.tree.get(id), Node::Gone))
        });
        let what = match gone {
            None => return Ok(()),
            Some(Handle::Loop(_) | Handle::Place(_) | Handle::Number(_)) => "a loop",
            Some(Handle::Block(_)) => "a block",
        };
        Err(Refusal::new(format!("{what} that it names was taken away before")))
    }

    /// The loops and blocks that they name.
    pub(crate) fn handles(&self) -> Vec<Handle> {
        let (mut handles, mut pending) = (Vec::new(), self.0.iter().collect::<Vec<&Value>>());
        while let Some(value) = pending.pop() {
            match value {
                Value::List(values) => pending.extend(values),
                Value::Handle(handle) => handles.push(*handle),
                _ => {}
            }
        }
        handles
    }

    pub(crate) fn id(&self, at: usize) -> Id {
        match &self.0[at] {
            Value::Handle(Handle::Loop(Loop(id)) | Handle::Block(Block(id))) => *id,
            other => panic!("argument {at} is {other:?}"),
        }
    }

    /// Whether a list was given.
    pub(crate) fn is_list(&self, at: usize) -> bool {
        matches!(self.0[at], Value::List(_))
    }

    pub(crate) fn ids(&self, at: usize) -> Vec<Id> {
        match &self.0[at] {
            Value::List(values) => values
                .iter()
                .filter_map(|value| match value {
                    Value::Handle(handle) => handle.id(),
                    _ => None,
                })
                .collect(),
            _ => Vec::new(),
        }
    }

    /// A loop, or a place that was drawn.
    pub(crate) fn place(&self, at: usize) -> At {
        match &self.0[at] {
            Value::Handle(Handle::Place(place)) => place.at,
            _ => At::Loop(self.id(at)),
        }
    }

    pub(crate) fn int(&self, at: usize) -> i64 {
        self.choice(at).unwrap_or(0)
    }

    /// An integer; `None` for an open one.
    pub(crate) fn choice(&self, at: usize) -> Option<i64> {
        self.0[at].number()
    }

    pub(crate) fn ints(&self, at: usize) -> Vec<i64> {
        self.factors(at).into_iter().flatten().collect()
    }

    /// Integers; `None` for an open one.
    pub(crate) fn factors(&self, at: usize) -> Vec<Option<i64>> {
        match &self.0[at] {
            Value::List(values) => values.iter().map(Value::number).collect(),
            _ => Vec::new(),
        }
    }

    pub(crate) fn text(&self, at: usize) -> &str {
        match &self.0[at] {
            Value::Text(text) | Value::Word(text) => text,
            _ => "",
        }
    }
}

/// Refuses a list that names something twice.
pub(crate) fn distinct(ids: &[Id], what: &str) -> Result<()> {
    for (at, &id) in ids.iter().enumerate() {
        if ids[..at].contains(&id) {
            return refuse(id, format!("{what} is named twice"));
        }
    }
    Ok(())
}
