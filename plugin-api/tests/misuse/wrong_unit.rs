use tenon_plugin_api::prelude::*;

#[pass(name = "acme.Pass")]
fn wrong_unit(func: &Function, _: &Module, _: &PassContext) -> Result<Function> {
    Ok(func.clone())
}

fn main() {}
