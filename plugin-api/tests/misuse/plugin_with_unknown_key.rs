use tenon_plugin_api::prelude::*;

plugin! { id = "acme.passes", author = "Acme" }

fn main() {}
