use tenon_plugin_api::prelude::*;

#[pass(name = "acme.Pass")]
fn options_before_context(func: Function, _: &Module, _: Options, _: &PassContext) -> Result<Function> {
    Ok(func)
}

#[derive(Options)]
struct Options {
    #[option(default = 1)]
    size: i64,
}

fn main() {}
