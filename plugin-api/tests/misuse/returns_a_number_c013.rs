use tenon_plugin_api::prelude::*;

#[pass(name = "acme.Pass")]
fn returns_a_number(_: Function, _: &Module, _: &PassContext) -> Result<i32> {
    Ok(1)
}

fn main() {}
