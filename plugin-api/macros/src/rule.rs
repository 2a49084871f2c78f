//! `#[rule]`: the manifest record of a rule, and its entry in the plugin's list.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote};
use syn::parse::{Parse, ParseStream, Parser};
use syn::{Error, Expr, FnArg, Ident, ItemFn, LitInt, LitStr, Path, Result, Token, Type};

use crate::pass::{doc_of, texts};
use crate::record::{note, quoted};

const FORM: &str = "a rule is fn(&mut Ask) -> Answer, or fn(&Operator, &mut Ask) -> Answer; what is asked and \
                    answered says its facet";
const KEYS: &str = "expected one of: key, benefit, when, domain, since, until, knobs";

/// The facet of those who schedule programs, which the crate `tenon-schedule` defines.
const SCHEDULE: &str = "schedule";

/// The facet whose name is kept for how a call is computed by integers.
const RESERVED: &str = "quantize";

/// The facets that Tenon defines, and their types.
const FACETS: [(&str, &str); 15] = [
    ("compute", "Compute"),
    ("gradient", "Gradient"),
    ("precision", "NarrowPrecision"),
    ("layout", "FollowLayout"),
    ("simplify", "Simplify"),
    ("approximate", "Approximate"),
    ("canonicalize", "Canonicalize"),
    ("decompose.inference", "DecomposeForInference"),
    ("decompose.training", "DecomposeForTraining"),
    ("import.onnx", "ImportOnnx"),
    ("cost", "CostOf"),
    ("interpreter", "Interpreters"),
    ("intrinsic", "Intrinsics"),
    ("reducer", "Reducers"),
    ("view", "AsView"),
];

