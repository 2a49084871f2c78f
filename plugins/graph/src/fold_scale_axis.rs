//! Moves constant scales of channels into weights: first backward, then forward.
//!
//! ```ir
//! %c = nn.conv2d(%x, %w)               %c = nn.conv2d(%x, multiply(%w, reshape(%s)))
//! %d = add(%c, %b)               =>    %d = add(%c, multiply(%b, %s))
//! %e = multiply(%d, %s)                ret %d
//! ret %e
//! ```
//!
//! The pass itself does nothing: it requires `relax.BackwardFoldScaleAxis` and `relax.ForwardFoldScaleAxis`, in
//! this order, each of which requires `relax.FoldConstant`. Backward comes first, because a scale that has a
//! product both in front of it and behind it then leaves the data between them unchanged.

use tenon_plugin_api::prelude::*;

/// Moves constant scales of channels into weights: first backward, then forward.
#[pass(
    name = "relax.FoldScaleAxis",
    aliases = ["relay._transform.FoldScaleAxis", "relax.transform.FoldBatchnormToConv2D"],
    opt_level = 3,
    phase = "optimize",
    requires = ["relax.BackwardFoldScaleAxis", "relax.ForwardFoldScaleAxis"]
)]
fn fold_scale_axis(func: Function, _: &Module, _: &PassContext) -> Result<Function> {
    Ok(func)
}
