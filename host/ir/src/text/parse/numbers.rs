//! Numbers: integers and floats of attributes, and small counts.

use std::str::FromStr;

use super::Parser;
use super::cursor::{Parsed, range};
use crate::text::lexer::{Tok, Token};
use crate::{Context, DType, Term, Type};

/// Integers below this have their terms at hand.
pub(super) const SMALL: usize = 1024;

impl Parser<'_, '_> {
    /// Reads the token when it is a small integer, whose term is at hand.
    pub(super) fn small_int(&mut self, token: Token) -> Option<Term> {
        let text = self.slice(token).as_bytes();
        if text.len() > 3 || (text.len() > 1 && text[0] == b'0') {
            return None;
        }
        let mut value = 0;
        for byte in text {
            value = 10 * value + byte.checked_sub(b'0').filter(|&digit| digit < 10)? as usize;
        }
        self.bump();
        Some(self.int(value as i64))
    }

    /// The term of an integer.
    pub(super) fn int(&mut self, value: i64) -> Term {
        let slot = usize::try_from(value).ok().and_then(|value| self.small_ints.get_mut(value));
        match slot {
            Some(known) if !known.is_none() => *known,
            Some(unknown) => {
                *unknown = self.cx.int(value);
                *unknown
            }
            None => self.cx.int(value),
        }
    }

    /// The scalar type of a dtype.
    pub(super) fn scalar_type(&mut self, dtype: DType) -> Type {
        match self.scalar_types.get_mut(dtype.0 as usize) {
            Some(Some(ty)) => *ty,
            Some(unknown) => *unknown.insert(self.cx.scalar_type(dtype)),
            None => self.cx.scalar_type(dtype),
        }
    }

    /// A number without a sign, as a term.
    pub(super) fn number(&mut self) -> Parsed<Term> {
        self.signed_number(false)
    }

    /// A number after its sign, as a term.
    pub(super) fn signed_number(&mut self, is_negative: bool) -> Parsed<Term> {
        let token = self.token;
        let text = self.slice(token);
        match token.tok {
            Tok::Int => match integer(text, is_negative) {
                Some(value) => {
                    self.bump();
                    Ok(self.cx.int(value))
                }
                None => Err(self.wrong_number(token, "a 64-bit integer")),
            },
            _ => Ok(self.cx.float(self.float(is_negative)?)),
        }
    }

    /// A float after its sign: digits, `inf`, `nan` or `nan(0x…)`.
    pub(super) fn float(&mut self, is_negative: bool) -> Parsed<f64> {
        let token = self.token;
        let sign = if is_negative { -1.0 } else { 1.0 };
        match (token.tok, self.slice(token)) {
            (Tok::Word, "inf") => {
                self.bump();
                Ok(sign * f64::INFINITY)
            }
            (Tok::Word, "nan") if !is_negative => {
                self.bump();
                let bits = self.nan_bits()?;
                Ok(bits.map_or(f64::NAN, f64::from_bits))
            }
            (Tok::Float | Tok::Int, text) => match text.parse::<f64>() {
                Ok(value) => {
                    self.bump();
                    Ok(sign * value)
                }
                Err(_) => Err(self.wrong_number(token, "a number")),
            },
            _ => Err(self.expected("a number")),
        }
    }

    /// The bits in parentheses after `nan`, if they are there.
    pub(super) fn nan_bits(&mut self) -> Parsed<Option<u64>> {
        if !self.eat(Tok::LParen) {
            return Ok(None);
        }
        let bits = self.small()?;
        self.expect(Tok::RParen)?;
        Ok(Some(bits))
    }

    /// An unsigned integer, decimal or `0x…`, that fits `T`.
    pub(super) fn small<T: TryFrom<u64> + FromStr>(&mut self) -> Parsed<T> {
        let token = self.token;
        if !self.at(Tok::Int) {
            return Err(self.expected("an integer"));
        }
        let text = self.slice(token);
        let value = match text.strip_prefix("0x") {
            Some(digits) => {
                u64::from_str_radix(digits, 16).ok().and_then(|bits| bits.try_into().ok())
            }
            None => text.parse().ok(),
        };
        match value {
            Some(value) => {
                self.bump();
                Ok(value)
            }
            None => {
                let what = format!("an integer of {} bits", 8 * size_of::<T>());
                Err(self.wrong_number(token, &what))
            }
        }
    }

    pub(super) fn wrong_number(&mut self, token: Token, what: &str) -> super::cursor::Halt {
        let message = format!("{} is not {what}", self.described(token));
        self.error_at(range(token), message, format!("not {what}"))
    }
}

/// The value of decimal digits after a sign.
pub(super) fn integer(digits: &str, is_negative: bool) -> Option<i64> {
    let value: u64 = digits.parse().ok()?;
    match is_negative {
        true => 0i64.checked_sub_unsigned(value),
        false => value.try_into().ok(),
    }
}
