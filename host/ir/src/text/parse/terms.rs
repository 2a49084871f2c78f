//! Types, dimensions and attribute values.
//!
//! These nest, so the reader recurses; the depth is limited, and the limit is far beyond what a
//! compiler makes.

use std::collections::BTreeMap;

use super::Parser;
use super::cursor::{Halt, Parsed, range};
use crate::diagnostics::Diagnostic;
use crate::suggest::nearest;
use crate::text::lexer::{Tok, Token};
use crate::text::names::scalar;
use crate::text::print::DIM_CALLS;
use crate::{Attrs, Context, DType, Dim, Term, TermKind, Type};

/// Types, dimensions or values within each other.
const DEEPEST: u32 = 200;

/// Names of dtypes elsewhere.
const FOREIGN: &[(&str, &str)] = &[
    ("float", "f32"),
    ("double", "f64"),
    ("float64", "f64"),
    ("float32", "f32"),
    ("float16", "f16"),
    ("half", "f16"),
    ("bfloat16", "bf16"),
    ("float8_e4m3", "f8e4m3"),
    ("float8_e5m2", "f8e5m2"),
    ("float8_e4m3fn", "f8e4m3"),
    ("float8_e4m3fnuz", "f8e4m3fnuz"),
    ("float8_e5m2fnuz", "f8e5m2fnuz"),
    ("float8_e8m0fnu", "f8e8m0"),
    ("float4_e2m1fn", "f4e2m1"),
    ("int2", "i2"),
    ("uint2", "u2"),
    ("int4", "i4"),
    ("uint4", "u4"),
    ("int8", "i8"),
    ("int16", "i16"),
    ("int", "i32"),
    ("int32", "i32"),
    ("int64", "i64"),
    ("uint8", "u8"),
    ("uint16", "u16"),
    ("uint32", "u32"),
    ("uint64", "u64"),
    ("i1", "bool"),
];

