use tenon_plugin_api::prelude::*;

#[pass(name = "acme.Pass", phase = "optimize", phase = "fuse")]
fn key_twice(func: Function, _: &Module, _: &PassContext) -> Result<Function> {
    Ok(func)
}

fn main() {}
