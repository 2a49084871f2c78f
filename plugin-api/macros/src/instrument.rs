//! `#[instrument]`: the manifest record of an instrument and its entry in the plugin's list.

use proc_macro2::TokenStream;
use quote::quote;
use syn::punctuated::Punctuated;
use syn::{Error, ItemStruct, LitStr, MetaNameValue, Result, Token};

use crate::pass::{check_name, doc_of};
use crate::record::{Record, note};

pub(crate) fn expand(attributes: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let item: ItemStruct = syn::parse2(item)?;
    let parser = Punctuated::<MetaNameValue, Token![,]>::parse_terminated;
    let attributes = syn::parse::Parser::parse2(parser, attributes)?;
    let mut name: Option<LitStr> = None;
    for attribute in &attributes {
        if !attribute.path.is_ident("name") || name.is_some() {
            return Err(Error::new_spanned(&attribute.path, "an instrument has one `name`"));
        }
        let value = &attribute.value;
        name = Some(syn::parse2(quote!(#value))?);
    }
    let Some(name) = name else {
        return Err(Error::new_spanned(
            &item.ident,
            "an instrument has a name: #[instrument(name = \"vendor.InstrumentName\")]",
        ));
    };
    check_name(&name)?;
    let mut record = Record::default();
    record.text("instrument", &name.value());
    record.text("doc", &doc_of(&item.attrs));
    let json = record.finish();
    let note = note(&quote!(#json));
    let ident = &item.ident;
    Ok(quote! {
        #item

        const _: () = {
            #note

            #[::tenon_plugin_api::abi::plugin::linkme::distributed_slice(
                ::tenon_plugin_api::abi::instrument::INSTRUMENTS
            )]
            #[linkme(crate = ::tenon_plugin_api::abi::plugin::linkme)]
            static INSTRUMENT: ::tenon_plugin_api::abi::instrument::InstrumentItem =
                ::tenon_plugin_api::abi::instrument::InstrumentItem {
                    name: #name,
                    manifest: #json,
                    create: || ::std::boxed::Box::new(
                        <#ident as ::core::default::Default>::default()
                    ),
                };
        };
    })
}
