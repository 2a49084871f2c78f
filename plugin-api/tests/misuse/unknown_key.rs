use tenon_plugin_api::prelude::*;

#[pass(name = "acme.Pass", level = 1)]
fn unknown_key(func: Function, _: &Module, _: &PassContext) -> Result<Function> {
    Ok(func)
}

fn main() {}
