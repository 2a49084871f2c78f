//! The attributes of an operator, as the fields of its struct declare them.

use proc_macro2::TokenStream;
use quote::quote;
use syn::punctuated::Punctuated;
use syn::{
    Error, Expr, ExprLit, Field, GenericArgument, Ident, Lit, MetaNameValue, PathArguments, Result,
    Token, Type,
};

use crate::pass::doc_of;
use crate::record::{Record, quoted};

const FORM: &str = "an attribute of a call is an i64, f64, bool, String, Vec<i64>, [i64; N], DType, Layout, Type or Term, \
                    or an Option of one";
const KEYS: &str = "expected #[attr(default = …, min = …, max = …, one_of = […])]";

/// One attribute.
pub(crate) struct Attr {
    ident: Ident,
    ty: Type,
    kind: Kind,
    is_optional: bool,
    default: Option<Value>,
    min: Option<f64>,
    max: Option<f64>,
    one_of: Vec<String>,
    help: String,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Int,
    Float,
    Bool,
    Str,
    Ints,
    Type,
    Any,
}

enum Value {
    Int(i64),
    Float(f64),
    Bool(bool),
    Str(String),
    Ints(Vec<i64>),
}

impl Attr {
    /// What a field declares; its `#[attr]` is taken away.
    pub(crate) fn take(field: &mut Field) -> Result<Self> {
        let ident = field.ident.clone().expect("the fields are named");
        let optional = inside(&field.ty, "Option");
        let is_optional = optional.is_some();
        let kind = Kind::of(optional.unwrap_or(&field.ty))?;
        let mut attr = Self {
            help: doc_of(&field.attrs).replace('\n', " ").trim_end_matches('.').to_owned(),
            ty: field.ty.clone(),
            ident,
            kind,
            is_optional,
            default: None,
            min: None,
            max: None,
            one_of: Vec::new(),
        };
        if attr.help.is_empty() {
            return Err(Error::new_spanned(
                &attr.ident,
                "an attribute says in a doc comment what it means",
            ));
        }
        for given in field.attrs.extract_if(.., |attribute| attribute.path().is_ident("attr")) {
            let entries = given
                .parse_args_with(Punctuated::<MetaNameValue, Token![,]>::parse_terminated)
                .map_err(|_| Error::new_spanned(&given, KEYS))?;
            entries.iter().try_for_each(|entry| attr.set(entry))?;
        }
        match attr.is_optional && attr.default.is_some() {
            true => Err(Error::new_spanned(&attr.ident, "one that may be absent has no default")),
            false => Ok(attr),
        }
    }

    fn set(&mut self, entry: &MetaNameValue) -> Result<()> {
        let value = &entry.value;
        let is_number = matches!(self.kind, Kind::Int | Kind::Float | Kind::Ints);
        if entry.path.is_ident("default") {
            self.default = Some(self.kind.value(value)?);
        } else if entry.path.is_ident("min") && is_number {
            self.min = Some(number(value)?);
        } else if entry.path.is_ident("max") && is_number {
            self.max = Some(number(value)?);
        } else if entry.path.is_ident("one_of") && self.kind == Kind::Str {
            let Expr::Array(array) = value else {
                return Err(Error::new_spanned(value, "expected a list in brackets"));
            };
            self.one_of = array.elems.iter().map(text).collect::<Result<_>>()?;
        } else if entry.path.is_ident("min") || entry.path.is_ident("max") {
            return Err(Error::new_spanned(&entry.path, "only numbers have a range"));
        } else if entry.path.is_ident("one_of") {
            return Err(Error::new_spanned(&entry.path, "only a text is one of several"));
        } else {
            return Err(Error::new_spanned(&entry.path, KEYS));
        }
        Ok(())
    }

    /// Its object in the manifest.
    pub(crate) fn to_json(&self) -> String {
        let mut record = Record::default();
        record.text("name", &self.ident.to_string());
        record.text("kind", self.kind.text());
        match &self.default {
            Some(Value::Int(value)) => record.raw("default", &value.to_string()),
            Some(Value::Float(value)) if value.is_finite() => {
                record.raw("default", &format!("{value:?}"))
            }
            // JSON has no infinity.
            Some(Value::Float(value)) => record.text("default", &value.to_string()),
            Some(Value::Bool(value)) => record.raw("default", &value.to_string()),
            Some(Value::Str(value)) => record.text("default", value),
            Some(Value::Ints(values)) => record.raw("default", &format!("{values:?}")),
            None if self.is_optional => record.raw("optional", "true"),
            None => {}
        }
        let mut bound = |key: &str, bound: Option<f64>| {
            if let Some(bound) = bound {
                record.raw(key, &format!("{bound:?}"));
            }
        };
        bound("min", self.min);
        bound("max", self.max);
        if !self.one_of.is_empty() {
            let texts: Vec<String> = self.one_of.iter().map(|text| quoted(text)).collect();
            record.raw("one_of", &format!("[{}]", texts.join(",")));
        }
        record.text("help", &self.help);
        record.finish()
    }

