//! `#[codegen]`: the manifest record of a code generator and its entry in the plugin's list.

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::parse::{Parse, ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{Error, Ident, ItemFn, LitStr, Path, Result, Token};

use crate::pass::{doc_of, returns_result, texts};
use crate::record::{Record, note};

const FORM: &str = "a code generator is fn(&Module, &[Symbol], &PassContext) -> Result<Vec<u8>>";

pub(crate) fn expand(attributes: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let attributes = Punctuated::<Attribute, Token![,]>::parse_terminated.parse2(attributes)?;
    let function: ItemFn = syn::parse2(item)?;
    let sig = &function.sig;
    let is_plain =
        sig.asyncness.is_none() && sig.unsafety.is_none() && sig.generics.params.is_empty();
    if !is_plain || sig.inputs.len() != 3 || !returns_result(&sig.output) {
        return Err(Error::new_spanned(sig, FORM));
    }
    let mut record = Record::default();
    let (mut name, mut patterns, mut accepts) =
        (None, Vec::new(), quote!(::core::option::Option::None));
    for attribute in attributes {
        match attribute {
            Attribute::Name(value) => name = Some(value),
            Attribute::Patterns(values) => patterns = values,
            Attribute::Accepts(path) => accepts = quote!(::core::option::Option::Some(#path)),
        }
    }
    let Some(name) = name else {
        return Err(Error::new(
            Span::call_site(),
            "a code generator has a name: #[codegen(name = \"vendor\")]",
        ));
    };
    let text = name.value();
    if text.is_empty() || !text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-') {
        return Err(Error::new_spanned(
            name,
            "a code generator's name is of letters, digits, `_` and `-`",
        ));
    }
    record.text("codegen", &text);
    record.texts("patterns", &patterns);
    record.text("doc", &doc_of(&function.attrs));
    let json = record.finish();

    let note = note(&quote!(#json));
    let ident = &sig.ident;
    Ok(quote! {
        #function

        const _: () = {
            #note

            #[::tenon_plugin_api::abi::plugin::linkme::distributed_slice(
                ::tenon_plugin_api::abi::plugin::GENERATORS
            )]
            #[linkme(crate = ::tenon_plugin_api::abi::plugin::linkme)]
            static GENERATOR: ::tenon_plugin_api::abi::plugin::GeneratorItem =
                ::tenon_plugin_api::abi::plugin::GeneratorItem {
                    name: #name,
                    manifest: #json,
                    body: #ident,
                    accepts: #accepts,
                };
        };
    })
}

/// One `key = value` of the attribute.
enum Attribute {
    Name(LitStr),
    Patterns(Vec<String>),
    Accepts(Path),
}

impl Parse for Attribute {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let key: Ident = input.parse()?;
        input.parse::<Token![=]>()?;
        match key.to_string().as_str() {
            "name" => Ok(Attribute::Name(input.parse()?)),
            "patterns" => Ok(Attribute::Patterns(texts(&input.parse()?)?)),
            "accepts" => Ok(Attribute::Accepts(input.parse()?)),
            _ => Err(Error::new_spanned(&key, "expected one of: name, patterns, accepts")),
        }
    }
}
