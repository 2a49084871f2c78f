use tenon_plugin_api::prelude::*;

#[pass(name = "acme.Pass", options(size(int, default = "large")))]
fn option_of_another_type(func: Function, _: &Module, _: &PassContext) -> Result<Function> {
    Ok(func)
}

fn main() {}
