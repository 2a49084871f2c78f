//! What a primitive is: its name, its parameters, and what it does.

use crate::refusal::{Refusal, Result, refuse};
use crate::schedule::{Block, Loop, Schedule};
use crate::tree::{Id, Node};

/// A loop or a block.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Handle {
    /// A loop.
    Loop(Loop),
    /// A block.
    Block(Block),
}

impl Handle {
    pub(crate) fn id(self) -> Id {
        match self {
            Handle::Loop(Loop(id)) | Handle::Block(Block(id)) => id,
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

/// The arguments of an instruction, one for each parameter.
#[derive(Clone, Debug)]
pub(crate) struct Args(pub(crate) Vec<Value>);

impl Args {
    /// Refuses what was taken away.
    pub(crate) fn check_alive(&self, schedule: &Schedule) -> Result<()> {
        let gone = self
            .handles()
            .into_iter()
            .find(|handle| matches!(schedule.tree.get(handle.id()), Node::Gone));
        let what = match gone {
            None => return Ok(()),
            Some(Handle::Loop(_)) => "a loop",
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
            Value::Handle(handle) => handle.id(),
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
                    Value::Handle(handle) => Some(handle.id()),
                    _ => None,
                })
                .collect(),
            _ => Vec::new(),
        }
    }

    pub(crate) fn int(&self, at: usize) -> i64 {
        match self.0[at] {
            Value::Int(value) => value,
            _ => 0,
        }
    }

    /// Integers; `None` for an open one.
    pub(crate) fn factors(&self, at: usize) -> Vec<Option<i64>> {
        match &self.0[at] {
            Value::List(values) => values
                .iter()
                .map(|value| match value {
                    Value::Int(value) => Some(*value),
                    _ => None,
                })
                .collect(),
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
