//! Types, dimensions and attributes as text.

use std::fmt::Write;
use std::ops::Range;

use rustc_hash::FxHashMap;

use crate::text::names::{is_word, write_name, write_quoted};
use crate::{Attrs, DType, Dim, DimView, Term, TermKind, TermView, Terms, Type, TypeView};

/// Bytes of one type, dictionary or dimension. Parts that are shared are one term, but are written each time,
/// so a small term may have a text that fills the memory.
const LONGEST_TERM: usize = 1 << 24;

/// Writes terms. A type or a dictionary that was written before is copied from the output. One that is too long
/// is written as `...`, which does not parse.
pub(in crate::text) struct TermWriter<'a> {
    terms: Terms<'a>,
    stack: Vec<Step>,
    written: FxHashMap<u32, Range<usize>>,
    has_elided: bool,
}

/// What is still to be written.
enum Step {
    Text(&'static str),
    Value(Term),
    Type(Type),
    Dim(Dim, Place),
    Key(Term),
    Raw(Term),
}

/// Where a dimension stands.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Alone,
    /// In a product, where a sum needs parentheses.
    Factor,
    /// After a minus sign that is written already.
    Negated,
}

impl<'a> TermWriter<'a> {
    pub(in crate::text) fn new(terms: Terms<'a>) -> Self {
        Self { terms, stack: Vec::new(), written: FxHashMap::default(), has_elided: false }
    }

    /// Whether a term was too long to be written.
    pub(in crate::text) fn has_elided(&self) -> bool {
        self.has_elided
    }

    /// A type. `out` must be the same text every time, and may only have grown.
    pub(in crate::text) fn ty(&mut self, out: &mut String, ty: Type) {
        self.remembered(out, ty.0, Step::Type(ty));
    }

    /// A dictionary with its braces. `out` as for [`Self::ty`].
    pub(in crate::text) fn attrs(&mut self, out: &mut String, attrs: Attrs) {
        self.remembered(out, attrs.0, Step::Value(attrs.into()));
    }

    /// The dimensions of a shape, `*` when the rank is unknown.
    pub(in crate::text) fn dims(&mut self, out: &mut String, dims: Option<&[Dim]>) {
        self.push_dims(dims);
        self.run(out);
    }

    /// A dimension.
    pub(in crate::text) fn dim(&mut self, out: &mut String, dim: Dim) {
        self.stack.push(Step::Dim(dim, Place::Alone));
        self.run(out);
    }

    fn remembered(&mut self, out: &mut String, term: u32, step: Step) {
        if let Some(range) = self.written.get(&term) {
            return out.extend_from_within(range.clone());
        }
        let start = out.len();
        self.stack.push(step);
        self.run(out);
        self.written.insert(term, start..out.len());
    }

    fn run(&mut self, out: &mut String) {
        let start = out.len();
        while let Some(step) = self.stack.pop() {
            if out.len() - start > LONGEST_TERM {
                self.stack.clear();
                out.truncate(start);
                out.push_str("...");
                self.has_elided = true;
                return;
            }
            match step {
                Step::Text(text) => out.push_str(text),
                Step::Value(term) => self.value(out, term),
                Step::Type(ty) => self.one_type(out, ty),
                Step::Dim(dim, place) => self.one_dim(out, dim, place),
                Step::Key(key) => {
                    let key = self.terms.str(key);
                    write_name(out, key, is_word(key));
                    out.push_str(" = ");
                }
                Step::Raw(term) => self.raw(out, term),
            }
        }
    }

    /// Schedules a list with commas; the step that is written first is on top in the end.
    fn push_list<T: Copy>(&mut self, items: &[T], step: impl Fn(T) -> Step) {
        for (index, &item) in items.iter().enumerate().rev() {
            self.stack.push(step(item));
            if index > 0 {
                self.stack.push(Step::Text(", "));
            }
        }
    }

