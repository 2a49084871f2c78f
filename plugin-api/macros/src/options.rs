//! `#[derive(Options)]`: what the manifest says of a pass's options, and how a run's are read.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, Error, Fields, Ident, Result};

use crate::option::PassOption;

pub(crate) fn expand(input: TokenStream) -> Result<TokenStream> {
    let item: DeriveInput = syn::parse2(input)?;
    let ident = &item.ident;
    let Declared { json, names } = match Declared::of(&item) {
        Ok(declared) => declared,
        Err(error) => {
            // The struct counts as options nevertheless, or each pass that takes it would be a second error.
            let error = error.into_compile_error();
            return Ok(quote! {
                #error

                impl ::tenon_plugin_api::pass::Options for #ident {
                    const DECLARED: &'static str = "[]";

                    fn of_run(
                        _: &::tenon_plugin_api::pass::PassContext,
                    ) -> ::tenon_plugin_api::pass::Result<Self> {
                        ::core::unreachable!()
                    }
                }
            });
        }
    };
    let texts = names.iter().map(PassOption::name_of);
    Ok(quote! {
        impl ::tenon_plugin_api::pass::Options for #ident {
            const DECLARED: &'static str = #json;

            fn of_run(
                cx: &::tenon_plugin_api::pass::PassContext,
            ) -> ::tenon_plugin_api::pass::Result<Self> {
                ::core::result::Result::Ok(Self {
                    #(#names: ::tenon_plugin_api::pass::option_of_run(cx, #texts)?,)*
                })
            }
        }
    })
}

/// What a struct declares.
struct Declared {
    /// The array of the manifest.
    json: String,
    /// Of the fields.
    names: Vec<Ident>,
}

impl Declared {
    fn of(item: &DeriveInput) -> Result<Self> {
        let wrong = |message| Err(Error::new_spanned(&item.ident, message));
        let Data::Struct(data) = &item.data else {
            return wrong("the options of a pass are a struct");
        };
        let Fields::Named(fields) = &data.fields else {
            return wrong("the options of a pass have names: struct Options { max_ops: u64 }");
        };
        if !item.generics.params.is_empty() {
            return wrong("the options of a pass are plain values: a struct without parameters");
        }
        let mut declared = Vec::new();
        let mut names = Vec::new();
        for field in &fields.named {
            declared.push(PassOption::of_field(field)?.to_json()?);
            names.extend(field.ident.clone());
        }
        Ok(Self { json: format!("[{}]", declared.join(",")), names })
    }
}
