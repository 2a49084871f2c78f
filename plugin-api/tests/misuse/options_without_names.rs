use tenon_plugin_api::prelude::*;

#[pass(name = "acme.Pass")]
fn options_without_names(func: Function, _: &Module, _: &PassContext, _: Options) -> Result<Function> {
    Ok(func)
}

#[derive(Options)]
struct Options(i64);

fn main() {}
