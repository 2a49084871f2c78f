//! Writes manifest records as JSON text, and the items that put them into the library.

use proc_macro2::TokenStream;
use quote::quote;
use syn::Type;

/// A JSON object under construction; keys stand in the order they were added.
#[derive(Default)]
pub(crate) struct Record(String);

impl Record {
    pub(crate) fn raw(&mut self, key: &str, json: &str) {
        self.0.push(if self.0.is_empty() { '{' } else { ',' });
        self.0.push_str(&quoted(key));
        self.0.push(':');
        self.0.push_str(json);
    }

    pub(crate) fn text(&mut self, key: &str, value: &str) {
        self.raw(key, &quoted(value));
    }

    pub(crate) fn texts(&mut self, key: &str, values: &[String]) {
        let values: Vec<String> = values.iter().map(|value| quoted(value)).collect();
        self.raw(key, &format!("[{}]", values.join(",")));
    }

    /// A constant `MANIFEST` of this record, together with what the author's struct of options declares.
    pub(crate) fn manifest(self, options: Option<&Type>) -> TokenStream {
        let json = self.finish();
        let Some(options) = options else { return quote!(const MANIFEST: &str = #json;) };
        let open = format!("{},\"options\":", json.strip_suffix('}').unwrap_or(&json));
        quote! {
            const PARTS: &[&str] = &[
                #open,
                <#options as ::tenon_plugin_api::pass::Options>::DECLARED,
                "}",
            ];
            const BYTES: [u8; ::tenon_plugin_api::abi::layout::joined_len(PARTS)] =
                ::tenon_plugin_api::abi::layout::joined(PARTS);
            const MANIFEST: &str = match ::core::str::from_utf8(&BYTES) {
                ::core::result::Result::Ok(text) => text,
                ::core::result::Result::Err(_) => ::core::panic!("texts together are a text"),
            };
        }
    }

    pub(crate) fn finish(mut self) -> String {
        if self.0.is_empty() {
            self.0.push('{');
        }
        self.0.push('}');
        self.0
    }
}

/// A JSON string.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            c if (c as u32) < 0x20 => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// The note that holds a record, a constant expression.
pub(crate) fn note(json: &TokenStream) -> TokenStream {
    quote! {
        #[used]
        #[cfg_attr(not(target_vendor = "apple"), unsafe(link_section = ".note.tenon"))]
        #[cfg_attr(target_vendor = "apple", unsafe(link_section = "__DATA_CONST,__tenon"))]
        static NOTE: ::tenon_plugin_api::abi::note::Note<
            { ::tenon_plugin_api::abi::note::padded((#json).len()) },
        > = ::tenon_plugin_api::abi::note::Note::new(#json);
    }
}
