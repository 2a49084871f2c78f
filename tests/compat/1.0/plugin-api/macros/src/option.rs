//! The options of a pass, as `#[pass]` declares them.

use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{
    Error, Expr, ExprLit, Ident, Lit, MetaNameValue, Result, Token, bracketed, parenthesized,
};

use crate::record::{Record, quoted};

const FORM: &str = "an option is name(type, default = value, min = value, max = value, one_of = [\"…\"], \
                    help = \"…\") with type int, float, bool or str, or a list of these such as [int]";

/// `name(type, default = value, min = value, max = value, one_of = […], help = "…")`.
pub(crate) struct PassOption {
    name: Ident,
    scalar: Scalar,
    is_list: bool,
    entries: Vec<MetaNameValue>,
}

/// The type of a single value.
#[derive(Clone, Copy, PartialEq)]
enum Scalar {
    Int,
    Float,
    Bool,
    Str,
}

impl Parse for PassOption {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let name: Ident = input.parse()?;
        let content;
        parenthesized!(content in input);
        let is_list = content.peek(syn::token::Bracket);
        let scalar = match is_list {
            true => {
                let element;
                bracketed!(element in content);
                element.parse()?
            }
            false => content.parse()?,
        };
        if !content.is_empty() {
            content.parse::<Token![,]>()?;
        }
        let entries = Punctuated::<MetaNameValue, Token![,]>::parse_terminated(&content)?;
        Ok(Self { name, scalar, is_list, entries: entries.into_iter().collect() })
    }
}

impl Parse for Scalar {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let name: Ident = input.parse().map_err(|error| Error::new(error.span(), FORM))?;
        match name.to_string().as_str() {
            "int" => Ok(Scalar::Int),
            "float" => Ok(Scalar::Float),
            "bool" => Ok(Scalar::Bool),
            "str" => Ok(Scalar::Str),
            _ => Err(Error::new_spanned(name, FORM)),
        }
    }
}

impl PassOption {
    /// The option's object in the manifest.
    pub(crate) fn to_json(&self) -> Result<String> {
        let mut record = Record::default();
        record.text("name", &self.name.to_string());
        let scalar = match self.scalar {
            Scalar::Int => "int",
            Scalar::Float => "float",
            Scalar::Bool => "bool",
            Scalar::Str => "str",
        };
        record.text("type", &if self.is_list { format!("[{scalar}]") } else { scalar.to_owned() });
        let mut has_default = false;
        for entry in &self.entries {
            let key = entry.path.require_ident()?.to_string();
            let json = match key.as_str() {
                "default" => {
                    has_default = true;
                    self.default(&entry.value)?
                }
                "min" | "max" if matches!(self.scalar, Scalar::Int | Scalar::Float) => {
                    self.scalar(&entry.value)?
                }
                "min" | "max" => {
                    return Err(Error::new_spanned(&entry.path, "only numbers have a range"));
                }
                "one_of" if self.scalar == Scalar::Str => {
                    list(&entry.value, |item| self.scalar(item))?
                }
                "one_of" => {
                    return Err(Error::new_spanned(&entry.path, "only a str is one of several"));
                }
                "help" => text(&entry.value)?,
                _ => return Err(Error::new_spanned(&entry.path, FORM)),
            };
            record.raw(&key, &json);
        }
        match has_default {
            true => Ok(record.finish()),
            false => Err(Error::new_spanned(&self.name, "an option has a default")),
        }
    }

    fn default(&self, value: &Expr) -> Result<String> {
        match self.is_list {
            true => list(value, |item| self.scalar(item)),
            false => self.scalar(value),
        }
    }

    /// A literal of the option's type, as JSON.
    fn scalar(&self, value: &Expr) -> Result<String> {
        match (self.scalar, value) {
            (Scalar::Str, value) => text(value),
            (Scalar::Bool, Expr::Lit(ExprLit { lit: Lit::Bool(truth), .. })) => {
                Ok(truth.value.to_string())
            }
            (Scalar::Int | Scalar::Float, Expr::Unary(unary))
                if matches!(unary.op, syn::UnOp::Neg(_)) =>
            {
                Ok(format!("-{}", self.scalar(&unary.expr)?))
            }
            (Scalar::Int | Scalar::Float, Expr::Lit(ExprLit { lit: Lit::Int(number), .. })) => {
                Ok(number.base10_digits().to_owned())
            }
            (Scalar::Float, Expr::Lit(ExprLit { lit: Lit::Float(number), .. })) => {
                json_float(number)
            }
            (Scalar::Int, other) => Err(Error::new_spanned(other, "expected an integer")),
            (Scalar::Float, other) => Err(Error::new_spanned(other, "expected a number")),
            (Scalar::Bool, other) => Err(Error::new_spanned(other, "expected true or false")),
        }
    }
}

/// Rust writes `1.` and `1_0.0`, JSON does not.
fn json_float(number: &syn::LitFloat) -> Result<String> {
    let value: f64 = number.base10_parse()?;
    Ok(format!("{value:?}"))
}

fn list(value: &Expr, item: impl Fn(&Expr) -> Result<String>) -> Result<String> {
    let Expr::Array(array) = value else {
        return Err(Error::new_spanned(value, "expected a list in brackets"));
    };
    let items: Vec<String> = array.elems.iter().map(item).collect::<Result<_>>()?;
    Ok(format!("[{}]", items.join(",")))
}

fn text(value: &Expr) -> Result<String> {
    match value {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Ok(quoted(&text.value())),
        other => Err(Error::new_spanned(other, "expected a text in quotes")),
    }
}
