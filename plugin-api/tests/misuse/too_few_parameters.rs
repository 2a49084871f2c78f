use tenon_plugin_api::prelude::*;

#[pass(name = "acme.Pass")]
fn too_few_parameters(func: Function) -> Result<Function> {
    Ok(func)
}

fn main() {}
