use tenon_plugin_api::op::prelude::*;

/// Scales.
#[op(name = "acme.scale")]
struct Scale(i64);

fn main() {}
