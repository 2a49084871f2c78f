use tenon_plugin_api::prelude::*;

#[pass(name = "acme.Fold, then")]
fn wrong_name(func: Function, _: &Module, _: &PassContext) -> Result<Function> {
    Ok(func)
}

fn main() {}
