use tenon_plugin_api::op::prelude::*;

#[op(name = "acme.double")]
struct Double;

fn main() {}
