use tenon_plugin_api::prelude::*;

#[pass(name = "acme.Pass", options(size(default = 8)))]
fn option_without_type(func: Function, _: &Module, _: &PassContext) -> Result<Function> {
    Ok(func)
}

fn main() {}
