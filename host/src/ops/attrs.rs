//! Reading a call's attributes through the schema of its operator.

use crate::ir::{AttrsView, DType, TermView, Terms, Type};

use super::{AttrDefault, OpDef, OpError};

/// The attributes of one call: what is not given has the schema's default.
///
/// The accessors expect names that the schema has, and attributes that passed [`OpDef::check_attrs`].
#[derive(Clone, Copy, Debug)]
pub struct OpAttrs<'a> {
    op: &'static OpDef,
    given: AttrsView<'a>,
    terms: Terms<'a>,
}

impl<'a> OpAttrs<'a> {
    /// The checked attributes of a call of `op`.
    pub fn new(
        op: &'static OpDef,
        given: AttrsView<'a>,
        terms: Terms<'a>,
    ) -> Result<Self, OpError> {
        op.check_attrs(given, terms)?;
        Ok(Self { op, given, terms })
    }

    /// The terms they refer to.
    pub fn terms(self) -> Terms<'a> {
        self.terms
    }

    /// The attributes as they are given.
    pub fn given(self) -> AttrsView<'a> {
        self.given
    }

    /// Whether `name` is given.
    pub fn has(self, name: &str) -> bool {
        self.given.term(name).is_some()
    }

    /// An integer.
    pub fn int(self, name: &'static str) -> Result<i64, OpError> {
        match (self.given.int(name), self.default(name)) {
            (Some(value), _) | (None, Some(AttrDefault::Int(value))) => Ok(value),
            _ => self.missing(name),
        }
    }

    /// A float.
    pub fn float(self, name: &'static str) -> Result<f64, OpError> {
        match (self.given.float(name), self.default(name)) {
            (Some(value), _) | (None, Some(AttrDefault::Float(value))) => Ok(value),
            _ => self.missing(name),
        }
    }

    /// A truth value.
    pub fn bool(self, name: &'static str) -> Result<bool, OpError> {
        match (self.given.bool(name), self.default(name)) {
            (Some(value), _) | (None, Some(AttrDefault::Bool(value))) => Ok(value),
            _ => self.missing(name),
        }
    }

    /// Text.
    pub fn str(self, name: &'static str) -> Result<&'a str, OpError> {
        match (self.given.str(name), self.default(name)) {
            (Some(value), _) | (None, Some(AttrDefault::Str(value))) => Ok(value),
            _ => self.missing(name),
        }
    }

    /// A list of integers.
    pub fn ints(self, name: &'static str) -> Result<Vec<i64>, OpError> {
        match (self.given.get(name), self.default(name)) {
            (Some(TermView::Int(value)), _) => Ok(vec![value]),
            (Some(_), _) => self.given.ints(name).map_or_else(|| self.missing(name), Ok),
            (None, Some(AttrDefault::Ints(value))) => Ok(value.to_vec()),
            (None, Some(AttrDefault::Int(value))) => Ok(vec![value]),
            _ => self.missing(name),
        }
    }

    /// A list of exactly `N` integers.
    pub fn int_array<const N: usize>(self, name: &'static str) -> Result<[i64; N], OpError> {
        let values = self.ints(name)?;
        <[i64; N]>::try_from(values.as_slice()).map_err(|_| OpError::BadAttr {
            name,
            value: format!("{values:?}"),
            reason: format!("{N} integers are expected"),
        })
    }

    /// A type.
    pub fn ty(self, name: &'static str) -> Result<Type, OpError> {
        match self.given.get(name) {
            Some(TermView::Type(ty)) => Ok(ty),
            _ => self.missing(name),
        }
    }

    /// An element type, given by its name.
    pub fn dtype(self, name: &'static str) -> Result<DType, OpError> {
        let text = self.str(name)?;
        DType::from_name(text).ok_or_else(|| OpError::BadAttr {
            name,
            value: format!("{text:?}"),
            reason: format!(
                "it is none of the element types {}",
                DType::all().map(|dtype| dtype.to_string()).collect::<Vec<_>>().join(", ")
            ),
        })
    }

    fn default(self, name: &'static str) -> Option<AttrDefault> {
        debug_assert!(self.op.attr(name).is_some(), "{} has no attribute {name}", self.op.name);
        self.op.attr(name).map(|attr| attr.default)
    }

    fn missing<T>(self, name: &'static str) -> Result<T, OpError> {
        let kind = self.op.attr(name).map_or(super::AttrKind::Any, |attr| attr.kind);
        Err(OpError::MissingAttr { name, kind })
    }
}

/// What a value is, for messages.
pub(super) fn kind_of(value: TermView<'_>) -> &'static str {
    match value {
        TermView::None => "nothing",
        TermView::Int(_) => "an integer",
        TermView::Float(_) => "a float",
        TermView::Bool(_) => "a truth value",
        TermView::Str(_) => "a string",
        TermView::List(_) => "a list",
        TermView::Dict(_) => "a dictionary",
        TermView::Dim(_) => "a dimension",
        TermView::Type(_) => "a type",
        TermView::Unknown { .. } => "a value of unknown kind",
    }
}
