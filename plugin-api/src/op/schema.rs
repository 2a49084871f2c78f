//! What is known of an operator without running any of it.

use std::fmt;

use crate::ir::{AttrValue, AttrsView, Term, TermView, Terms};

use super::OpError;
use super::attrs::kind_of;

/// What an operator says of itself: its name, its attributes, what a call of it may be moved and merged with. Plain
/// data, alive for as long as the process.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OpSchema {
    /// Its name in the IR.
    pub name: &'static str,
    /// Other names, under which a call in a text means it.
    pub aliases: &'static [&'static str],
    /// One line of documentation, without a full stop.
    pub summary: &'static str,
    /// How many arguments it takes. Operators over any number of tensors take one tuple.
    pub args: Arity,
    /// Its attributes, in the order they are documented.
    pub attrs: &'static [AttrDef],
    /// What a call does besides computing.
    pub effect: OpEffect,
    /// How it may be fused.
    pub pattern: OpPattern,
}

impl OpSchema {
    /// A pure operator of one argument, element by element; the ground to state others on.
    pub const ELEMENTWISE: OpSchema = OpSchema {
        name: "",
        aliases: &[],
        summary: "",
        args: Arity::exactly(1),
        attrs: &[],
        effect: OpEffect::None,
        pattern: OpPattern::Elementwise,
    };

    /// Whether a call depends on nothing but its arguments and has no effect but its result.
    pub fn is_pure(&self) -> bool {
        self.effect.is_pure()
    }

    /// The attribute called `name`.
    pub fn attr(&self, name: &str) -> Option<&'static AttrDef> {
        self.attrs.iter().find(|attr| attr.name == name)
    }

    /// Checks that every attribute of a call is known, of its kind and within its bounds, and that none is missing.
    /// A name with a dot, such as `acme.layout`, is an annotation of a pass and not looked at.
    pub fn check_attrs(&self, attrs: AttrsView<'_>, terms: Terms<'_>) -> Result<(), OpError> {
        for (name, value) in attrs.iter() {
            match self.attr(name) {
                Some(attr) => attr.check(value, terms)?,
                None if name.contains('.') => {}
                None => return Err(OpError::UnknownAttr { name: name.into(), known: self.attrs }),
            }
        }
        match self
            .attrs
            .iter()
            .find(|attr| attr.default == AttrDefault::Required && attrs.term(attr.name).is_none())
        {
            Some(attr) => Err(OpError::MissingAttr { name: attr.name, kind: attr.kind }),
            None => Ok(()),
        }
    }
}

/// How an operator's calls may be fused, from the freest to none. The numbers are those of the attribute
/// `op_pattern`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u32)]
pub enum OpPattern {
    /// One element in, one element out, at the same place.
    Elementwise = 0,
    /// As elementwise, with inputs that are repeated along axes.
    Broadcast = 1,
    /// Each output element reads one place of each input.
    Injective = 2,
    /// Reduces axes.
    Reduction = 3,
    /// Heavy, and takes elementwise work on its output.
    OutFusable = 4,
    /// Makes or takes a tuple.
    Tuple = 7,
    /// Not to be fused.
    Opaque = 8,
}

impl OpPattern {
    /// The pattern with this code; opaque for one that this build does not know.
    pub fn from_code(code: i64) -> Self {
        match code {
            0 => Self::Elementwise,
            1 => Self::Broadcast,
            2 => Self::Injective,
            3 => Self::Reduction,
            4 => Self::OutFusable,
            7 => Self::Tuple,
            _ => Self::Opaque,
        }
    }
}

/// What a call of an operator does besides computing: to memory, and to whoever counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OpEffect {
    /// Nothing: it reads its arguments and gives a new value, the same one for the same arguments.
    None,
    /// Nothing, but its result may stand for memory of its arguments: closures, calls that promise to have no effect.
    Shares,
    /// It writes no memory that there was, but no two calls are the same one: it makes memory, or looks at some.
    Makes,
    /// Anything; it may write the memory that it is given.
    Any,
}

impl OpEffect {
    /// Whether a call may be merged and dropped, and moved as far as the memory that it reads stays as it is.
    pub const fn is_pure(self) -> bool {
        matches!(self, Self::None | Self::Shares)
    }

    /// As it crosses the border: bit 1 pure, bit 2 the second of the two that are, or that are not.
    pub const fn code(self) -> u32 {
        match self {
            Self::None => 2,
            Self::Shares => 6,
            Self::Makes => 4,
            Self::Any => 0,
        }
    }

    pub(crate) const fn from_code(code: u32) -> Self {
        match code & 6 {
            2 => Self::None,
            6 => Self::Shares,
            4 => Self::Makes,
            _ => Self::Any,
        }
    }
}

/// How many arguments an operator takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arity {
    /// At least so many.
    pub min: usize,
    /// At most so many; `None` for any number.
    pub max: Option<usize>,
}

impl Arity {
    /// Exactly `count`.
    pub const fn exactly(count: usize) -> Self {
        Self { min: count, max: Some(count) }
    }

    /// `min` or more, up to `max`.
    pub const fn between(min: usize, max: usize) -> Self {
        Self { min, max: Some(max) }
    }

    /// `min` or more.
    pub const fn at_least(min: usize) -> Self {
        Self { min, max: None }
    }

    /// Whether `count` arguments are right.
    pub fn accepts(self, count: usize) -> bool {
        count >= self.min && self.max.is_none_or(|max| count <= max)
    }
}

