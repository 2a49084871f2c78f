//! `plugin!`: the record of the library and its one exported symbol.

use proc_macro2::TokenStream;
use quote::quote;
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::{Expr, ExprLit, Lit, MetaNameValue, Token};

use crate::record::{Record, note};

pub(crate) fn expand(input: TokenStream) -> syn::Result<TokenStream> {
    let entries = Punctuated::<MetaNameValue, Token![,]>::parse_terminated.parse2(input)?;
    let mut record = Record::default();
    let mut has_id = false;
    for entry in &entries {
        let key = entry.path.require_ident()?.to_string();
        let Expr::Lit(ExprLit { lit: Lit::Str(value), .. }) = &entry.value else {
            return Err(syn::Error::new_spanned(&entry.value, "expected a string"));
        };
        match key.as_str() {
            "id" => {
                has_id = true;
                record.text("plugin", &value.value());
            }
            "summary" | "vendor" | "homepage" | "license" => record.text(&key, &value.value()),
            _ => {
                return Err(syn::Error::new_spanned(
                    &entry.path,
                    "expected one of: id, summary, vendor, homepage, license",
                ));
            }
        }
    }
    if !has_id {
        return Err(syn::Error::new(
            proc_macro2::Span::call_site(),
            "a plugin has an id: plugin! { id = \"vendor.name\" }",
        ));
    }
    record.raw("format", "1");
    // The crates of the API are released together, under one version.
    record.text("api", env!("CARGO_PKG_VERSION"));
    record.text("version", &std::env::var("CARGO_PKG_VERSION").unwrap_or_default());
    let json = record.finish();
    let note = note(&quote!(#json));
    let symbol = "_1as_0lib_1header_0root_bmodule_bloader";
    Ok(quote! {
        const _: () = {
            #note

            #[::tenon_plugin_api::abi::plugin::linkme::distributed_slice(
                ::tenon_plugin_api::abi::plugin::PLUGINS
            )]
            #[linkme(crate = ::tenon_plugin_api::abi::plugin::linkme)]
            static PLUGIN: &str = #json;

            #[unsafe(export_name = #symbol)]
            static HEADER: ::tenon_plugin_api::abi::plugin::LibHeader =
                ::tenon_plugin_api::abi::plugin::lib_header();
        };
    })
}