pub(crate) fn expand(attributes: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let keys = Keys::parse.parse2(attributes)?;
    let function: ItemFn = syn::parse2(item)?;
    let op = signature(&function)?;
    let names = match (keys.names.is_empty(), &op) {
        (false, _) => keys.names.iter().map(|name| quote!(#name)).collect(),
        (true, Some(op)) => vec![quote!(<#op as ::tenon_plugin_api::op::Schema>::SCHEMA.name)],
        (true, None) => {
            let text = "a rule is about something: `key = \"vendor.name\"`, or the operator as its first parameter";
            return Err(Error::new(Span::call_site(), text));
        }
    };
    let (facet, ident) = (&keys.facet, &function.sig.ident);
    let guard = keys.when.as_ref().map(|when| {
        quote! { if !(#when)(&ask) { return ::core::result::Result::Ok(::core::option::Option::None); } }
    });
    let call = match &op {
        Some(op) => quote!(#ident(&::tenon_plugin_api::rule::op_of::<#op>(&ask)?, &mut ask)),
        None => quote!(#ident(&mut ask)),
    };
    let apply = quote! {
        fn apply(
            question: ::tenon_plugin_api::rule::Question<'_>,
        ) -> ::tenon_plugin_api::pass::Result<
            ::core::option::Option<::tenon_plugin_api::rule::Reply>,
        > {
            let mut ask = <#facet as ::tenon_plugin_api::rule::Facet>::ask(question)?;
            if !<#facet as ::tenon_plugin_api::rule::Facet>::concerns(&ask) {
                return ::core::result::Result::Ok(::core::option::Option::None);
            }
            #guard
            let answer = ::tenon_plugin_api::rule::Answer::<
                <#facet as ::tenon_plugin_api::rule::Facet>::Answer,
            >::answer(#call)?;
            match answer {
                ::core::option::Option::Some(answer) => {
                    <#facet as ::tenon_plugin_api::rule::Facet>::reply_or_decline(&mut ask, answer)
                }
                ::core::option::Option::None => {
                    ::core::result::Result::Ok(::core::option::Option::None)
                }
            }
        }
    };
    let entries = names.iter().map(|name| keys.entry(name, ident, &doc_of(&function.attrs)));
    Ok(quote! {
        #function

        const _: () = {
            #apply

            #(#entries)*
        };
    })
}

/// The operator whose attributes the function is given first, if it is.
fn signature(function: &ItemFn) -> Result<Option<Type>> {
    let sig = &function.sig;
    let is_plain =
        sig.asyncness.is_none() && sig.unsafety.is_none() && sig.generics.params.is_empty();
    let wrong = || Error::new_spanned(sig, FORM);
    let by_reference = |arg: &FnArg, is_mut: bool| match arg {
        FnArg::Typed(arg) => match &*arg.ty {
            Type::Reference(ty) if ty.mutability.is_some() == is_mut => Some((*ty.elem).clone()),
            _ => None,
        },
        FnArg::Receiver(_) => None,
    };
    if !is_plain {
        return Err(wrong());
    }
    let args: Vec<&FnArg> = sig.inputs.iter().collect();
    match args.as_slice() {
        [ask] => by_reference(ask, true).map(|_| None).ok_or_else(wrong),
        [op, ask] => {
            by_reference(ask, true).ok_or_else(wrong)?;
            by_reference(op, false).map(Some).ok_or_else(wrong)
        }
        _ => Err(wrong()),
    }
}

/// What the attribute says.
struct Keys {
    facet: TokenStream,
    names: Vec<String>,
    benefit: u32,
    when: Option<Path>,
    since: Option<u64>,
    until: Option<u64>,
    knobs: Vec<Knob>,
}

/// `rows = 1..=32`
struct Knob {
    name: Ident,
    least: i64,
    most: i64,
}

impl Parse for Knob {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let name: Ident = input.parse()?;
        input.parse::<Token![=]>()?;
        let bound = |input: ParseStream<'_>| -> Result<i64> {
            let sign = if input.parse::<Option<Token![-]>>()?.is_some() { -1 } else { 1 };
            Ok(sign * input.parse::<LitInt>()?.base10_parse::<i64>()?)
        };
        let least = bound(input)?;
        input.parse::<Token![..=]>()?;
        let most = bound(input)?;
        if least > most {
            let text = format!("no number is {least} at least and {most} at most");
            return Err(Error::new_spanned(&name, text));
        }
        Ok(Self { name, least, most })
    }
}

/// `[rows = 1..=32, vectors = 1..=8]`
fn knobs(input: ParseStream<'_>) -> Result<Vec<Knob>> {
    let list;
    syn::bracketed!(list in input);
    let knobs: Vec<Knob> = list.parse_terminated(Knob::parse, Token![,])?.into_iter().collect();
    for (at, knob) in knobs.iter().enumerate() {
        if knobs[..at].iter().any(|other| other.name == knob.name) {
            let text = format!("there are two knobs `{}`", knob.name);
            return Err(Error::new_spanned(&knob.name, text));
        }
    }
    Ok(knobs)
}

impl Parse for Keys {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let facet = facet(input)?;
        let mut keys = Self {
            facet,
            names: Vec::new(),
            benefit: 1,
            when: None,
            since: None,
            until: None,
            knobs: Vec::new(),
        };
        let mut domain = None;
        let mut seen: Vec<Ident> = Vec::new();
        while !input.is_empty() {
            input.parse::<Token![,]>()?;
            if input.is_empty() {
                break;
            }
            let key: Ident = input.parse()?;
            if seen.contains(&key) {
                return Err(Error::new_spanned(&key, format!("`{key}` is given twice")));
            }
            input.parse::<Token![=]>()?;
            match key.to_string().as_str() {
                "key" => keys.names = names(&input.parse()?)?,
                "benefit" => keys.benefit = input.parse::<LitInt>()?.base10_parse()?,
                "when" => keys.when = Some(input.parse()?),
                "domain" => domain = Some(input.parse::<LitStr>()?.value()),
                "since" => keys.since = Some(input.parse::<LitInt>()?.base10_parse()?),
                "until" => keys.until = Some(input.parse::<LitInt>()?.base10_parse()?),
                "knobs" => keys.knobs = knobs(input)?,
                _ => return Err(Error::new_spanned(&key, KEYS)),
            }
            seen.push(key);
        }
        if let (Some(since), Some(until)) = (keys.since, keys.until)
            && since > until
        {
            let text = format!("no version is {since} or newer and {until} or older");
            return Err(Error::new(Span::call_site(), text));
        }
        if let Some(domain) = domain.filter(|domain| !domain.is_empty()) {
            keys.names = keys.names.iter().map(|name| format!("{domain}::{name}")).collect();
        }
        Ok(keys)
    }
}

/// `gradient`, `import.onnx`, or the path of a type.
fn facet(input: ParseStream<'_>) -> Result<TokenStream> {
    let path: Path = input.parse().map_err(|error| {
        Error::new(error.span(), "a rule begins with its facet, as in #[rule(gradient)]")
    })?;
    let Some(first) = path.get_ident() else { return Ok(quote!(#path)) };
    let mut name = first.to_string();
    while input.peek(Token![.]) {
        input.parse::<Token![.]>()?;
        name.push('.');
        name.push_str(&input.parse::<Ident>()?.to_string());
    }
    if let Some((_, ty)) = FACETS.iter().find(|(known, _)| *known == name) {
        let ty = format_ident!("{ty}");
        return Ok(quote!(::tenon_plugin_api::rule::#ty));
    }
    if name == SCHEDULE {
        return Ok(quote!(::tenon_schedule::OfProgram));
    }
    if name == RESERVED {
        let text = "the facet `quantize` is reserved: no pass asks for it yet, so nothing says what a rule of it is given \
                    and answers; until then a facet of your own can hold what you know";
        return Err(Error::new_spanned(&path, text));
    }
    if name.starts_with(|c: char| c.is_ascii_uppercase()) && !name.contains('.') {
        return Ok(quote!(#path));
    }
    let known: Vec<&str> = FACETS.iter().map(|(known, _)| *known).chain([SCHEDULE]).collect();
    let text = format!(
        "there is no facet `{name}`: it is one of {}, or the type of a facet of your own",
        known.join(", ")
    );
    Err(Error::new_spanned(&path, text))
}

/// `"add"` or `["add", "subtract"]`.
fn names(value: &Expr) -> Result<Vec<String>> {
    match value {
        Expr::Array(array) if !array.elems.is_empty() => texts(array),
        Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) if !text.value().is_empty() => {
            Ok(vec![text.value()])
        }
        other => Err(Error::new_spanned(other, "a key is a text or a list of texts")),
    }
}

impl Keys {
    /// The record and the entry of the rule for one key.
    fn entry(&self, name: &TokenStream, function: &Ident, doc: &str) -> TokenStream {
        let facet = &self.facet;
        let mut rest = String::from("\"");
        if self.benefit != 1 {
            rest.push_str(&format!(",\"benefit\":{}", self.benefit));
        }
        for (key, version) in [("since", self.since), ("until", self.until)] {
            if let Some(version) = version {
                rest.push_str(&format!(",\"{key}\":{version}"));
            }
        }
        if !self.knobs.is_empty() {
            let knobs = self.knobs.iter().map(|Knob { name, least, most }| {
                format!("{{\"name\":\"{name}\",\"least\":{least},\"most\":{most}}}")
            });
            rest.push_str(&format!(",\"knobs\":[{}]", knobs.collect::<Vec<_>>().join(",")));
        }
        rest.push_str(&format!(",\"doc\":{}}}", quoted(doc)));
        let note = note(&quote!(MANIFEST));
        let (benefit, since) = (self.benefit, self.since.unwrap_or(0));
        let until = self.until.unwrap_or(u64::MAX);
        let knobs = self.knobs.iter().map(|Knob { name, least, most }| {
            let name = name.to_string();
            quote!(::tenon_plugin_api::rule::Knob { name: #name, least: #least, most: #most })
        });
        quote! {
            const _: () = {
                const PARTS: &[&str] = &[
                    "{\"rule\":\"",
                    <#facet as ::tenon_plugin_api::rule::Facet>::NAME,
                    "\",\"key\":\"",
                    #name,
                    #rest,
                ];
                const BYTES: [u8; ::tenon_plugin_api::abi::layout::joined_len(PARTS)] =
                    ::tenon_plugin_api::abi::layout::joined(PARTS);
                const MANIFEST: &str = match ::core::str::from_utf8(&BYTES) {
                    ::core::result::Result::Ok(text) => text,
                    ::core::result::Result::Err(_) => ::core::panic!("texts together are a text"),
                };
                #note

                #[::tenon_plugin_api::abi::plugin::linkme::distributed_slice(
                    ::tenon_plugin_api::abi::plugin::RULES
                )]
                #[linkme(crate = ::tenon_plugin_api::abi::plugin::linkme)]
                static RULE: ::tenon_plugin_api::abi::plugin::RuleItem =
                    ::tenon_plugin_api::abi::plugin::RuleItem {
                        facet: <#facet as ::tenon_plugin_api::rule::Facet>::NAME,
                        key: #name,
                        name: ::core::concat!(
                            ::core::module_path!(), "::", ::core::stringify!(#function)
                        ),
                        knobs: &[#(#knobs),*],
                        benefit: #benefit,
                        since: #since,
                        until: #until,
                        manifest: MANIFEST,
                        apply,
                    };
            };
        }
    }
}
