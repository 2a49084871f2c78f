//! Constants: `const(f32[2], [1, 2.5])`, `const(f32[64, 3], 0)`, `const(f32[64, 3], @"weight")`.

use std::collections::hash_map::Entry;
use std::sync::Arc;

use super::Parser;
use super::cursor::{Parsed, range};
use crate::diagnostics::Diagnostic;
use crate::diagnostics::count_of;
use crate::text::element::{self, Element, Elements};
use crate::text::lexer::{Tok, Token};
use crate::{Bytes, Constant, Context, DType, Symbol, Type};

/// The most bytes that one repeated element may fill; larger tensors come from a weights file.
const LARGEST_FILL: u64 = 1 << 28;

impl Parser<'_, '_> {
    /// A constant, behind the word `const`.
    pub(super) fn constant(&mut self) -> Parsed<Arc<Constant>> {
        self.expect(Tok::LParen)?;
        let start = self.token.start as usize;
        let ty = self.ty()?;
        let span = start..self.last_end as usize;
        let Some((dtype, shape)) = self.cx.terms().static_tensor(ty) else {
            let message = "the type of a constant is a tensor of integer dimensions";
            return Err(self.error_at(span, message, "not a static tensor type"));
        };
        let count = shape
            .iter()
            .try_fold(1u64, |count, &extent| count.checked_mul(u64::try_from(extent).ok()?));
        let Some(count) = count.filter(|&count| dtype.bytes(count).is_some()) else {
            return Err(self.error_at(span, "no tensor has this size", "negative or too large"));
        };
        self.expect(Tok::Comma)?;
        if self.at(Tok::Global) {
            let token = self.bump();
            self.expect(Tok::RParen)?;
            return self.external_constant(token, ty);
        }
        if self.at(Tok::Ellipsis) {
            let diagnostic = Diagnostic::error("the elements of this constant were left out")
                .label(range(self.token), "no elements here")
                .help("print the module with a weights file, or with all elements");
            return Err(self.report(diagnostic));
        }
        if !element::is_known(dtype) {
            return Err(self.error_at(span, "elements of this type are not known", ""));
        }
        let bytes = self.elements(dtype, count)?;
        let name = match self.eat(Tok::Comma) {
            true => {
                let token = self.expect(Tok::Str)?;
                let name = self.unquoted(token, 0)?;
                self.cx.symbol(&name)
            }
            false => Symbol(0),
        };
        self.expect(Tok::RParen)?;
        Ok(Arc::new(Constant { ty, name, data: Bytes::new(bytes) }))
    }

    /// A list of all elements, or one that stands for all.
    fn elements(&mut self, dtype: DType, count: u64) -> Parsed<Vec<u8>> {
        let mut elements = Elements::new(dtype);
        let open = self.token;
        if !self.eat(Tok::LBracket) {
            self.element(&mut elements)?;
            if dtype.bytes(count).is_none_or(|bytes| bytes > LARGEST_FILL) {
                let message = "this constant is too large to be written with one element";
                return Err(self.error_at(range(open), message, "fills the whole tensor"));
            }
            elements.fill(count as usize);
            return Ok(if count == 0 { Vec::new() } else { elements.finish() });
        }
        while !self.at(Tok::RBracket) {
            self.element(&mut elements)?;
            if !self.eat(Tok::Comma) && !self.at(Tok::RBracket) {
                return Err(self.expected("`,` or `]`"));
            }
        }
        let close = self.bump();
        let found = elements.count();
        if found as u64 != count {
            let span = open.start as usize..close.end as usize;
            let message = format!(
                "this type has {}, but there are {found}",
                count_of(count as usize, "element")
            );
            return Err(self.error_at(span, message, count_of(found, "element")));
        }
        Ok(elements.finish())
    }

    fn element(&mut self, elements: &mut Elements) -> Parsed<()> {
        let is_negative = self.eat(Tok::Minus);
        let token = self.token;
        let element = match (token.tok, self.slice(token)) {
            (Tok::Int | Tok::Float, digits) => Element::Number(is_negative, digits),
            (Tok::Word, "inf") => Element::Infinity(is_negative),
            (Tok::Word, "nan") if !is_negative => Element::Nan,
            (Tok::Word, "true") if !is_negative => Element::Bool(true),
            (Tok::Word, "false") if !is_negative => Element::Bool(false),
            _ => return Err(self.expected("an element")),
        };
        self.bump();
        let element = match element {
            Element::Nan => self.nan_bits()?.map_or(Element::Nan, Element::NanBits),
            element => element,
        };
        elements.push(element).ok_or_else(|| self.wrong_number(token, "a value of this dtype"))
    }

    /// A constant of the weights file; one that was read before is shared.
    fn external_constant(&mut self, token: Token, ty: Type) -> Parsed<Arc<Constant>> {
        let key = self.unquoted(token, 1)?;
        let constant = match self.constants.entry(key.clone().into_owned()) {
            Entry::Occupied(known) => known.get().clone(),
            Entry::Vacant(slot) => {
                let file = self.weights_file.as_ref();
                match self.weights.load(file, &key) {
                    Ok(mut constant) => {
                        constant.name = self.cx.symbol(&key);
                        slot.insert(Arc::new(constant)).clone()
                    }
                    Err(cause) => {
                        let message = format!("weight `{key}` cannot be read: {cause}");
                        return Err(self.error_at(range(token), message, "this weight"));
                    }
                }
            }
        };
        if constant.ty != ty {
            let found = crate::text::print_type(self.cx, constant.ty);
            let wanted = crate::text::print_type(self.cx, ty);
            let message = format!("weight `{key}` is {found}, not {wanted}");
            return Err(self.error_at(range(token), message, format!("this is {found}")));
        }
        Ok(constant)
    }
}
