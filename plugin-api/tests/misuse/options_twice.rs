use tenon_plugin_api::prelude::*;

#[pass(name = "acme.Pass", options(size(int, default = 1)))]
fn options_twice(func: Function, _: &Module, _: &PassContext, _: Options) -> Result<Function> {
    Ok(func)
}

#[derive(Options)]
struct Options {
    #[option(default = 1)]
    size: i64,
}

fn main() {}
