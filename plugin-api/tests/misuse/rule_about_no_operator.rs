use tenon_plugin_api::rule::prelude::*;

struct Exp;

#[rule(simplify)]
fn twice(_: &Exp, at: &mut Site<'_>) -> Option<Expr> {
    Some(at.arg(0))
}

fn main() {}
