use tenon_plugin_api::prelude::*;

plugin! { summary = "Passes of Acme" }

fn main() {}
