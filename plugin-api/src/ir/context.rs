//! The context: where terms are made.

use std::collections::BTreeMap;

use crate::ir::{
    Attrs, DType, Dim, Fit, Symbol, Term, TermKind, Terms, Type, TypeView, dim, dim_math,
};

/// Makes terms. Implemented by the host's term table and, across the border, by a plugin's handle to it.
///
/// Terms live as long as the context and are never removed. All methods may be called from any thread.
pub trait Context {
    /// The terms made so far.
    fn terms(&self) -> Terms<'_>;

    /// The one term of this kind, payload and children.
    fn intern(&self, kind: TermKind, flags: u16, bits: u64, children: &[Term]) -> Term;

    /// The one name with this text.
    fn symbol(&self, text: &str) -> Symbol;

    /// Hears of dimensions that type inference of an operator takes to fit, since nothing refutes it; without an effect where
    /// nobody asks.
    fn take_to_fit(&self, _: Fit) {}

    /// An integer.
    fn int(&self, value: i64) -> Term {
        self.intern(TermKind::INT, 0, value as u64, &[])
    }

    /// A float.
    fn float(&self, value: f64) -> Term {
        self.intern(TermKind::FLOAT, 0, value.to_bits(), &[])
    }

    /// A truth value.
    fn bool(&self, value: bool) -> Term {
        self.intern(TermKind::BOOL, 0, value as u64, &[])
    }

    /// A list.
    fn list(&self, items: &[Term]) -> Term {
        self.intern(TermKind::LIST, 0, 0, items)
    }

    /// A list of integers.
    fn int_list(&self, items: &[i64]) -> Term {
        let items: Vec<Term> = items.iter().map(|&item| self.int(item)).collect();
        self.list(&items)
    }

    /// A value as a term.
    fn value(&self, value: &AttrValue) -> Term {
        match value {
            AttrValue::Int(value) => self.int(*value),
            AttrValue::Float(value) => self.float(*value),
            AttrValue::Bool(value) => self.bool(*value),
            AttrValue::Str(value) => self.symbol(value).into(),
            AttrValue::Ints(items) => self.int_list(items),
            AttrValue::Term(term) => *term,
        }
    }

    /// A dictionary; of two equal keys the later one stands. The empty one is [`Attrs::NONE`].
    fn attrs(&self, entries: &[(&str, AttrValue)]) -> Attrs {
        let sorted: BTreeMap<&str, Term> =
            entries.iter().map(|(key, value)| (*key, self.value(value))).collect();
        self.dict(&sorted)
    }

    /// A dictionary from keys and terms.
    fn dict(&self, entries: &BTreeMap<&str, Term>) -> Attrs {
        if entries.is_empty() {
            return Attrs::NONE;
        }
        let children: Vec<Term> =
            entries.iter().flat_map(|(key, value)| [self.symbol(key).into(), *value]).collect();
        Attrs(self.intern(TermKind::DICT, 0, 0, &children).0)
    }

    /// `attrs` with `key` set to `value`.
    fn with_attr(&self, attrs: Attrs, key: &str, value: AttrValue) -> Attrs {
        let value = self.value(&value);
        let mut entries: BTreeMap<&str, Term> = self.terms().attrs(attrs).iter().collect();
        entries.insert(key, value);
        self.dict(&entries)
    }

    /// `attrs` without `key`.
    fn without_attr(&self, attrs: Attrs, key: &str) -> Attrs {
        let mut entries: BTreeMap<&str, Term> = self.terms().attrs(attrs).iter().collect();
        match entries.remove(key) {
            Some(_) => self.dict(&entries),
            None => attrs,
        }
    }

    /// A scalar type.
    fn scalar_type(&self, dtype: DType) -> Type {
        self.vector_type(dtype, 1)
    }

    /// A vector type of `lanes` lanes; one lane is the scalar type.
    fn vector_type(&self, dtype: DType, lanes: u16) -> Type {
        let bits = dtype.0 as u64 | (lanes as u64) << 16;
        Type(self.intern(TermKind::SCALAR, 0, bits, &[]).0)
    }

    /// A tensor type.
    fn tensor_type(&self, dtype: DType, dims: &[Dim]) -> Type {
        let dims: Vec<Term> = dims.iter().map(|&dim| dim.into()).collect();
        Type(self.intern(TermKind::TENSOR, 0, dtype.0 as u64, &dims).0)
    }

    /// A tensor type whose dimensions are all integers.
    fn static_tensor_type(&self, dtype: DType, shape: &[i64]) -> Type {
        let dims: Vec<Term> = shape.iter().map(|&extent| self.int(extent)).collect();
        Type(self.intern(TermKind::TENSOR, 0, dtype.0 as u64, &dims).0)
    }

    /// A tensor type of unknown rank.
    fn unranked_tensor_type(&self, dtype: DType) -> Type {
        Type(self.intern(TermKind::TENSOR, 1, dtype.0 as u64, &[]).0)
    }

