use tenon_plugin_api::op::prelude::*;

/// Scales.
#[op(name = "acme.scale")]
struct Scale {
    /// By how much.
    #[attr(default = 2)]
    by: Option<i64>,
}

fn main() {}
