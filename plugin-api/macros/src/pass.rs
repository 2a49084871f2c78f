//! `#[pass]`: the manifest record of a pass and its entry in the plugin's list.

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::parse::{Parse, ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{
    Error, Expr, ExprArray, ExprLit, FnArg, Ident, ItemFn, Lit, LitStr, Meta, Result, ReturnType,
    Token, Type,
};

use crate::record::{Record, note};

const KEYS: &str = "expected one of: name, aliases, opt_level, phase, from, until, requires, after, \
                    before, establishes, destroys, preserves, asks, idempotent, tolerance";

pub(crate) fn expand(attributes: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let attributes = Punctuated::<Attribute, Token![,]>::parse_terminated.parse2(attributes)?;
    let function: ItemFn = syn::parse2(item)?;
    let (kind, options) = signature(&function)?;

    let mut record = Record::default();
    let mut name = None;
    for (index, attribute) in attributes.iter().enumerate() {
        let key = attribute.key();
        if attributes.iter().take(index).any(|earlier| earlier.key() == key) {
            return Err(Error::new_spanned(key, format!("`{key}` is given twice")));
        }
        match attribute {
            Attribute::Text(key, value) if key == "name" => {
                check_name(value)?;
                name = Some(value.clone());
                record.text("pass", &value.value());
            }
            Attribute::Text(key, value) => record.text(&key.to_string(), &value.value()),
            Attribute::Texts(key, values) => record.texts(&key.to_string(), values),
            Attribute::Raw(key, json) => record.raw(&key.to_string(), json),
        }
    }
    let Some(name) = name else {
        return Err(Error::new(
            Span::call_site(),
            "a pass has a name: #[pass(name = \"vendor.PassName\")]",
        ));
    };
    record.text("kind", kind.text());
    record.text("doc", &doc_of(&function.attrs));
    if let Some(header) = header() {
        record.text("header", &header);
    }
    let manifest = record.manifest(options);
    let note = note(&quote!(MANIFEST));
    let body = kind.body(&function.sig.ident, options);
    Ok(quote! {
        #function

        const _: () = {
            #manifest
            #note

            #[::tenon_plugin_api::abi::plugin::linkme::distributed_slice(
                ::tenon_plugin_api::abi::plugin::PASSES
            )]
            #[linkme(crate = ::tenon_plugin_api::abi::plugin::linkme)]
            static PASS: ::tenon_plugin_api::abi::plugin::PassItem =
                ::tenon_plugin_api::abi::plugin::PassItem {
                    name: #name,
                    manifest: MANIFEST,
                    body: #body,
                };
        };
    })
}

/// What the signature says: what the pass runs on, and the type of its options where it has some.
fn signature(function: &ItemFn) -> Result<(Kind, Option<&Type>)> {
    let message = "a pass is fn(Module, &PassContext) -> Result<Module>, or fn(Function, &Module, \
                   &PassContext) -> Result<Function>, or the latter with PrimFunc; its options, where it has \
                   some, come last";
    let sig = &function.sig;
    let wrong = || Error::new_spanned(sig, message);
    let is_plain =
        sig.asyncness.is_none() && sig.unsafety.is_none() && sig.generics.params.is_empty();
    if !is_plain {
        return Err(Error::new_spanned(
            sig,
            "a pass is a plain function: neither async, unsafe nor generic",
        ));
    }
    if !returns_result(&sig.output) {
        return Err(wrong());
    }
    let mut inputs = sig.inputs.iter().map(|input| match input {
        FnArg::Typed(typed) => Ok(&*typed.ty),
        FnArg::Receiver(_) => Err(wrong()),
    });
    let unit = match inputs.next().transpose()? {
        Some(Type::Path(path)) => path.path.segments.last(),
        _ => None,
    };
    let kind = match unit.map(|segment| segment.ident.to_string()).as_deref() {
        Some("Module") => Kind::Module,
        Some("Function") => Kind::Function,
        Some("PrimFunc") => Kind::Prim,
        _ => return Err(wrong()),
    };
    let references = if matches!(kind, Kind::Module) { 1 } else { 2 };
    for _ in 0..references {
        let Some(Type::Reference(_)) = inputs.next().transpose()? else { return Err(wrong()) };
    }
    let options = inputs.next().transpose()?;
    if let Some(options @ Type::Reference(_)) = options {
        return Err(Error::new_spanned(options, "options are given by value"));
    }
    match inputs.next() {
        None => Ok((kind, options)),
        Some(_) => Err(wrong()),
    }
}

/// What the pass runs on.
enum Kind {
    Module,
    Function,
    Prim,
}

