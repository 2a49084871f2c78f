//! Terms: types, dimensions, attribute values and names, all hash-consed in one table.

use crate::abi::read::TermTable;
use crate::abi::records::RawTerm;
use crate::ir::{DType, Named};

/// What a term is. An unknown code reads as [`TermView::Unknown`] with its children.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TermKind(pub u16);

macro_rules! term_kinds {
    ($($(#[doc = $doc:literal])* $name:ident = $code:literal,)*) => {
        impl TermKind {
            $($(#[doc = $doc])* pub const $name: TermKind = TermKind($code);)*

            /// Every kind with its name in source text and its documentation, for the C header.
            pub const NAMED: &'static [Named] =
                &[$(Named { name: stringify!($name), code: $code, doc: &[$($doc),*] }),*];
        }
    };
}

term_kinds! {
    /// The absent term, id 0.
    NONE = 0,
    /// An integer, `bits` as i64. Also a constant dimension.
    INT = 1,
    /// A float, `bits` as the bits of an f64.
    FLOAT = 2,
    /// A truth value, `bits` 0 or 1.
    BOOL = 3,
    /// UTF-8 text.
    STR = 4,
    /// A list of its children.
    LIST = 5,
    /// Key, value, key, value, …; keys are strings in ascending order of their text.
    DICT = 6,

    /// A symbolic dimension; its child is the name. It is an integer that is not negative.
    DIM_SYMBOL = 16,
    /// The sum of its children.
    DIM_ADD = 17,
    /// The product of its children.
    DIM_MUL = 18,
    /// First child divided by second, rounded down.
    DIM_FLOOR_DIV = 19,
    /// Remainder of the division rounded down.
    DIM_FLOOR_MOD = 20,
    /// The smaller of two.
    DIM_MIN = 21,
    /// The larger of two.
    DIM_MAX = 22,

    /// A scalar or vector; `bits` = dtype code + (lanes << 16).
    SCALAR = 32,
    /// A tensor; `bits` = dtype code, children are dimensions. `flags` bit 0: the rank is unknown.
    TENSOR = 33,
    /// A tuple of its children.
    TUPLE = 34,
    /// A function; children are the parameters, then the result.
    FUNC = 35,
    /// A shape; children are its dimensions. `flags` bit 0: the rank is unknown.
    SHAPE = 36,
    /// An opaque runtime object; its child is the name of its class.
    OBJECT = 37,
    /// A tensor that lies on a device; children are its type without the device, a `TENSOR`, and the device's name.
    PLACED = 38,
}

macro_rules! ids {
    ($($(#[doc = $doc:literal])* $name:ident,)*) => {$(
        $(#[doc = $doc])*
        #[repr(transparent)]
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        pub struct $name(pub u32);

        impl From<$name> for Term {
            fn from(id: $name) -> Term { Term(id.0) }
        }
    )*};
}

/// Any term, by its number in the context. 0 is "none".
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct Term(pub u32);

impl Term {
    /// The absent term.
    pub const NONE: Term = Term(0);

    /// Whether this is the absent term.
    pub fn is_none(self) -> bool {
        self.0 == 0
    }
}

ids! {
    /// A type.
    Type,
    /// A dimension: an integer or a symbolic expression.
    Dim,
    /// A name.
    Symbol,
    /// An attribute dictionary; 0 is the empty one.
    Attrs,
}

impl Attrs {
    /// The empty dictionary.
    pub const NONE: Attrs = Attrs(0);
}

/// A term, taken apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TermView<'a> {
    /// The absent term.
    None,
    /// An integer.
    Int(i64),
    /// A float.
    Float(f64),
    /// A truth value.
    Bool(bool),
    /// Text.
    Str(&'a str),
    /// A list.
    List(&'a [Term]),
    /// A dictionary.
    Dict(AttrsView<'a>),
    /// A dimension that is not a plain integer.
    Dim(Dim),
    /// A type.
    Type(Type),
    /// A kind that this build does not know.
    Unknown {
        /// Its kind.
        kind: TermKind,
        /// Its children.
        children: &'a [Term],
    },
}

/// A dimension, taken apart.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs, reason = "each variant is the operation it is named after")]
pub enum DimView<'a> {
    Const(i64),
    Symbol(Symbol),
    Add(&'a [Dim]),
    Mul(&'a [Dim]),
    FloorDiv(Dim, Dim),
    FloorMod(Dim, Dim),
    Min(Dim, Dim),
    Max(Dim, Dim),
    Unknown(TermKind),
}

/// A type, taken apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TypeView<'a> {
    /// A scalar, or a vector when `lanes` is above 1.
    Scalar {
        /// Type of each lane.
        dtype: DType,
        /// Number of lanes.
        lanes: u16,
    },
    /// A tensor; `dims` is `None` when the rank is unknown.
    Tensor {
        /// Type of each element.
        dtype: DType,
        /// The dimensions, outermost first.
        dims: Option<&'a [Dim]>,
    },
    /// A tuple.
    Tuple(&'a [Type]),
    /// A function.
    Func {
        /// Types of the parameters.
        params: &'a [Type],
        /// Type of the result.
        result: Type,
    },
    /// A shape; `None` when the rank is unknown.
    Shape(Option<&'a [Dim]>),
    /// An opaque object of a named class.
    Object(Symbol),
    /// A kind that this build does not know.
    Unknown(TermKind),
}

/// The terms of a context, borrowed for `'a`. Free to copy, and may be sent to threads.
#[derive(Clone, Copy, Debug)]
pub struct Terms<'a> {
    table: TermTable<'a>,
}

impl<'a> Terms<'a> {
    /// Reads terms from a table.
    pub fn new(table: TermTable<'a>) -> Self {
        Self { table }
    }

    /// The record of a term.
    pub fn raw(self, term: impl Into<Term>) -> RawTerm {
        self.table.get(term.into().0)
    }

    /// The kind of a term.
    pub fn kind(self, term: impl Into<Term>) -> TermKind {
        TermKind(self.raw(term).kind)
    }

    /// The children of a term.
    pub fn children(self, term: impl Into<Term>) -> &'a [Term] {
        cast(self.table.children(self.raw(term)))
    }

    /// The text of a name; empty when it is none.
    pub fn str(self, symbol: impl Into<Term>) -> &'a str {
        self.table.text(self.raw(symbol))
    }

    /// Takes a term apart.
    pub fn view(self, term: impl Into<Term>) -> TermView<'a> {
        let term = term.into();
        let raw = self.raw(term);
        let kind = TermKind(raw.kind);
        match kind {
            TermKind::NONE => TermView::None,
            TermKind::INT => TermView::Int(raw.bits as i64),
            TermKind::FLOAT => TermView::Float(f64::from_bits(raw.bits)),
            TermKind::BOOL => TermView::Bool(raw.bits != 0),
            TermKind::STR => TermView::Str(self.table.text(raw)),
            TermKind::LIST => TermView::List(cast(self.table.children(raw))),
            TermKind::DICT => TermView::Dict(self.attrs(Attrs(term.0))),
            _ if (16..=22).contains(&kind.0) => TermView::Dim(Dim(term.0)),
            _ if (32..=38).contains(&kind.0) => TermView::Type(Type(term.0)),
            _ => TermView::Unknown { kind, children: cast(self.table.children(raw)) },
        }
    }

    /// Takes a dimension apart.
    pub fn dim(self, dim: Dim) -> DimView<'a> {
        let raw = self.table.get(dim.0);
        let kind = TermKind(raw.kind);
        let children: &[Dim] = cast(self.table.children(raw));
        match (kind, children) {
            (TermKind::INT, _) => DimView::Const(raw.bits as i64),
            (TermKind::DIM_SYMBOL, &[name]) => DimView::Symbol(Symbol(name.0)),
            (TermKind::DIM_ADD, all) => DimView::Add(all),
            (TermKind::DIM_MUL, all) => DimView::Mul(all),
            (TermKind::DIM_FLOOR_DIV, &[a, b]) => DimView::FloorDiv(a, b),
            (TermKind::DIM_FLOOR_MOD, &[a, b]) => DimView::FloorMod(a, b),
            (TermKind::DIM_MIN, &[a, b]) => DimView::Min(a, b),
            (TermKind::DIM_MAX, &[a, b]) => DimView::Max(a, b),
            _ => DimView::Unknown(kind),
        }
    }

    /// The value of a dimension that is a plain integer.
    pub fn dim_value(self, dim: Dim) -> Option<i64> {
        match self.dim(dim) {
            DimView::Const(value) => Some(value),
            _ => None,
        }
    }

    /// Takes a type apart. The device of a tensor is asked for by itself: see [`Terms::device`].
    pub fn ty(self, ty: Type) -> TypeView<'a> {
        let mut raw = self.table.get(ty.0);
        if let Some((tensor, _)) = self.placed_tensor(raw) {
            raw = self.table.get(tensor.0);
        }
        let kind = TermKind(raw.kind);
        let children = self.table.children(raw);
        let known_rank = raw.flags & 1 == 0;
        match kind {
            TermKind::SCALAR => {
                TypeView::Scalar { dtype: DType(raw.bits as u16), lanes: (raw.bits >> 16) as u16 }
            }
            TermKind::TENSOR => TypeView::Tensor {
                dtype: DType(raw.bits as u16),
                dims: known_rank.then(|| cast(children)),
            },
            TermKind::TUPLE => TypeView::Tuple(cast(children)),
            TermKind::FUNC => match cast(children).split_last() {
                Some((&result, params)) => TypeView::Func { params, result },
                None => TypeView::Unknown(kind),
            },
            TermKind::SHAPE => TypeView::Shape(known_rank.then(|| cast(children))),
            TermKind::OBJECT => TypeView::Object(Symbol(children.first().copied().unwrap_or(0))),
            _ => TypeView::Unknown(kind),
        }
    }

    /// The name of the device on which a tensor of this type lies, `cuda:0`; `None` where the type does not say it.
    pub fn device(self, ty: Type) -> Option<Symbol> {
        self.placed(ty).map(|(_, device)| device)
    }

    /// A tensor type that says a device, without it, and the device's name.
    pub(super) fn placed(self, ty: Type) -> Option<(Type, Symbol)> {
        self.placed_tensor(self.table.get(ty.0))
    }

    #[inline]
    fn placed_tensor(self, raw: RawTerm) -> Option<(Type, Symbol)> {
        if TermKind(raw.kind) != TermKind::PLACED {
            return None;
        }
        let &[tensor, device] = self.table.children(raw) else { return None };
        let is_tensor = self.table.get(tensor).kind == TermKind::TENSOR.0;
        is_tensor.then_some((Type(tensor), Symbol(device)))
    }

    /// The devices on which values of a type lie, as far as it says it: of the fields of a tuple, each.
    pub fn devices(self, ty: Type) -> Vec<Symbol> {
        let TypeView::Tuple(fields) = self.ty(ty) else {
            return self.device(ty).into_iter().collect();
        };
        let (mut found, mut pending) = (Vec::new(), fields.to_vec());
        pending.reverse();
        while let Some(ty) = pending.pop() {
            match self.ty(ty) {
                TypeView::Tuple(fields) => pending.extend(fields.iter().rev()),
                _ => found.extend(self.device(ty)),
            }
        }
        found
    }

    /// Dtype and dimensions of a tensor type of known rank.
    pub fn tensor(self, ty: Type) -> Option<(DType, &'a [Dim])> {
        match self.ty(ty) {
            TypeView::Tensor { dtype, dims: Some(dims) } => Some((dtype, dims)),
            _ => None,
        }
    }

    /// Dtype and shape of a tensor type whose dimensions are all integers.
    pub fn static_tensor(self, ty: Type) -> Option<(DType, Vec<i64>)> {
        let (dtype, dims) = self.tensor(ty)?;
        let shape: Option<Vec<i64>> = dims.iter().map(|&dim| self.dim_value(dim)).collect();
        Some((dtype, shape?))
    }

    /// Dtype and lanes of a scalar type.
    pub fn scalar(self, ty: Type) -> Option<(DType, u16)> {
        match self.ty(ty) {
            TypeView::Scalar { dtype, lanes } => Some((dtype, lanes)),
            _ => None,
        }
    }

    /// Reads an attribute dictionary.
    pub fn attrs(self, attrs: Attrs) -> AttrsView<'a> {
        let raw = self.table.get(attrs.0);
        let entries =
            if raw.kind == TermKind::DICT.0 { cast(self.table.children(raw)) } else { &[] };
        AttrsView { terms: self, entries }
    }
}

/// An attribute dictionary.
#[derive(Clone, Copy, Debug)]
pub struct AttrsView<'a> {
    terms: Terms<'a>,
    entries: &'a [Term],
}

impl PartialEq for AttrsView<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.entries == other.entries
    }
}

