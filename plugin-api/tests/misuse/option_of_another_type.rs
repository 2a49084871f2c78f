use tenon_plugin_api::prelude::*;

#[pass(name = "acme.Pass")]
fn option_of_another_type(func: Function, _: &Module, _: &PassContext, _: Options) -> Result<Function> {
    Ok(func)
}

#[derive(Options)]
struct Options {
    #[option(default = "large")]
    size: i64,
}

fn main() {}