impl Kind {
    fn text(&self) -> &'static str {
        match self {
            Kind::Module => "module",
            Kind::Function => "function",
            Kind::Prim => "prim",
        }
    }

    /// The item that the plugin calls; it reads the options of the run first.
    fn body(&self, ident: &Ident, options: Option<&Type>) -> TokenStream {
        let body = quote!(::tenon_plugin_api::abi::plugin::PassBody);
        let options =
            options.map(|ty| quote!(, <#ty as ::tenon_plugin_api::pass::Options>::of_run(cx)?));
        match self {
            Kind::Module => quote!(#body::Module(|module, cx| #ident(module, cx #options))),
            Kind::Function => {
                quote!(#body::Function(|func, module, cx| #ident(func, module, cx #options)))
            }
            Kind::Prim => quote!(#body::Function(|func, module, cx| {
                #ident(func.into(), module, cx #options).map(::core::convert::Into::into)
            })),
        }
    }
}

pub(crate) fn returns_result(output: &ReturnType) -> bool {
    let ReturnType::Type(_, ty) = output else { return false };
    let Type::Path(path) = &**ty else { return false };
    path.path.segments.last().is_some_and(|last| last.ident == "Result")
}

/// A name stands in pipelines, between commas and in front of braces.
pub(crate) fn check_name(name: &LitStr) -> Result<()> {
    let text = name.value();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.' || c == '-';
    match !text.is_empty() && text.chars().all(is_plain) {
        true => Ok(()),
        false => Err(Error::new_spanned(
            name,
            "a pass is called vendor.PassName, of letters, digits, `_`, `-` and `.`",
        )),
    }
}

/// One `key = value` of the attribute.
enum Attribute {
    Text(Ident, LitStr),
    Texts(Ident, Vec<String>),
    /// A value that is JSON already.
    Raw(Ident, String),
}

impl Attribute {
    fn key(&self) -> &Ident {
        match self {
            Attribute::Text(key, _) | Attribute::Texts(key, _) | Attribute::Raw(key, _) => key,
        }
    }
}

impl Parse for Attribute {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let key: Ident = input.parse()?;
        match key.to_string().as_str() {
            "name" | "phase" | "from" | "until" => {
                input.parse::<Token![=]>()?;
                Ok(Attribute::Text(key, input.parse()?))
            }
            "aliases" | "requires" | "after" | "before" | "establishes" | "destroys"
            | "preserves" | "asks" => {
                input.parse::<Token![=]>()?;
                let values = texts(&input.parse()?)?;
                Ok(Attribute::Texts(key, values))
            }
            "opt_level" => {
                input.parse::<Token![=]>()?;
                let level: syn::LitInt = input.parse()?;
                let level: u8 = level.base10_parse()?;
                Ok(Attribute::Raw(key, level.to_string()))
            }
            "idempotent" => {
                input.parse::<Token![=]>()?;
                let value: syn::LitBool = input.parse()?;
                Ok(Attribute::Raw(key, value.value.to_string()))
            }
            "tolerance" => {
                input.parse::<Token![=]>()?;
                let value: syn::LitFloat = input.parse()?;
                let part: f64 = value.base10_parse()?;
                Ok(Attribute::Raw(key, part.to_string()))
            }
            _ => Err(Error::new_spanned(&key, KEYS)),
        }
    }
}

pub(crate) fn texts(array: &ExprArray) -> Result<Vec<String>> {
    array
        .elems
        .iter()
        .map(|element| match element {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Ok(text.value()),
            other => Err(Error::new_spanned(other, "expected a string")),
        })
        .collect()
}

/// What the file says of itself at its top: how the pass works, before and after.
pub(crate) fn header() -> Option<String> {
    let text = std::fs::read_to_string(proc_macro::Span::call_site().local_file()?).ok()?;
    let lines: Vec<&str> = text
        .lines()
        .map_while(|line| line.strip_prefix("//!"))
        .map(|line| line.strip_prefix(' ').unwrap_or(line))
        .collect();
    Some(lines.join("\n")).filter(|text| !text.is_empty())
}

/// The doc comment of an item, without the space that starts each line.
pub(crate) fn doc_of(attributes: &[syn::Attribute]) -> String {
    let lines: Vec<String> = attributes
        .iter()
        .filter_map(|attribute| match &attribute.meta {
            Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
                Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
                _ => None,
            },
            _ => None,
        })
        .map(|line| line.strip_prefix(' ').unwrap_or(&line).to_owned())
        .collect();
    lines.join("\n").trim().to_owned()
}
