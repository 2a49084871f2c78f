use tenon_plugin_api::prelude::*;

#[pass(name = "acme.Pass", requires = "relax.Normalize")]
fn requires_is_no_list(func: Function, _: &Module, _: &PassContext) -> Result<Function> {
    Ok(func)
}

fn main() {}
