//! Reading a call's attributes through the schema of its operator.

use crate::ir::{AttrsView, DType, Term, TermView, Terms, Type};

use super::{AttrDefault, AttrKind, Layout, OpError, OpSchema};

/// The attributes of one call: what is not given has the schema's default.
///
/// The accessors expect names that the schema has, and attributes that passed [`OpSchema::check_attrs`].
#[derive(Clone, Copy, Debug)]
pub struct OpAttrs<'a> {
    op: &'static OpSchema,
    given: AttrsView<'a>,
    terms: Terms<'a>,
}

impl<'a> OpAttrs<'a> {
    /// The checked attributes of a call of `op`.
    pub fn new(
        op: &'static OpSchema,
        given: AttrsView<'a>,
        terms: Terms<'a>,
    ) -> Result<Self, OpError> {
        op.check_attrs(given, terms)?;
        Ok(Self { op, given, terms })
    }

    /// The attributes of a call of `op` that were checked.
    pub(crate) fn checked(op: &'static OpSchema, given: AttrsView<'a>, terms: Terms<'a>) -> Self {
        Self { op, given, terms }
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
        let kind = self.op.attr(name).map_or(AttrKind::Any, |attr| attr.kind);
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

/// What an attribute may be declared as: the type of a field of an operator's struct.
pub trait Attribute: Sized {
    /// The kind of its value.
    const KIND: AttrKind;
    /// Whether it may be absent without a default.
    const IS_OPTIONAL: bool = false;

    /// Reads it from the attributes of a call, by the default of the schema where it is not given.
    fn read(attrs: OpAttrs<'_>, name: &'static str) -> Result<Self, OpError>;
}

macro_rules! attributes {
    ($($ty:ty = $kind:ident |$attrs:ident, $name:ident| $read:expr;)*) => {$(
        impl Attribute for $ty {
            const KIND: AttrKind = AttrKind::$kind;

            fn read($attrs: OpAttrs<'_>, $name: &'static str) -> Result<Self, OpError> {
                $read
            }
        }
    )*};
}

attributes! {
    i64 = Int |attrs, name| attrs.int(name);
    f64 = Float |attrs, name| attrs.float(name);
    bool = Bool |attrs, name| attrs.bool(name);
    String = Str |attrs, name| attrs.str(name).map(str::to_owned);
    Vec<i64> = Ints |attrs, name| attrs.ints(name);
    Type = Type |attrs, name| attrs.ty(name);
    DType = Str |attrs, name| attrs.dtype(name);
    Layout = Str |attrs, name| {
        let text = attrs.str(name)?;
        Layout::parse(text).map_err(|error| OpError::BadAttr {
            name,
            value: format!("{text:?}"),
            reason: error.to_string(),
        })
    };
    Term = Any |attrs, name| attrs.given().term(name).map_or_else(|| attrs.missing(name), Ok);
}

impl<const N: usize> Attribute for [i64; N] {
    const KIND: AttrKind = AttrKind::Ints;

    fn read(attrs: OpAttrs<'_>, name: &'static str) -> Result<Self, OpError> {
        attrs.int_array(name)
    }
}

impl<T: Attribute> Attribute for Option<T> {
    const KIND: AttrKind = T::KIND;
    const IS_OPTIONAL: bool = true;

    fn read(attrs: OpAttrs<'_>, name: &'static str) -> Result<Self, OpError> {
        match attrs.has(name) {
            true => T::read(attrs, name).map(Some),
            false => Ok(None),
        }
    }
}
