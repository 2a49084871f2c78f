use tenon_plugin_api::rule::prelude::*;

#[rule(quantize, key = "nn.dense")]
fn by_integers(at: &mut Site<'_>) -> Option<Expr> {
    Some(at.arg(0))
}

fn main() {}
