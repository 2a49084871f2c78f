use tenon_plugin_api::rule::prelude::*;

#[rule(simplify, key = "exp")]
fn twice(at: Site<'_>) -> Option<Expr> {
    Some(at.arg(0))
}

fn main() {}
