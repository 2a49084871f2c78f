use tenon_plugin_api::op::prelude::*;

/// Scales.
#[op(name = "acme.scale")]
struct Scale {
    #[attr(default = 2.0)]
    by: f64,
}

fn main() {}
