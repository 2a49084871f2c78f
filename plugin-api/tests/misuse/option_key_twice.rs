use tenon_plugin_api::prelude::*;

#[pass(name = "acme.Pass")]
fn option_key_twice(func: Function, _: &Module, _: &PassContext, _: Options) -> Result<Function> {
    Ok(func)
}

#[derive(Options)]
struct Options {
    #[option(default = 1, default = 2)]
    size: i64,
}

fn main() {}
