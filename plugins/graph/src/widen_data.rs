//! Computes products of short floats of data in f32.
//!
//! ```ir
//! %y = matmul(%x, %w)                     %x: f16[n, 64], %w: f16[64, 256]
//!                        =>
//! %d = matmul(cast(%x) { dtype = "f32" }, %w)
//! %y = cast(%d) { dtype = "f16" }
//! ```
//!
//! Sums are those of f32 in any case, so each factor has to become one. An element of the data is read once for each vector of columns,
//! by itself; it is cheaper to convert it where it is written than each time it is read, the more so where it is below the
//! normal numbers, for which a processor converts as slowly as it divides. Weights are loaded in whole vectors, and stay as short as
//! they are. One row is left alone, which takes as long as its weights take to be read, and so is bf16 where an instruction multiplies pairs.

use tenon_plugin_api::prelude::*;

use crate::convert_to_dots::LANES;
use crate::convert_to_short_dots::has_fast_pairs;
use crate::widen_convolutions::is_short;

/// Computes products of f16, and of bf16 that no instruction multiplies, of data in f32.
#[pass(
    name = "relax.WidenData",
    opt_level = 3,
    phase = "optimize",
    after = [
        "relax.CombineParallelMatmul",
        "relax.RunCodegen",
        "relax.ToMixedPrecision",
        "relax.ConvertToShortDots",
    ],
    before = ["relax.AlterOpLayout"]
)]
fn widen_data(func: Function, _: &Module, cx: &PassContext) -> Result<Function> {
    if cx.target().str("kind") == Some("cuda") {
        return Ok(func);
    }
    let body = func.view();
    let mut rw = func.edit();
    for expr in body.post_order() {
        let View::Call { callee, args, attrs } = body.view(expr) else { continue };
        let (Some(op @ ("matmul" | "nn.dense")), &[data, weight]) =
            (body.op_name(callee), &args.to_vec()[..])
        else {
            continue;
        };
        let Some((made, _)) = rw.tensor(expr) else { continue };
        let has_pairs = has_fast_pairs(cx) && rw.is_constant(weight);
        let [dtype, of_weight] = [data, weight].map(|each| rw.tensor(each).map(|it| it.0));
        if dtype != of_weight || !is_short(&rw, data, has_pairs) || !reads_often(&rw, expr) {
            continue;
        }
        let data = rw.in_dtype(data, DType::F32);
        let attrs = rw.cx().with_attr(attrs, "out_dtype", "f32".into());
        let sums = rw.call_op(op, &[data, weight], attrs);
        let narrow = rw.in_dtype(sums, made);
        if rw.body().ty(narrow) == body.ty(expr) {
            rw.replace(expr, narrow);
        }
    }
    rw.finish()
}

/// Whether there are several rows, and more columns than a vector.
fn reads_often(rw: &Rewriter, product: Expr) -> bool {
    let Some((_, dims)) = rw.tensor(product) else { return false };
    let &[.., rows, columns] = dims.as_slice() else { return false };
    let [rows, columns] = [rows, columns].map(|dim| rw.terms().dim_value(dim));
    rows != Some(1) && columns.is_none_or(|columns| columns > LANES)
}
