use tenon_plugin_api::prelude::*;

#[pass(name = "acme.Pass")]
fn no_result(func: Function, _: &Module, _: &PassContext) -> Function {
    func
}

fn main() {}
