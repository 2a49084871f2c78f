use tenon_plugin_api::prelude::*;

#[pass(name = "acme.Pass", options(size(int, help = "how large")))]
fn option_without_default(func: Function, _: &Module, _: &PassContext) -> Result<Function> {
    Ok(func)
}

fn main() {}
