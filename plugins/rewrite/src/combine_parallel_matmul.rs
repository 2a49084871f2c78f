//! Computes matrix products that share their left argument as one product.
//!
//! ```ir
//! %q = matmul(%x, %wq)                  %w = concatenate((%wq, %wk, %wv)) { axis = 1 }
//! %k = matmul(%x, %wk)                  %y = matmul(%x, %w)
//! %v = matmul(%x, %wv)            =>    %p = split(%y) { axis = 1, indices = [640, 1280] }
//!                                       %q = %p.0
//!                                       %k = %p.1
//!                                       %v = %p.2
//! ```
//!
//! Each column of a product depends on one column of the right argument, so products with the columns side by
//! side are the same numbers. The right arguments agree in everything but their columns. An addition of a vector
//! and element-wise calls behind all products are done once, before the split. With weights that are constants,
//! `relax.FoldConstant` joins them at compile time; with weights that are parameters, `relax.LiftTransformParams`
//! moves that out of the function.
//!
//! Products of integers stay alone: each has a scale and a zero of its own, which fuse with it.
//!
//! A product whose right argument is computed behind the first product of its group stays alone.

use tenon_plugin_api::prelude::*;

use crate::parallel::{Branch, Limits, combine};

/// Computes matrix products that share their left argument as one product.
#[pass(
    name = "relax.CombineParallelMatmul",
    aliases = ["relax.transform.CombineParallelMatmul", "relay._transform.CombineParallelBatchMatmul"],
    opt_level = 3,
    phase = "optimize",
    requires = ["relax.Normalize"],
    before = ["relax.FoldConstant"],
    idempotent = true
)]
fn combine_parallel_matmul(
    func: Function,
    _: &Module,
    cx: &PassContext,
    options: Options,
) -> Result<Function> {
    let limits = Limits { min_branches: options.min_branches, max_width: options.max_width };
    combine(&func, cx, "matmul", limits, describe)
}

#[derive(Options)]
struct Options {
    /// fewest products that are combined
    #[option(default = 2, min = 2)]
    min_branches: usize,
    /// most columns of a combined product; 0 for any number
    #[option(default = 0, min = 0)]
    max_width: i64,
}

fn describe(rw: &Rewriter, call: &Call) -> Option<Branch<(Attrs, Type, Vec<Dim>)>> {
    let (dtype, mut dims) = rw.tensor(call.args[1])?;
    if dtype.is_int() {
        return None;
    }
    let is_flipped = rw.terms().attrs(call.attrs).bool("transpose_b").unwrap_or(false);
    let axis = dims.len() - if is_flipped { 2 } else { 1 };
    let width = std::mem::replace(&mut dims[axis], rw.cx().dim(0));
    let data = rw.body().ty(call.args[0])?;
    let out_axis = rw.terms().tensor(call.ty?)?.1.len() - 1;
    let key = (call.attrs, data, dims);
    Some(Branch { key, weight_axis: axis as i64, out_axis, width })
}
