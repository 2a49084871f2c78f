//! What an operator is: one item.

use std::fmt;

pub use tenon_plugin_api::pass::{OpEffect, OpPattern};

use crate::eval::Tensor;
use crate::ir::{AttrsView, Term, TermView, Terms, Type};

use super::{EvalCx, InferCx, LegalizeCx, OpError};

/// An operator. Registered by one `inventory::submit!` next to its inference:
///
/// ```ignore
/// inventory::submit! { OpDef {
///     name: "nn.relu",
///     summary: "The larger of each element and zero",
///     infer: infer::same_as_first,
///     evaluate: Some(kernels::unary),
///     ..OpDef::ELEMENTWISE
/// } }
/// ```
pub struct OpDef {
    /// Its name in the IR.
    pub name: &'static str,
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
    /// The type of the result, from the types of the arguments and the attributes.
    pub infer: Infer,
    /// Computes the result. A tuple is returned as its flattened tensors.
    pub evaluate: Option<Evaluate>,
    /// Builds the tensor program that computes it.
    pub legalize: Option<Legalize>,
}

inventory::collect!(OpDef);

/// Type inference of an operator.
pub type Infer = fn(&InferCx<'_>) -> Result<Type, OpError>;
/// Reference evaluation of an operator.
pub type Evaluate = fn(&EvalCx<'_>) -> Result<Vec<Tensor>, OpError>;
/// Legalization of an operator.
pub type Legalize = fn(&mut LegalizeCx<'_>) -> Result<(), OpError>;

impl OpDef {
    /// A pure operator of one argument, element by element; the ground to state others on.
    pub const ELEMENTWISE: OpDef = OpDef {
        name: "",
        summary: "",
        args: Arity::exactly(1),
        attrs: &[],
        effect: OpEffect::None,
        pattern: OpPattern::Elementwise,
        infer: |cx| cx.unsupported("it has no type inference"),
        evaluate: None,
        legalize: None,
    };

    /// Whether a call depends on nothing but its arguments and has no effect but its result.
    pub fn is_pure(&self) -> bool {
        self.effect.is_pure()
    }

    /// The attribute called `name`.
    pub fn attr(&self, name: &str) -> Option<&'static AttrDef> {
        self.attrs.iter().find(|attr| attr.name == name)
    }

    /// Checks that every attribute of a call is known and of its kind, and that none is missing.
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

impl fmt::Debug for OpDef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OpDef({})", self.name)
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
#[derive(Debug)]
pub struct AttrDef {
    /// Its name.
    pub name: &'static str,
    /// The kind of its value.
    pub kind: AttrKind,
    /// What it is when it is not given.
    pub default: AttrDefault,
    /// What it means, in a few words.
    pub help: &'static str,
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
            true => Ok(()),
            false => Err(OpError::WrongAttrKind {
                name: self.name,
                expected: self.kind,
                found: super::attrs::kind_of(value),
            }),
        }
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

/// States an attribute.
pub const fn attr(
    name: &'static str,
    kind: AttrKind,
    default: AttrDefault,
    help: &'static str,
) -> AttrDef {
    AttrDef { name, kind, default, help }
}
