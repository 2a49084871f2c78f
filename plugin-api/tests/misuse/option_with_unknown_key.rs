use tenon_plugin_api::prelude::*;

#[pass(name = "acme.Pass")]
fn option_with_unknown_key(func: Function, _: &Module, _: &PassContext, _: Options) -> Result<Function> {
    Ok(func)
}

#[derive(Options)]
struct Options {
    #[option(default = 1, help = "how large")]
    size: i64,
}

fn main() {}
