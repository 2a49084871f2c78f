use tenon_plugin_api::rule::prelude::*;

#[rule(simplify, key = [])]
fn twice(at: &mut Site<'_>) -> Option<Expr> {
    Some(at.arg(0))
}

fn main() {}
