use tenon_plugin_api::prelude::*;

#[pass(opt_level = 1)]
fn no_name(func: Function, _: &Module, _: &PassContext) -> Result<Function> {
    Ok(func)
}

fn main() {}