impl<'a> AttrsView<'a> {
    /// Number of entries.
    pub fn len(self) -> usize {
        self.entries.len() / 2
    }

    /// Whether there is no entry.
    pub fn is_empty(self) -> bool {
        self.entries.is_empty()
    }

    /// The entries in ascending order of their keys.
    pub fn iter(self) -> impl Iterator<Item = (&'a str, Term)> {
        self.entries.chunks_exact(2).map(move |pair| (self.terms.str(pair[0]), pair[1]))
    }

    /// The term under `key`.
    pub fn term(self, key: &str) -> Option<Term> {
        self.iter().find(|&(name, _)| name == key).map(|(_, value)| value)
    }

    /// The value under `key`.
    pub fn get(self, key: &str) -> Option<TermView<'a>> {
        self.term(key).map(|term| self.terms.view(term))
    }

    /// The integer under `key`.
    pub fn int(self, key: &str) -> Option<i64> {
        match self.get(key)? {
            TermView::Int(value) => Some(value),
            _ => None,
        }
    }

    /// The float under `key`; an integer counts as one.
    pub fn float(self, key: &str) -> Option<f64> {
        match self.get(key)? {
            TermView::Float(value) => Some(value),
            TermView::Int(value) => Some(value as f64),
            _ => None,
        }
    }

    /// The truth value under `key`.
    pub fn bool(self, key: &str) -> Option<bool> {
        match self.get(key)? {
            TermView::Bool(value) => Some(value),
            _ => None,
        }
    }

    /// The text under `key`.
    pub fn str(self, key: &str) -> Option<&'a str> {
        match self.get(key)? {
            TermView::Str(value) => Some(value),
            _ => None,
        }
    }

    /// The list of integers under `key`.
    pub fn ints(self, key: &str) -> Option<Vec<i64>> {
        match self.get(key)? {
            TermView::List(items) => items
                .iter()
                .map(|&item| match self.terms.view(item) {
                    TermView::Int(value) => Some(value),
                    _ => None,
                })
                .collect(),
            _ => None,
        }
    }
}

/// Reinterprets a slice of ids: each id type is a transparent u32.
fn cast<T: Id>(ids: &[u32]) -> &[T] {
    T::cast(ids)
}

/// The transparent wrappers of a term's number.
trait Id: Sized {
    fn cast(ids: &[u32]) -> &[Self];
}

macro_rules! id_slices {
    ($($name:ident)*) => {$(
        impl Id for $name {
            fn cast(ids: &[u32]) -> &[Self] {
                crate::abi::read::cast_ids!(ids, $name)
            }
        }
    )*};
}

id_slices!(Term Dim Type);
