use tenon_plugin_api::prelude::*;

#[pass(name = "acme.Pass")]
fn options_not_derived(func: Function, _: &Module, _: &PassContext, _: Options) -> Result<Function> {
    Ok(func)
}

struct Options {
    size: i64,
}

fn main() {}
