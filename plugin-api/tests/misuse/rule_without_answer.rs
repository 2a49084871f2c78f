use tenon_plugin_api::rule::prelude::*;

#[rule(simplify, key = "exp")]
fn twice(at: &mut Site<'_>) {
    at.arg(0);
}

fn main() {}
