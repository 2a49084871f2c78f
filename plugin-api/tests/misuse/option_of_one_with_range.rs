use tenon_plugin_api::prelude::*;

#[pass(name = "acme.Pass")]
fn option_of_one_with_range(func: Function, _: &Module, _: &PassContext, _: Options) -> Result<Function> {
    Ok(func)
}

#[derive(Options)]
struct Options {
    #[option(default = "large", max = 3)]
    size: String,
}

fn main() {}
