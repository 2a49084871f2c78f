use tenon_plugin_api::prelude::*;

#[pass(name = "acme.Pass")]
fn option_without_default(func: Function, _: &Module, _: &PassContext, _: Options) -> Result<Function> {
    Ok(func)
}

#[derive(Options)]
struct Options {
    #[option(min = 1)]
    size: i64,
}

fn main() {}