    /// The type with all of its tensors on a device, or on none that it says. Fields of tuples are looked into, functions are not.
    fn on_device(&self, ty: Type, device: Option<Symbol>) -> Type {
        enum Step {
            Type(Type),
            Tuple(usize),
        }
        let (mut steps, mut done) = (vec![Step::Type(ty)], Vec::new());
        while let Some(step) = steps.pop() {
            let ty = match step {
                Step::Tuple(count) => {
                    let fields = done.split_off(done.len() - count);
                    done.push(self.tuple_type(&fields));
                    continue;
                }
                Step::Type(ty) => ty,
            };
            done.push(match self.terms().ty(ty) {
                TypeView::Tuple(fields) => {
                    steps.push(Step::Tuple(fields.len()));
                    steps.extend(fields.iter().rev().map(|&field| Step::Type(field)));
                    continue;
                }
                TypeView::Tensor { .. } => {
                    let tensor = self.terms().placed(ty).map_or(ty, |(tensor, _)| tensor);
                    device.map_or(tensor, |device| {
                        let children = [tensor.into(), device.into()];
                        Type(self.intern(TermKind::PLACED, 0, 0, &children).0)
                    })
                }
                _ => ty,
            });
        }
        done.pop().unwrap_or(ty)
    }

    /// A tuple type.
    fn tuple_type(&self, fields: &[Type]) -> Type {
        let fields: Vec<Term> = fields.iter().map(|&field| field.into()).collect();
        Type(self.intern(TermKind::TUPLE, 0, 0, &fields).0)
    }

    /// A function type.
    fn func_type(&self, params: &[Type], result: Type) -> Type {
        let children: Vec<Term> = params.iter().chain([&result]).map(|&ty| ty.into()).collect();
        Type(self.intern(TermKind::FUNC, 0, 0, &children).0)
    }

    /// A shape type; `None` when the rank is unknown.
    fn shape_type(&self, dims: Option<&[Dim]>) -> Type {
        let children: Vec<Term> = dims.unwrap_or(&[]).iter().map(|&dim| dim.into()).collect();
        Type(self.intern(TermKind::SHAPE, dims.is_none() as u16, 0, &children).0)
    }

    /// An object type.
    fn object_type(&self, class: &str) -> Type {
        let class = self.symbol(class).into();
        Type(self.intern(TermKind::OBJECT, 0, 0, &[class]).0)
    }

    /// A constant dimension.
    fn dim(&self, value: i64) -> Dim {
        Dim(self.int(value).0)
    }

    /// A symbolic dimension.
    fn dim_symbol(&self, name: &str) -> Dim {
        let name = self.symbol(name).into();
        Dim(self.intern(TermKind::DIM_SYMBOL, 0, 0, &[name]).0)
    }

    /// `a + b`, in normal form.
    fn dim_add(&self, a: Dim, b: Dim) -> Dim {
        dim::add(self, &[(a, 1), (b, 1)])
    }

    /// `a - b`, in normal form.
    fn dim_sub(&self, a: Dim, b: Dim) -> Dim {
        dim::add(self, &[(a, 1), (b, -1)])
    }

    /// The sum of all `parts`, each times its number, in normal form.
    fn dim_sum(&self, parts: &[(Dim, i64)]) -> Dim {
        dim::add(self, parts)
    }

    /// `a * b`, in normal form.
    fn dim_mul(&self, a: Dim, b: Dim) -> Dim {
        dim::mul(self, &[a, b])
    }

    /// The product of all `parts`, in normal form; 1 for none.
    fn dim_product(&self, parts: &[Dim]) -> Dim {
        dim::mul(self, parts)
    }

    /// `a / b` rounded down.
    fn dim_floor_div(&self, a: Dim, b: Dim) -> Dim {
        dim::binary(self, TermKind::DIM_FLOOR_DIV, a, b)
    }

    /// The remainder of `a / b` rounded down.
    fn dim_floor_mod(&self, a: Dim, b: Dim) -> Dim {
        dim::binary(self, TermKind::DIM_FLOOR_MOD, a, b)
    }

    /// The smaller of two dimensions.
    fn dim_min(&self, a: Dim, b: Dim) -> Dim {
        dim::binary(self, TermKind::DIM_MIN, a, b)
    }

    /// The larger of two dimensions.
    fn dim_max(&self, a: Dim, b: Dim) -> Dim {
        dim::binary(self, TermKind::DIM_MAX, a, b)
    }

    /// The quotient of two products, where the one divides the other; `floordiv` where that is not seen. `None` where it
    /// is no number, and where one product is too large for one.
    fn dim_quotient(&self, dividend: &[Dim], divisor: &[Dim]) -> Option<Dim> {
        dim_math::quotient(self, dividend, divisor)
    }
}

/// An attribute value to make a term of.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "each variant is the kind of value it holds")]
pub enum AttrValue {
    Int(i64),
    Float(f64),
    Bool(bool),
    Str(String),
    Ints(Vec<i64>),
    Term(Term),
}

macro_rules! attr_from {
    ($($from:ty => |$value:ident| $make:expr;)*) => {$(
        impl From<$from> for AttrValue {
            fn from($value: $from) -> Self { $make }
        }
    )*};
}

attr_from! {
    i64 => |value| AttrValue::Int(value);
    i32 => |value| AttrValue::Int(value as i64);
    f64 => |value| AttrValue::Float(value);
    bool => |value| AttrValue::Bool(value);
    &str => |value| AttrValue::Str(value.to_owned());
    String => |value| AttrValue::Str(value);
    Vec<i64> => |value| AttrValue::Ints(value);
    &[i64] => |value| AttrValue::Ints(value.to_vec());
    Term => |value| AttrValue::Term(value);
    Symbol => |value| AttrValue::Term(value.into());
    Type => |value| AttrValue::Term(value.into());
}
