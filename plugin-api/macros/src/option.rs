//! One option of a pass, as it is declared.

use syn::ext::IdentExt;
use syn::punctuated::Punctuated;
use syn::{
    Error, Expr, ExprLit, Field, GenericArgument, Ident, Lit, MetaNameValue, PathArguments, Result,
    Token, Type,
};

use crate::pass::doc_of;
use crate::record::{Record, quoted};

const TYPES: &str = "an option is an i64, u64, usize, f64, bool, String or Symbol (an operator), or a Vec of one of these";

const KEYS: &str = "expected one of: default, min, max, one_of";

/// An option: `#[option(default = value, min = value, max = value, one_of = […])] name: Type`.
pub(crate) struct PassOption {
    name: Ident,
    scalar: Scalar,
    /// Whether it is not negative, by its type.
    is_natural: bool,
    is_list: bool,
    entries: Vec<MetaNameValue>,
    help: String,
}

/// The type of a single value.
#[derive(Clone, Copy, PartialEq)]
enum Scalar {
    Int,
    Float,
    Bool,
    Str,
}

impl PassOption {
    /// The option that a field of the author's struct holds.
    pub(crate) fn of_field(field: &Field) -> Result<Self> {
        let Some(name) = field.ident.clone() else {
            return Err(Error::new_spanned(field, "an option has a name"));
        };
        let (element, is_list) = match element_of(&field.ty) {
            Some(element) => (element, true),
            None => (&field.ty, false),
        };
        let (scalar, is_natural) = Scalar::of(element)?;
        let mut attributes = field.attrs.iter().filter(|each| each.path().is_ident("option"));
        let Some(attribute) = attributes.next() else {
            let message = "an option has a default: #[option(default = …)]";
            return Err(Error::new_spanned(name, message));
        };
        if let Some(second) = attributes.next() {
            return Err(Error::new_spanned(
                second,
                "what there is to say stands in one #[option(…)]",
            ));
        }
        let entries = attribute
            .parse_args_with(Punctuated::<MetaNameValue, Token![,]>::parse_terminated)?
            .into_iter()
            .collect();
        let help = doc_of(&field.attrs).replace('\n', " ");
        Ok(Self { name, scalar, is_natural, is_list, entries, help })
    }

    /// The name of the option that a field holds.
    pub(crate) fn name_of(field: &Ident) -> String {
        field.unraw().to_string()
    }

    /// The option's object in the manifest.
    pub(crate) fn to_json(&self) -> Result<String> {
        let mut record = Record::default();
        record.text("name", &Self::name_of(&self.name));
        let scalar = match self.scalar {
            Scalar::Int => "int",
            Scalar::Float => "float",
            Scalar::Bool => "bool",
            Scalar::Str => "str",
        };
        record.text("type", &if self.is_list { format!("[{scalar}]") } else { scalar.to_owned() });
        let mut has_default = false;
        let mut has_min = false;
        for (index, entry) in self.entries.iter().enumerate() {
            let key = entry.path.require_ident()?;
            if self.entries[..index].iter().any(|earlier| earlier.path.is_ident(key)) {
                return Err(Error::new_spanned(key, format!("`{key}` is given twice")));
            }
            let key = key.to_string();
            has_min |= key == "min";
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
                _ => return Err(Error::new_spanned(&entry.path, KEYS)),
            };
            record.raw(&key, &json);
        }
        if self.is_natural && !has_min {
            record.raw("min", "0");
        }
        if !self.help.is_empty() {
            record.text("help", &self.help);
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
        let json = self.literal(value)?;
        match self.is_natural && json.starts_with('-') {
            true => Err(Error::new_spanned(value, "a natural number is not negative")),
            false => Ok(json),
        }
    }

    fn literal(&self, value: &Expr) -> Result<String> {
        match (self.scalar, value) {
            (Scalar::Str, value) => text(value),
            (Scalar::Bool, Expr::Lit(ExprLit { lit: Lit::Bool(truth), .. })) => {
                Ok(truth.value.to_string())
            }
            (Scalar::Int | Scalar::Float, Expr::Unary(unary))
                if matches!(unary.op, syn::UnOp::Neg(_)) =>
            {
                Ok(format!("-{}", self.literal(&unary.expr)?))
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

impl Scalar {
    /// What the manifest calls a type, and whether it has no negative values.
    fn of(ty: &Type) -> Result<(Self, bool)> {
        let Type::Path(path) = ty else { return Err(Error::new_spanned(ty, TYPES)) };
        let name = path.path.segments.last().map(|segment| segment.ident.to_string());
        match name.as_deref() {
            Some("i64") => Ok((Scalar::Int, false)),
            Some("u64" | "usize") => Ok((Scalar::Int, true)),
            Some("f64") => Ok((Scalar::Float, false)),
            Some("bool") => Ok((Scalar::Bool, false)),
            Some("String" | "Symbol") => Ok((Scalar::Str, false)),
            _ => Err(Error::new_spanned(ty, TYPES)),
        }
    }
}

/// `T` of `Vec<T>`.
fn element_of(ty: &Type) -> Option<&Type> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last().filter(|segment| segment.ident == "Vec")?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    match arguments.args.first() {
        Some(GenericArgument::Type(element)) => Some(element),
        _ => None,
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
