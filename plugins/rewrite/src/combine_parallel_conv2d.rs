//! Computes convolutions that share their data as one convolution.
//!
//! ```ir
//! %a = nn.conv2d(%x, %wa)               %w = concatenate((%wa, %wb, %wc)) { axis = 0 }
//! %b = nn.conv2d(%x, %wb)               %y = nn.conv2d(%x, %w)
//! %c = nn.conv2d(%x, %wc)         =>    %p = split(%y) { axis = 1, indices = [8, 24] }
//!                                       %a = %p.0
//!                                       …
//! ```
//!
//! Each channel of a result depends on one filter, so convolutions with the filters one after the other are the
//! same numbers. The convolutions agree in everything but the number of filters. Additions of one number a
//! channel and element-wise calls behind all of them are done once, before the split. Grouped convolutions and
//! weights in blocked layouts stay as they are.

use tenon_plugin_api::prelude::*;

use crate::parallel::{Branch, Limits, combine};

/// Computes convolutions that share their data as one convolution.
#[pass(
    name = "relax.CombineParallelConv2D",
    aliases = ["relay._transform.CombineParallelConv2D"],
    opt_level = 4,
    phase = "optimize",
    requires = ["relax.Normalize"],
    before = ["relax.FoldConstant"],
    idempotent = true
)]
fn combine_parallel_conv2d(
    func: Function,
    _: &Module,
    cx: &PassContext,
    options: Options,
) -> Result<Function> {
    let limits = Limits { min_branches: options.min_branches, max_width: options.max_width };
    combine(&func, cx, "nn.conv2d", limits, describe)
}

#[derive(Options)]
struct Options {
    /// fewest convolutions that are combined
    #[option(default = 3, min = 2)]
    min_branches: usize,
    /// most filters of a combined convolution; 0 for any number
    #[option(default = 0, min = 0)]
    max_width: i64,
}

fn describe(rw: &Rewriter, call: &Call) -> Option<Branch<(Attrs, Vec<Dim>)>> {
    let attrs = rw.terms().attrs(call.attrs);
    let data = attrs.str("data_layout").unwrap_or("NCHW");
    let out = attrs.str("out_layout").filter(|layout| !layout.is_empty()).unwrap_or(data);
    let kernel = attrs.str("kernel_layout").unwrap_or("OIHW");
    let is_plain = |layout: &str| layout.bytes().all(|letter| letter.is_ascii_uppercase());
    if attrs.int("groups").unwrap_or(1) != 1 || !is_plain(out) || !is_plain(kernel) {
        return None;
    }
    let axis = kernel.find('O')?;
    let out_axis = out.find('C')?;
    let (_, mut dims) = rw.tensor(call.args[1])?;
    let width = std::mem::replace(&mut dims[axis], rw.cx().dim(0));
    let key = (call.attrs, dims);
    Some(Branch { key, weight_axis: axis as i64, out_axis, width })
}