    fn push_dims(&mut self, dims: Option<&[Dim]>) {
        match dims {
            Some(dims) => self.push_list(dims, |dim| Step::Dim(dim, Place::Alone)),
            None => self.stack.push(Step::Text("*")),
        }
    }

    fn value(&mut self, out: &mut String, term: Term) {
        match self.terms.view(term) {
            TermView::None => out.push_str("none"),
            TermView::Int(value) => write_int(out, value),
            TermView::Float(value) => write_f64(out, value),
            TermView::Bool(value) => out.push_str(if value { "true" } else { "false" }),
            TermView::Str(text) => write_quoted(out, text),
            TermView::List(items) => {
                out.push('[');
                self.stack.push(Step::Text("]"));
                self.push_list(items, Step::Value);
            }
            TermView::Dict(_) => self.dict(out, term),
            TermView::Dim(dim) => {
                out.push_str("dim(");
                self.stack.extend([Step::Text(")"), Step::Dim(dim, Place::Alone)]);
            }
            TermView::Type(ty) => self.stack.push(Step::Type(ty)),
            TermView::Unknown { .. } => self.stack.push(Step::Raw(term)),
        }
    }

    fn dict(&mut self, out: &mut String, term: Term) {
        let entries = self.terms.children(term);
        if entries.is_empty() {
            return out.push_str("{}");
        }
        out.push_str("{ ");
        self.stack.push(Step::Text(" }"));
        for (index, entry) in entries.chunks(2).enumerate().rev() {
            self.stack.extend(entry.get(1).map(|&value| Step::Value(value)));
            self.stack.push(Step::Key(entry[0]));
            if index > 0 {
                self.stack.push(Step::Text(", "));
            }
        }
    }

    fn one_type(&mut self, out: &mut String, ty: Type) {
        match self.terms.ty(ty) {
            TypeView::Scalar { dtype, lanes } => {
                write_dtype(out, dtype);
                if lanes != 1 {
                    write!(out, "x{lanes}").expect("a string takes all");
                }
            }
            TypeView::Tensor { dtype, dims } => {
                write_dtype(out, dtype);
                out.push('[');
                if let Some(device) = self.terms.device(ty) {
                    self.stack.extend([Step::Value(device.into()), Step::Text(" on ")]);
                }
                self.stack.push(Step::Text("]"));
                self.push_dims(dims);
            }
            TypeView::Tuple(fields) => {
                out.push('(');
                self.stack.push(Step::Text(if fields.len() == 1 { ",)" } else { ")" }));
                self.push_list(fields, Step::Type);
            }
            TypeView::Func { params, result } => {
                out.push_str("fn(");
                self.stack.extend([Step::Type(result), Step::Text(") -> ")]);
                self.push_list(params, Step::Type);
            }
            TypeView::Shape(dims) => {
                out.push_str("shape[");
                self.stack.push(Step::Text("]"));
                self.push_dims(dims);
            }
            TypeView::Object(class) => {
                let class = self.terms.str(class);
                out.push_str("object<");
                write_name(out, class, is_word(class));
                out.push('>');
            }
            TypeView::Unknown(_) => self.stack.push(Step::Raw(ty.into())),
        }
    }

