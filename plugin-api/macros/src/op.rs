//! `#[op]`: what an operator says of itself, its manifest record, and its entry in the plugin's list.

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::parse::{Parse, ParseStream, Parser};
use syn::{
    Error, Expr, ExprLit, ExprRange, Fields, Ident, ItemStruct, Lit, LitStr, RangeLimits, Result,
    Token,
};

use crate::attr::Attr;
use crate::pass::{check_name, doc_of, header, texts};
use crate::record::{Record, note, quoted};

const KEYS: &str = "expected one of: name, aliases, args, effect, pattern";
const EFFECTS: [(&str, &str); 4] =
    [("none", "None"), ("shares", "Shares"), ("makes", "Makes"), ("any", "Any")];
const PATTERNS: [(&str, &str); 7] = [
    ("elementwise", "Elementwise"),
    ("broadcast", "Broadcast"),
    ("injective", "Injective"),
    ("reduction", "Reduction"),
    ("out_fusable", "OutFusable"),
    ("tuple", "Tuple"),
    ("opaque", "Opaque"),
];

pub(crate) fn expand(attributes: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let keys = Keys::parse.parse2(attributes)?;
    let mut item: ItemStruct = syn::parse2(item)?;
    if !item.generics.params.is_empty() {
        return Err(Error::new_spanned(
            &item.generics,
            "an operator is a struct without parameters",
        ));
    }
    let attrs: Vec<Attr> = match &mut item.fields {
        Fields::Named(fields) => fields.named.iter_mut().map(Attr::take).collect::<Result<_>>()?,
        Fields::Unit => Vec::new(),
        Fields::Unnamed(fields) => {
            return Err(Error::new_spanned(fields, "an attribute has a name: `axis: i64`"));
        }
    };
    let doc = doc_of(&item.attrs);
    let summary = doc.lines().next().unwrap_or("").trim_end_matches('.').to_owned();
    if summary.is_empty() {
        return Err(Error::new_spanned(
            &item.ident,
            "an operator says in a doc comment what it is",
        ));
    }
    let json = keys.record(&attrs, &doc);

    let (ident, note) = (&item.ident, note(&quote!(#json)));
    let (name, aliases) = (&keys.name, &keys.aliases);
    let (effect, pattern) = (variant(&EFFECTS, &keys.effect), variant(&PATTERNS, &keys.pattern));
    let (min, max) = keys.args;
    let max = match max {
        Some(max) => quote!(::core::option::Option::Some(#max)),
        None => quote!(::core::option::Option::None),
    };
    let definitions = attrs.iter().map(Attr::definition);
    let reads = attrs.iter().map(Attr::read);
    let checks = attrs.iter().map(Attr::check);
    Ok(quote! {
        #item

        impl ::tenon_plugin_api::op::Schema for #ident {
            const SCHEMA: ::tenon_plugin_api::op::OpSchema = ::tenon_plugin_api::op::OpSchema {
                name: #name,
                aliases: &[#(#aliases),*],
                summary: #summary,
                args: ::tenon_plugin_api::op::Arity { min: #min, max: #max },
                attrs: &[#(#definitions),*],
                effect: ::tenon_plugin_api::op::OpEffect::#effect,
                pattern: ::tenon_plugin_api::op::OpPattern::#pattern,
            };

            #[allow(unused_variables, reason = "an operator may have no attributes")]
            fn from_attrs(
                attrs: ::tenon_plugin_api::op::OpAttrs<'_>,
            ) -> ::tenon_plugin_api::op::Result<Self> {
                ::core::result::Result::Ok(Self { #(#reads),* })
            }
        }

        const _: () = {
            #(#checks)*

            #note

            #[::tenon_plugin_api::abi::plugin::linkme::distributed_slice(
                ::tenon_plugin_api::abi::plugin::OPERATORS
            )]
            #[linkme(crate = ::tenon_plugin_api::abi::plugin::linkme)]
            static OPERATOR: ::tenon_plugin_api::abi::plugin::OpItem =
                ::tenon_plugin_api::abi::plugin::OpItem::of::<#ident>(
                    &<#ident as ::tenon_plugin_api::op::Schema>::SCHEMA,
                    #json,
                );
        };
    })
}

fn variant(all: &[(&str, &str)], name: &str) -> Ident {
    let found = all.iter().find(|(text, _)| *text == name).map_or("Opaque", |(_, variant)| variant);
    Ident::new(found, Span::call_site())
}

/// The attribute's `key = value` pairs.
struct Keys {
    name: LitStr,
    aliases: Vec<String>,
    args: (usize, Option<usize>),
    effect: String,
    pattern: String,
}

impl Parse for Keys {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let (mut name, mut aliases, mut args) = (None, Vec::new(), (1, Some(1)));
        let (mut effect, mut pattern) = ("none".to_owned(), "opaque".to_owned());
        let mut seen: Vec<Ident> = Vec::new();
        while !input.is_empty() {
            let key: Ident = input.parse()?;
            if seen.contains(&key) {
                return Err(Error::new_spanned(&key, format!("`{key}` is given twice")));
            }
            input.parse::<Token![=]>()?;
            match key.to_string().as_str() {
                "name" => {
                    let value: LitStr = input.parse()?;
                    check_name(&value).map_err(|_| {
                        Error::new_spanned(
                            &value,
                            "an operator is called vendor.name, of letters, digits, `_`, `-` and `.`",
                        )
                    })?;
                    name = Some(value);
                }
                "aliases" => aliases = texts(&input.parse()?)?,
                "args" => args = arity(&input.parse()?)?,
                "effect" => effect = one_of(&input.parse()?, &EFFECTS)?,
                "pattern" => pattern = one_of(&input.parse()?, &PATTERNS)?,
                _ => return Err(Error::new_spanned(&key, KEYS)),
            }
            seen.push(key);
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        let missing = "an operator has a name: #[op(name = \"vendor.name\")]";
        let name = name.ok_or_else(|| Error::new(Span::call_site(), missing))?;
        Ok(Self { name, aliases, args, effect, pattern })
    }
}

impl Keys {
    /// The manifest record.
    fn record(&self, attrs: &[Attr], doc: &str) -> String {
        let mut record = Record::default();
        record.text("op", &self.name.value());
        record.texts("aliases", &self.aliases);
        record.raw("min_args", &self.args.0.to_string());
        if let Some(max) = self.args.1 {
            record.raw("max_args", &max.to_string());
        }
        let attrs: Vec<String> = attrs.iter().map(Attr::to_json).collect();
        record.raw("attrs", &format!("[{}]", attrs.join(",")));
        record.text("effect", &self.effect);
        record.text("pattern", &self.pattern);
        record.text("doc", doc);
        if let Some(header) = header() {
            record.text("header", &header);
        }
        record.finish()
    }
}

fn one_of(value: &LitStr, all: &[(&str, &str)]) -> Result<String> {
    let text = value.value();
    match all.iter().any(|(name, _)| *name == text) {
        true => Ok(text),
        false => {
            let names: Vec<String> = all.iter().map(|(name, _)| quoted(name)).collect();
            Err(Error::new_spanned(value, format!("expected one of: {}", names.join(", "))))
        }
    }
}

/// `2`, `0..=1` or `1..`.
fn arity(value: &Expr) -> Result<(usize, Option<usize>)> {
    let number = |value: &Expr| match value {
        Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) => number.base10_parse::<usize>(),
        other => Err(Error::new_spanned(other, "args is a number or a range: 2, 0..=1 or 1..")),
    };
    match value {
        Expr::Range(ExprRange { start: Some(start), end: None, .. }) => Ok((number(start)?, None)),
        Expr::Range(ExprRange {
            start: Some(start),
            limits: RangeLimits::Closed(_),
            end: Some(end),
            ..
        }) => Ok((number(start)?, Some(number(end)?))),
        value => number(value).map(|count| (count, Some(count))),
    }
}
