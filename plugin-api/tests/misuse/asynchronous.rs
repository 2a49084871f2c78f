use tenon_plugin_api::prelude::*;

#[pass(name = "acme.Pass")]
async fn asynchronous(func: Function, _: &Module, _: &PassContext) -> Result<Function> {
    Ok(func)
}

fn main() {}