impl<'s> Parser<'s, '_> {
    /// Counts a level of nesting while `read` runs.
    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth == DEEPEST {
            let span = range(self.token);
            let message = format!("types and attributes nest at most {DEEPEST} levels deep");
            return Err(self.error_at(span, message, "one level too deep"));
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// A type.
    pub(super) fn ty(&mut self) -> Parsed<Type> {
        let ty = self.placeless_type()?;
        let is_tensor = self.cx.terms().kind(ty) == TermKind::TENSOR;
        if !(is_tensor && self.eat_word("on")) {
            return Ok(ty);
        }
        let token = self.expect(Tok::Str)?;
        let device = self.unquoted(token, 0)?;
        Ok(self.cx.on_device(ty, Some(self.cx.symbol(&device))))
    }

    /// A type without the device behind it.
    fn placeless_type(&mut self) -> Parsed<Type> {
        let start = self.token.start as usize;
        let Some(end) = self.end_of_plain_type() else { return self.nested(Self::any_type) };
        let slice = &self.text[start..end];
        if let Some(&ty) = self.types.get(slice) {
            self.jump(end);
            return Ok(ty);
        }
        let ty = self.nested(Self::any_type)?;
        if self.last_end as usize == end {
            self.types.insert(slice, ty);
        }
        Ok(ty)
    }

    /// Where a type like `f32[1, n]` ends, so that one that was read before is known by its text.
    fn end_of_plain_type(&self) -> Option<usize> {
        let end = self.token.end as usize;
        let rest = &self.text.as_bytes()[end..];
        if !self.at(Tok::Word) || rest.first() != Some(&b'[') {
            return None;
        }
        let close = rest.iter().position(|byte| matches!(byte, b']' | b'"' | b'/' | b'\n'))?;
        (rest[close] == b']').then_some(end + close + 1)
    }

    fn any_type(&mut self) -> Parsed<Type> {
        let token = self.token;
        match token.tok {
            Tok::LParen => {
                self.bump();
                let fields = self.list(Tok::RParen, Self::ty)?;
                Ok(self.cx.tuple_type(&fields))
            }
            Tok::Word => match self.slice(token) {
                "fn" => {
                    self.bump();
                    self.expect(Tok::LParen)?;
                    let params = self.list(Tok::RParen, Self::ty)?;
                    self.expect(Tok::Arrow)?;
                    let result = self.ty()?;
                    Ok(self.cx.func_type(&params, result))
                }
                "shape" => {
                    self.bump();
                    self.expect(Tok::LBracket)?;
                    let dims = self.dims(Tok::RBracket)?;
                    Ok(self.cx.shape_type(dims.as_deref()))
                }
                "object" => {
                    self.bump();
                    self.expect(Tok::Lt)?;
                    let class = self.name("the name of a class")?;
                    self.expect(Tok::Gt)?;
                    Ok(self.cx.object_type(&class))
                }
                "term" => Ok(Type(self.raw_term()?.0)),
                word => match self.scalar_word(word)? {
                    Some((dtype, lanes)) => self.tensor_or_scalar(dtype, lanes),
                    None => Err(self.unknown_type(token)),
                },
            },
            _ => Err(self.expected("a type")),
        }
    }

    /// Reads the current word when it names a dtype, with lanes or without.
    pub(super) fn scalar_word(&mut self, word: &str) -> Parsed<Option<(DType, u16)>> {
        if let Some(known) = scalar(word) {
            self.bump();
            return Ok(Some(known));
        }
        if word != "dtype" {
            return Ok(None);
        }
        self.bump();
        self.expect(Tok::Lt)?;
        let code = self.small()?;
        self.expect(Tok::Gt)?;
        let lanes = match self.at(Tok::Word) && self.token.start == self.last_end {
            true => {
                let token = self.bump();
                match self.slice(token).strip_prefix('x').and_then(|lanes| lanes.parse().ok()) {
                    Some(lanes) => lanes,
                    None => return Err(self.error_at(range(token), "not a number of lanes", "")),
                }
            }
            false => 1,
        };
        Ok(Some((DType(code), lanes)))
    }

    fn tensor_or_scalar(&mut self, dtype: DType, lanes: u16) -> Parsed<Type> {
        if lanes != 1 || !self.eat(Tok::LBracket) {
            return Ok(self.cx.vector_type(dtype, lanes));
        }
        Ok(match self.dims(Tok::RBracket)? {
            Some(dims) => self.cx.tensor_type(dtype, &dims),
            None => self.cx.unranked_tensor_type(dtype),
        })
    }

    fn unknown_type(&mut self, token: Token) -> Halt {
        let word = self.slice(token);
        let foreign = FOREIGN.iter().find(|(name, _)| *name == word).map(|known| known.1);
        let names: Vec<String> = DType::all().map(|dtype| dtype.to_string()).collect();
        let near = foreign.or_else(|| nearest(word, names.iter().map(String::as_str)));
        let diagnostic = Diagnostic::error(format!("unknown type `{word}`"))
            .label(range(token), "not a type")
            .help(match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("known are {} and tuples, fn, shape, object", names.join(" ")),
            });
        self.report(diagnostic)
    }

    /// Dimensions up to `end`; `None` for `*`, an unknown rank.
    pub(super) fn dims(&mut self, end: Tok) -> Parsed<Option<Vec<Dim>>> {
        if self.eat(Tok::Star) {
            self.expect(end)?;
            return Ok(None);
        }
        self.list(end, Self::dim).map(Some)
    }

    /// A dimension: a sum of products.
    pub(super) fn dim(&mut self) -> Parsed<Dim> {
        let mut parts = vec![(self.dim_product()?, 1)];
        loop {
            let sign = match self.token.tok {
                Tok::Plus => 1,
                Tok::Minus => -1,
                _ => break,
            };
            self.bump();
            parts.push((self.dim_product()?, sign));
        }
        match parts.as_slice() {
            &[(part, _)] => Ok(part),
            parts => Ok(self.cx.dim_sum(parts)),
        }
    }

    fn dim_product(&mut self) -> Parsed<Dim> {
        let mut factors = vec![self.nested(Self::dim_factor)?];
        while self.eat(Tok::Star) {
            factors.push(self.nested(Self::dim_factor)?);
        }
        match factors.as_slice() {
            &[factor] => Ok(factor),
            factors => Ok(self.cx.dim_product(factors)),
        }
    }

    fn dim_factor(&mut self) -> Parsed<Dim> {
        let token = self.token;
        match token.tok {
            Tok::Int => Ok(Dim(self.small_int(token).map_or_else(|| self.number(), Ok)?.0)),
            Tok::Minus => {
                self.bump();
                if self.at(Tok::Int) {
                    return Ok(Dim(self.signed_number(true)?.0));
                }
                let factor = self.nested(Self::dim_factor)?;
                Ok(self.cx.dim_sub(self.cx.dim(0), factor))
            }
            Tok::Str => {
                self.bump();
                let name = self.unquoted(token, 0)?;
                Ok(self.cx.dim_symbol(&name))
            }
            Tok::LParen => {
                self.bump();
                let dim = self.nested(Self::dim)?;
                self.expect(Tok::RParen)?;
                Ok(dim)
            }
            Tok::Word => {
                let word = self.slice(token);
                if let Some(&(_, kind)) = DIM_CALLS.iter().find(|call| call.0 == word) {
                    return self.dim_call(kind);
                }
                if word == "term" {
                    return Ok(Dim(self.raw_term()?.0));
                }
                self.bump();
                Ok(self.cx.dim_symbol(word))
            }
            _ => Err(self.expected("a dimension")),
        }
    }

    fn dim_call(&mut self, kind: TermKind) -> Parsed<Dim> {
        self.bump();
        self.expect(Tok::LParen)?;
        let a = self.nested(Self::dim)?;
        self.expect(Tok::Comma)?;
        let b = self.nested(Self::dim)?;
        self.expect(Tok::RParen)?;
        Ok(match kind {
            TermKind::DIM_FLOOR_DIV => self.cx.dim_floor_div(a, b),
            TermKind::DIM_FLOOR_MOD => self.cx.dim_floor_mod(a, b),
            TermKind::DIM_MIN => self.cx.dim_min(a, b),
            _ => self.cx.dim_max(a, b),
        })
    }

    /// Whether the current `{` begins a dictionary with entries rather than statements.
    pub(super) fn at_attrs(&self) -> bool {
        if !self.at(Tok::LBrace) {
            return false;
        }
        let mut ahead = self.ahead();
        matches!(ahead.next(), Some(Token { tok: Tok::Word | Tok::Str, .. }))
            && matches!(ahead.next(), Some(Token { tok: Tok::Assign, .. }))
    }

    /// Attributes, if they are here.
    pub(super) fn attrs(&mut self) -> Parsed<Attrs> {
        if !self.at_attrs() {
            return Ok(Attrs::NONE);
        }
        let start = self.token.start as usize;
        let Some(end) = self.end_of_plain_attrs() else { return self.dict() };
        let slice = &self.text[start..end];
        if let Some(&attrs) = self.dicts.get(slice) {
            self.jump(end);
            return Ok(attrs);
        }
        let attrs = self.dict()?;
        if self.last_end as usize == end {
            self.dicts.insert(slice, attrs);
        }
        Ok(attrs)
    }

    /// Where a dictionary ends that holds no other, no escape and no comment.
    fn end_of_plain_attrs(&self) -> Option<usize> {
        let start = self.token.end as usize;
        let mut is_in_string = false;
        for (offset, byte) in self.text.as_bytes()[start..].iter().enumerate() {
            match byte {
                b'"' => is_in_string = !is_in_string,
                b'\\' | b'/' | b'\n' => return None,
                b'{' if !is_in_string => return None,
                b'}' if !is_in_string => return Some(start + offset + 1),
                _ => {}
            }
        }
        None
    }

    /// A dictionary, at its `{`.
    pub(super) fn dict(&mut self) -> Parsed<Attrs> {
        self.expect(Tok::LBrace)?;
        self.open_dicts += 1;
        let mut entries: BTreeMap<std::borrow::Cow<'s, str>, Term> = BTreeMap::new();
        self.list(Tok::RBrace, |this| {
            let token = this.token;
            let key = this.name("the name of an attribute")?;
            this.expect(Tok::Assign)?;
            let value = this.nested(Self::value)?;
            if entries.insert(key, value).is_some() {
                let message = format!("attribute {} is given twice", this.described(token));
                return Err(this.error_at(range(token), message, "given before"));
            }
            Ok(())
        })?;
        self.open_dicts -= 1;
        let entries = entries.iter().map(|(key, value)| (key.as_ref(), *value)).collect();
        Ok(self.cx.dict(&entries))
    }

    /// A word or a string.
    pub(super) fn name(&mut self, what: &str) -> Parsed<std::borrow::Cow<'s, str>> {
        match self.token.tok {
            Tok::Word | Tok::Str => {
                let token = self.bump();
                self.unquoted(token, 0)
            }
            _ => Err(self.expected(what)),
        }
    }

    /// An attribute value.
    fn value(&mut self) -> Parsed<Term> {
        let token = self.token;
        match token.tok {
            Tok::Int => self.small_int(token).map_or_else(|| self.number(), Ok),
            Tok::Float => self.number(),
            Tok::Minus => {
                self.bump();
                self.signed_number(true)
            }
            Tok::Str => {
                self.bump();
                Ok(self.cx.symbol(&self.unquoted(token, 0)?).into())
            }
            Tok::LBracket => {
                self.bump();
                let items = self.list(Tok::RBracket, |this| this.nested(Self::value))?;
                Ok(self.cx.list(&items))
            }
            Tok::LBrace => match self.ahead().next().map(|token| token.tok) {
                Some(Tok::RBrace) => {
                    self.bump();
                    self.bump();
                    Ok(self.cx.intern(TermKind::DICT, 0, 0, &[]))
                }
                _ => Ok(self.dict()?.into()),
            },
            Tok::LParen => Ok(self.ty()?.into()),
            Tok::Word => match self.slice(token) {
                "true" | "false" => {
                    self.bump();
                    Ok(self.cx.bool(self.slice(token) == "true"))
                }
                "none" => {
                    self.bump();
                    Ok(Term::NONE)
                }
                "inf" | "nan" => self.signed_number(false),
                "dim" => {
                    self.bump();
                    self.expect(Tok::LParen)?;
                    let dim = self.dim()?;
                    self.expect(Tok::RParen)?;
                    Ok(dim.into())
                }
                "term" => self.raw_term(),
                _ => Ok(self.ty()?.into()),
            },
            _ => Err(self.expected("a value")),
        }
    }

    /// `term<kind, flags, bits>(children)`: a term of a kind that this build does not know.
    fn raw_term(&mut self) -> Parsed<Term> {
        self.bump();
        self.expect(Tok::Lt)?;
        let kind: u16 = self.small()?;
        self.expect(Tok::Comma)?;
        let flags = self.small()?;
        self.expect(Tok::Comma)?;
        let bits = self.small()?;
        self.expect(Tok::Gt)?;
        self.expect(Tok::LParen)?;
        let children = self.list(Tok::RParen, |this| this.nested(Self::value))?;
        if kind == TermKind::STR.0 {
            return Err(self.error_at(0..0, "a string is written in quotes", ""));
        }
        Ok(self.cx.intern(TermKind(kind), flags, bits, &children))
    }
}