impl fmt::Display for Arity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = |count: usize| if count == 1 { "" } else { "s" };
        match (self.min, self.max) {
            (min, Some(max)) if min == max => write!(f, "{min} argument{}", plural(min)),
            (min, Some(max)) => write!(f, "{min} to {max} arguments"),
            (min, None) => write!(f, "at least {min} argument{}", plural(min)),
        }
    }
}

/// An attribute of an operator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AttrDef {
    /// Its name.
    pub name: &'static str,
    /// The kind of its value.
    pub kind: AttrKind,
    /// What it is when it is not given.
    pub default: AttrDefault,
    /// What else is demanded of it.
    pub bounds: AttrBounds,
    /// What it means, in a few words.
    pub help: &'static str,
}

/// What is demanded of an attribute besides its kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AttrBounds {
    /// The least number that it, or each of its elements, may be.
    pub min: Option<f64>,
    /// The greatest one.
    pub max: Option<f64>,
    /// The texts of which it is one; any where there are none.
    pub one_of: &'static [&'static str],
}

impl AttrBounds {
    /// Nothing is demanded.
    pub const NONE: AttrBounds = AttrBounds { min: None, max: None, one_of: &[] };
}

impl AttrDef {
    fn check(&self, value: Term, terms: Terms<'_>) -> Result<(), OpError> {
        let value = terms.view(value);
        let is_right = match (self.kind, value) {
            (AttrKind::Int, TermView::Int(_))
            | (AttrKind::Float, TermView::Float(_) | TermView::Int(_))
            | (AttrKind::Bool, TermView::Bool(_))
            | (AttrKind::Str, TermView::Str(_))
            | (AttrKind::Ints, TermView::Int(_))
            | (AttrKind::Type, TermView::Type(_))
            | (AttrKind::Any, _) => true,
            (AttrKind::Ints, TermView::List(items)) => {
                items.iter().all(|&item| matches!(terms.view(item), TermView::Int(_)))
            }
            _ => false,
        };
        match is_right {
            true => self.check_bounds(value, terms),
            false => Err(OpError::WrongAttrKind {
                name: self.name,
                expected: self.kind,
                found: kind_of(value),
            }),
        }
    }

    fn check_bounds(&self, value: TermView<'_>, terms: Terms<'_>) -> Result<(), OpError> {
        if self.bounds == AttrBounds::NONE {
            return Ok(());
        }
        let bad = |value: String, reason| Err(OpError::BadAttr { name: self.name, value, reason });
        let numbers: Vec<f64> = match value {
            TermView::Int(value) => vec![value as f64],
            TermView::Float(value) => vec![value],
            TermView::List(items) => items
                .iter()
                .filter_map(|&item| match terms.view(item) {
                    TermView::Int(value) => Some(value as f64),
                    _ => None,
                })
                .collect(),
            TermView::Str(text) if !self.bounds.one_of.is_empty() => {
                return match self.bounds.one_of.contains(&text) {
                    true => Ok(()),
                    false => bad(
                        format!("{text:?}"),
                        format!("it is {}", alternatives(self.bounds.one_of)),
                    ),
                };
            }
            _ => return Ok(()),
        };
        let shown = || numbers.iter().map(f64::to_string).collect::<Vec<_>>().join(", ");
        match (self.bounds.min, self.bounds.max) {
            (Some(min), _) if !numbers.iter().all(|&value| value >= min) => {
                bad(shown(), format!("it must be at least {min}"))
            }
            (_, Some(max)) if !numbers.iter().all(|&value| value <= max) => {
                bad(shown(), format!("it must be at most {max}"))
            }
            _ => Ok(()),
        }
    }
}

/// `a, b or c`.
fn alternatives(texts: &[&str]) -> String {
    match texts {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

/// The kind of an attribute's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttrKind {
    /// An integer.
    Int,
    /// A float; an integer is taken as one.
    Float,
    /// A truth value.
    Bool,
    /// Text.
    Str,
    /// A list of integers; one integer is taken as a list of it.
    Ints,
    /// A type.
    Type,
    /// Any value.
    Any,
}

impl fmt::Display for AttrKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AttrKind::Int => "an integer",
            AttrKind::Float => "a float",
            AttrKind::Bool => "a truth value",
            AttrKind::Str => "a string",
            AttrKind::Ints => "a list of integers",
            AttrKind::Type => "a type",
            AttrKind::Any => "a value",
        })
    }
}

/// The value of an attribute that is not given.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs, reason = "each variant is the kind of value it holds")]
pub enum AttrDefault {
    /// It must be given.
    Required,
    /// It may be absent, which has a meaning of its own.
    Absent,
    Int(i64),
    Float(f64),
    Bool(bool),
    Str(&'static str),
    Ints(&'static [i64]),
}

impl AttrDefault {
    /// The value that stands where none is given; `None` where there is none.
    pub fn value(self) -> Option<AttrValue> {
        Some(match self {
            AttrDefault::Required | AttrDefault::Absent => return None,
            AttrDefault::Int(value) => value.into(),
            AttrDefault::Float(value) => value.into(),
            AttrDefault::Bool(value) => value.into(),
            AttrDefault::Str(value) => value.into(),
            AttrDefault::Ints(values) => values.into(),
        })
    }
}

/// States an attribute.
pub const fn attr(
    name: &'static str,
    kind: AttrKind,
    default: AttrDefault,
    help: &'static str,
) -> AttrDef {
    AttrDef { name, kind, default, bounds: AttrBounds::NONE, help }
}