    /// Its definition in the schema.
    pub(crate) fn definition(&self) -> TokenStream {
        let (name, help, kind) = (self.ident.to_string(), &self.help, self.kind.variant());
        let op = quote!(::tenon_plugin_api::op);
        let default = match &self.default {
            Some(Value::Int(value)) => quote!(Int(#value)),
            Some(Value::Float(value)) if *value == f64::INFINITY => quote!(Float(f64::INFINITY)),
            Some(Value::Float(value)) if *value == f64::NEG_INFINITY => {
                quote!(Float(f64::NEG_INFINITY))
            }
            Some(Value::Float(value)) => quote!(Float(#value)),
            Some(Value::Bool(value)) => quote!(Bool(#value)),
            Some(Value::Str(value)) => quote!(Str(#value)),
            Some(Value::Ints(values)) => quote!(Ints(&[#(#values),*])),
            None if self.is_optional => quote!(Absent),
            None => quote!(Required),
        };
        let bound = |bound: Option<f64>| match bound {
            Some(bound) => quote!(::core::option::Option::Some(#bound)),
            None => quote!(::core::option::Option::None),
        };
        let (min, max, one_of) = (bound(self.min), bound(self.max), &self.one_of);
        quote! {
            #op::AttrDef {
                name: #name,
                kind: #op::AttrKind::#kind,
                default: #op::AttrDefault::#default,
                bounds: #op::AttrBounds { min: #min, max: #max, one_of: &[#(#one_of),*] },
                help: #help,
            }
        }
    }

    /// Reads the field from the attributes of a call.
    pub(crate) fn read(&self) -> TokenStream {
        let (ident, ty, name) = (&self.ident, &self.ty, self.ident.to_string());
        quote!(#ident: <#ty as ::tenon_plugin_api::op::Attribute>::read(attrs, #name)?)
    }

    /// Asserts that the type of the field is the one that it is spelled as.
    pub(crate) fn check(&self) -> TokenStream {
        let (ty, kind) = (&self.ty, self.kind.variant());
        quote! {
            assert!(matches!(
                <#ty as ::tenon_plugin_api::op::Attribute>::KIND,
                ::tenon_plugin_api::op::AttrKind::#kind
            ));
        }
    }
}

impl Kind {
    fn of(ty: &Type) -> Result<Self> {
        let wrong = || Error::new_spanned(ty, FORM);
        if let Type::Array(array) = ty {
            return if is_path(&array.elem, "i64") { Ok(Kind::Ints) } else { Err(wrong()) };
        }
        if inside(ty, "Vec").is_some_and(|element| is_path(element, "i64")) {
            return Ok(Kind::Ints);
        }
        let names = [
            ("i64", Kind::Int),
            ("f64", Kind::Float),
            ("bool", Kind::Bool),
            ("String", Kind::Str),
            ("DType", Kind::Str),
            ("Layout", Kind::Str),
            ("Type", Kind::Type),
            ("Term", Kind::Any),
        ];
        names.iter().find(|(name, _)| is_path(ty, name)).map(|(_, kind)| *kind).ok_or_else(wrong)
    }

    fn text(self) -> &'static str {
        match self {
            Kind::Int => "int",
            Kind::Float => "float",
            Kind::Bool => "bool",
            Kind::Str => "str",
            Kind::Ints => "ints",
            Kind::Type => "type",
            Kind::Any => "any",
        }
    }

    fn variant(self) -> Ident {
        let name = match self {
            Kind::Int => "Int",
            Kind::Float => "Float",
            Kind::Bool => "Bool",
            Kind::Str => "Str",
            Kind::Ints => "Ints",
            Kind::Type => "Type",
            Kind::Any => "Any",
        };
        Ident::new(name, proc_macro2::Span::call_site())
    }

    /// A default of this kind.
    fn value(self, value: &Expr) -> Result<Value> {
        match self {
            Kind::Int => integer(value).map(Value::Int),
            Kind::Float => match value {
                Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) if text.value() == "inf" => {
                    Ok(Value::Float(f64::INFINITY))
                }
                Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) if text.value() == "-inf" => {
                    Ok(Value::Float(f64::NEG_INFINITY))
                }
                value => number(value).map(Value::Float),
            },
            Kind::Bool => match value {
                Expr::Lit(ExprLit { lit: Lit::Bool(truth), .. }) => Ok(Value::Bool(truth.value)),
                other => Err(Error::new_spanned(other, "expected true or false")),
            },
            Kind::Str => text(value).map(Value::Str),
            Kind::Ints => match value {
                Expr::Array(array) => {
                    array.elems.iter().map(integer).collect::<Result<_>>().map(Value::Ints)
                }
                other => Err(Error::new_spanned(other, "expected a list in brackets")),
            },
            Kind::Type | Kind::Any => {
                Err(Error::new_spanned(value, "an attribute of this type has no default"))
            }
        }
    }
}

fn is_path(ty: &Type, name: &str) -> bool {
    let Type::Path(path) = ty else { return false };
    path.path.segments.last().is_some_and(|last| last.ident == name && last.arguments.is_empty())
}

/// The type inside of `Option<…>` or `Vec<…>`.
fn inside<'t>(ty: &'t Type, name: &str) -> Option<&'t Type> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last().filter(|last| last.ident == name)?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    match arguments.args.first() {
        Some(GenericArgument::Type(inner)) => Some(inner),
        _ => None,
    }
}

fn integer(value: &Expr) -> Result<i64> {
    match value {
        Expr::Unary(unary) if matches!(unary.op, syn::UnOp::Neg(_)) => Ok(-integer(&unary.expr)?),
        Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) => number.base10_parse(),
        other => Err(Error::new_spanned(other, "expected an integer")),
    }
}

fn number(value: &Expr) -> Result<f64> {
    match value {
        Expr::Unary(unary) if matches!(unary.op, syn::UnOp::Neg(_)) => Ok(-number(&unary.expr)?),
        Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) => number.base10_parse(),
        Expr::Lit(ExprLit { lit: Lit::Float(number), .. }) => number.base10_parse(),
        other => Err(Error::new_spanned(other, "expected a number")),
    }
}

fn text(value: &Expr) -> Result<String> {
    match value {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Ok(text.value()),
        other => Err(Error::new_spanned(other, "expected a text in quotes")),
    }
}