    fn one_dim(&mut self, out: &mut String, dim: Dim, place: Place) {
        match self.terms.dim(dim) {
            DimView::Const(value) if place == Place::Negated => {
                write!(out, "{}", value.unsigned_abs()).expect("a string takes all");
            }
            DimView::Const(value) => write_int(out, value),
            DimView::Symbol(name) => write_dim_symbol(out, self.terms.str(name)),
            DimView::Add(parts) => {
                if place == Place::Factor {
                    out.push('(');
                    self.stack.push(Step::Text(")"));
                }
                for (index, &part) in parts.iter().enumerate().rev() {
                    let is_negated = index > 0 && is_negative(self.terms, part);
                    let place = if is_negated { Place::Negated } else { Place::Alone };
                    self.stack.push(Step::Dim(part, place));
                    if index > 0 {
                        self.stack.push(Step::Text(if is_negated { " - " } else { " + " }));
                    }
                }
            }
            DimView::Mul(factors) => {
                // A product within a product is one that has become too long to be one with it.
                if place == Place::Factor {
                    out.push('(');
                    self.stack.push(Step::Text(")"));
                }
                for (index, &factor) in factors.iter().enumerate().rev() {
                    let is_sign = index == 0 && place == Place::Negated;
                    if is_sign && self.terms.dim_value(factor) == Some(-1) {
                        // The first of at least two factors; what follows starts with its sign.
                        self.stack.pop();
                        continue;
                    }
                    let place = if is_sign { Place::Negated } else { Place::Factor };
                    self.stack.push(Step::Dim(factor, place));
                    if index > 0 {
                        self.stack.push(Step::Text("*"));
                    }
                }
            }
            DimView::FloorDiv(a, b) => self.dim_call(out, "floordiv(", a, b),
            DimView::FloorMod(a, b) => self.dim_call(out, "floormod(", a, b),
            DimView::Min(a, b) => self.dim_call(out, "min(", a, b),
            DimView::Max(a, b) => self.dim_call(out, "max(", a, b),
            DimView::Unknown(_) => self.stack.push(Step::Raw(dim.into())),
        }
    }

    fn dim_call(&mut self, out: &mut String, name: &str, a: Dim, b: Dim) {
        out.push_str(name);
        self.stack.push(Step::Text(")"));
        self.push_list(&[a, b], |dim| Step::Dim(dim, Place::Alone));
    }

    /// A term of a kind that this build does not know.
    fn raw(&mut self, out: &mut String, term: Term) {
        let raw = self.terms.raw(term);
        write!(out, "term<{}, {}, {}>(", raw.kind, raw.flags, raw.bits)
            .expect("a string takes all");
        self.stack.push(Step::Text(")"));
        self.push_list(self.terms.children(term), Step::Value);
    }
}

fn is_negative(terms: Terms<'_>, part: Dim) -> bool {
    match terms.dim(part) {
        DimView::Const(value) => (i64::MIN + 1..0).contains(&value),
        DimView::Mul(factors) => {
            let first = factors.first().and_then(|&first| terms.dim_value(first));
            factors.len() > 1 && first.is_some_and(|value| (i64::MIN + 1..0).contains(&value))
        }
        _ => false,
    }
}

/// Words that begin a dimension which is no symbol.
pub(in crate::text) const DIM_CALLS: &[(&str, TermKind)] = &[
    ("floordiv", TermKind::DIM_FLOOR_DIV),
    ("floormod", TermKind::DIM_FLOOR_MOD),
    ("min", TermKind::DIM_MIN),
    ("max", TermKind::DIM_MAX),
];

fn write_dim_symbol(out: &mut String, name: &str) {
    let is_call = name == "term" || DIM_CALLS.iter().any(|call| call.0 == name);
    write_name(out, name, is_word(name) && !is_call);
}

fn write_dtype(out: &mut String, dtype: DType) {
    // The dtype of code 0 has a name that is no type.
    match dtype.0 {
        0 => out.push_str("dtype<0>"),
        _ => write!(out, "{dtype}").expect("a string takes all"),
    }
}

/// Writes an integer.
pub(in crate::text) fn write_int(out: &mut String, value: i64) {
    match value {
        0..=9 => out.push((b'0' + value as u8) as char),
        _ => write!(out, "{value}").expect("a string takes all"),
    }
}

/// Writes a float so that it reads back as the same bits and is no integer.
pub(in crate::text) fn write_f64(out: &mut String, value: f64) {
    let written = if !value.is_nan() {
        write!(out, "{value:?}")
    } else if value.to_bits() == f64::NAN.to_bits() {
        out.write_str("nan")
    } else {
        write!(out, "nan({:#x})", value.to_bits())
    };
    written.expect("a string takes all");
}
