//! Which operators are computed in a narrow element type.
//!
//! Products gain by it most, since they read much for each element that they write. What follows gains where
//! its arguments are narrow already. Sums of many elements, and functions that are steep or grow beyond the
//! range of f16, lose too much; an operator that is not listed is among them.

use std::collections::HashMap;

use tenon_plugin_api::prelude::*;

use super::Options;

/// When an operator is computed narrow.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Policy {
    /// With whatever arguments.
    Always,
    /// When its arguments are narrow.
    Follow,
    /// Not at all.
    Never,
}

const ALWAYS: &[&str] = &["nn.conv2d", "nn.dense", "matmul"];

const FOLLOW: &[&str] = &[
    // Arithmetic that neither sums nor grows.
    "abs",
    "add",
    "ceil",
    "clip",
    "divide",
    "floor",
    "maximum",
    "minimum",
    "multiply",
    "negative",
    "nn.bias_add",
    "nn.dropout",
    "nn.gelu",
    "nn.leaky_relu",
    "nn.relu",
    "nn.silu",
    "round",
    "sigmoid",
    "subtract",
    "tanh",
    "where",
    // Movement.
    "broadcast_to",
    "concatenate",
    "expand_dims",
    "layout_transform",
    "nn.pad",
    "reshape",
    "split",
    "squeeze",
    "strided_slice",
    "take",
    "transpose",
    // Windows and channels, of few elements or of their largest.
    "max",
    "min",
    "nn.avg_pool2d",
    "nn.global_avg_pool2d",
    "nn.global_max_pool2d",
    "nn.max_pool2d",
];

/// The products whose sums may be wider than their arguments.
pub(super) fn has_out_dtype(op: &str) -> bool {
    ALWAYS.contains(&op)
}

/// The policies of a run.
pub(super) struct Policies(HashMap<String, Policy>);

impl Policies {
    /// Those above, and what the options say.
    pub(super) fn of(cx: &PassContext, options: &Options) -> Self {
        let listed = ALWAYS.iter().map(|op| (op, Policy::Always));
        let listed = listed.chain(FOLLOW.iter().map(|op| (op, Policy::Follow)));
        let mut policies: HashMap<String, Policy> =
            listed.map(|(op, policy)| ((*op).to_owned(), policy)).collect();
        let said = [
            (&options.always, Policy::Always),
            (&options.follow, Policy::Follow),
            (&options.never, Policy::Never),
        ];
        for (ops, policy) in said {
            for &op in ops {
                policies.insert(cx.terms().str(op).to_owned(), policy);
            }
        }
        Self(policies)
    }

    pub(super) fn of_op(&self, op: &str) -> Policy {
        self.0.get(op).copied().unwrap_or(Policy::Never)
    }
}
