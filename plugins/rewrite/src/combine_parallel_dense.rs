//! Computes dense layers that share their data as one layer.
//!
//! ```ir
//! %a = nn.dense(%x, %wa)                %w = concatenate((%wa, %wb, %wc)) { axis = 0 }
//! %b = nn.dense(%x, %wb)                %y = nn.dense(%x, %w)
//! %c = nn.dense(%x, %wc)          =>    %p = split(%y) { axis = 1, indices = [10, 20] }
//!                                       %a = %p.0
//!                                       …
//! ```
//!
//! The same as `relax.CombineParallelMatmul` for weights that are given transposed. Packed weights stay as
//! they are.

use tenon_plugin_api::prelude::*;

use crate::parallel::{Branch, Limits, combine};

/// Computes dense layers that share their data as one layer.
#[pass(
    name = "relax.CombineParallelDense",
    aliases = ["relay._transform.CombineParallelDense"],
    opt_level = 4,
    phase = "optimize",
    requires = ["relax.Normalize"],
    before = ["relax.FoldConstant"],
    idempotent = true
)]
fn combine_parallel_dense(
    func: Function,
    _: &Module,
    cx: &PassContext,
    options: Options,
) -> Result<Function> {
    let limits = Limits { min_branches: options.min_branches, max_width: options.max_width };
    combine(&func, cx, "nn.dense", limits, describe)
}

#[derive(Options)]
struct Options {
    /// fewest layers that are combined
    #[option(default = 3, min = 2)]
    min_branches: usize,
    /// most outputs of a combined layer; 0 for any number
    #[option(default = 0, min = 0)]
    max_width: i64,
}

fn describe(rw: &Rewriter, call: &Call) -> Option<Branch<(Attrs, Dim)>> {
    let attrs = rw.terms().attrs(call.attrs);
    if attrs.str("weight_layout").unwrap_or("NK") != "NK" || attrs.term("units").is_some() {
        return None;
    }
    let (_, dims) = rw.tensor(call.args[1])?;
    let out_axis = rw.terms().tensor(call.ty?)?.1.len() - 1;
    let key = (call.attrs, dims[1]);
    Some(Branch { key, weight_axis: 0, out_axis, width: dims[0] })
}
