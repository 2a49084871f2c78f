//! Computes convolutions of short floats in f32.
//!
//! ```ir
//! %y = nn.conv2d(%x, const(f16[64, 64, 3, 3], …))                  %x: f16[n, 64, 56, 56]
//!                        =>
//! %d = nn.conv2d(cast(%x) { dtype = "f32" }, const(f32[64, 64, 3, 3], …))
//! %y = cast(%d) { dtype = "f16" }
//! ```
//!
//! Sums are those of f32 in any case, so each factor has to become one. In a convolution every element of the data is read by all vectors
//! of output channels, and again for each neighbour; it is cheaper to convert it once, where it is written, than each time it is
//! read, and the schedules of f32 (Winograd's among them) are there for it. Weights then take the place of f32, as they do in the
//! runtimes that compute short floats so. It leaves alone what reads each element once, as depthwise convolutions and products do,
//! and bf16 where an instruction multiplies pairs and its vectors are filled by the outputs of a group.

use tenon_plugin_api::prelude::*;

use crate::convert_to_dots::LANES;
use crate::convert_to_short_dots::has_fast_pairs;

/// Computes convolutions of f16, and of bf16 where no instruction does, in f32.
#[pass(
    name = "relax.WidenConvolutions",
    opt_level = 3,
    phase = "optimize",
    after = ["relax.FoldScaleAxis", "relax.RunCodegen", "relax.ToMixedPrecision"],
    before = ["relax.ConvertToWinograd", "relax.ConvertToShortDots", "relax.AlterOpLayout"],
    requires = ["relax.FoldConstant"],
    tolerance = 0.01
)]
fn widen_convolutions(func: Function, _: &Module, cx: &PassContext) -> Result<Function> {
    if cx.target().str("kind") == Some("cuda") {
        return Ok(func);
    }
    let body = func.view();
    let mut rw = func.edit();
    for expr in body.post_order() {
        let View::Call { callee, args, attrs } = body.view(expr) else { continue };
        let (Some(op @ ("nn.conv2d" | "nn.conv3d")), &[x, weights]) =
            (body.op_name(callee), &args.to_vec()[..])
        else {
            continue;
        };
        let Some((made, _)) = rw.tensor(expr) else { continue };
        let Some(shape) = rw.extents(weights) else { continue };
        let groups = rw.terms().attrs(attrs).int("groups").unwrap_or(1);
        let has_pairs = has_fast_pairs(cx) && fills_vectors(&shape, groups);
        if !is_short(&rw, x, has_pairs) || !reads_often(&mut rw, weights, &shape) {
            continue;
        }
        let operands = [x, weights].map(|each| rw.in_dtype(each, DType::F32));
        let sums = rw.call_op(op, &operands, attrs);
        let narrow = rw.in_dtype(sums, made);
        if rw.body().ty(narrow) == body.ty(expr) {
            rw.replace(expr, narrow);
        }
    }
    rw.finish()
}

/// Whether these are short floats of which no instruction multiplies pairs.
pub(crate) fn is_short(rw: &Rewriter, x: Expr, has_pairs: bool) -> bool {
    match rw.tensor(x) {
        Some((DType::F16, _)) => true,
        Some((DType::BF16, _)) => !has_pairs,
        _ => false,
    }
}

/// Whether all lanes of a vector of outputs are of one group, so that they have their data in common.
fn fills_vectors(filters: &[i64], groups: i64) -> bool {
    groups == 1 || filters.first().is_some_and(|outputs| (outputs / groups) % LANES == 0)
}

/// Whether these are constant filters of several channels.
fn reads_often(rw: &mut Rewriter, weights: Expr, shape: &[i64]) -> bool {
    let definition = rw.definition(weights);
    let is_constant = matches!(rw.view(definition), View::Constant(_));
    is_constant && shape.get(1).is_some_and(|&it| it > 1)
}
