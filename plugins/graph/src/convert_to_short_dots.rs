//! Computes products and convolutions with constants in bf16 by instructions for dot products, where that is asked for and they are fast.
//!
//! ```ir
//! %y = matmul(%x, const(f32[64, 30], …))                                 %x: f32[m, 64]
//!                        =>
//! %w = transpose(reshape(nn.pad(cast(const) { dtype = "bf16" })))        packed in pairs of 16 columns
//! %y = strided_slice(nn.bf16_dots(cast(%x) { dtype = "bf16" }, %w) { columns = 32 })
//! ```
//!
//! `relax.ToMixedPrecision` leaves what computes much in f32 on processors. Where the instruction for pairs of bf16 takes as long as one
//! multiply-add of f32, as on AMD's since Zen 4, such products take half the time by it; on Intel's it takes twice as long, so it is only
//! done where there are tiles (AMX), whose depth of 32 is filled up with zeros. Products of bf16 with sums of f32, which
//! `relax.ToMixedPrecision` makes where the number of rows is not known, are computed so as well; those of one row are not, which take as
//! long as their weights take to be read.
//!
//! ```ir
//! %y = nn.conv2d(%x, const(f32[64, 3, 7, 7], …))
//!                        =>
//! %y = nn.conv2d(nn.pad(cast(%x) { dtype = "bf16" }), nn.pad(cast(const) { dtype = "bf16" })) { out_dtype = "f32" }
//! ```
//!
//! Convolutions whose channels fill pairs are computed so too, where the instruction is fast; `relax.AlterOpLayout` puts channels in
//! blocks of pairs.
//!
//! Factors are rounded to bf16, their sums to f32, in the instruction's order, and numbers below the normal ones count as zero. It is done
//! with `--precision bf16`, and never where floats are strict.

use tenon_plugin_api::prelude::*;

use crate::convert_to_dots::{Channels, LANES, packed, padded, rounded_up, with_rows};

/// Products that an instruction adds in each column, and those of a tile.
const DEPTH: i64 = 2;
const TILE: i64 = 32;
/// Channels that fill a vector, or half of one.
const HALF: i64 = LANES / 2;

/// Computes products and convolutions with constants in bf16 by dot products, where these are fast.
#[pass(
    name = "relax.ConvertToShortDots",
    opt_level = 3,
    phase = "optimize",
    after = [
        "relax.FoldScaleAxis",
        "relax.RunCodegen",
        "relax.ToMixedPrecision",
        "relax.ConvertToWinograd",
    ],
    before = ["relax.AlterOpLayout"],
    tolerance = 0.05
)]
fn convert_to_short_dots(
    func: Function,
    _: &Module,
    cx: &PassContext,
    options: Options,
) -> Result<Function> {
    let (false, "bf16", Some(multiple)) =
        (cx.keeps_floats(), &*options.precision, depth_of_dots(cx))
    else {
        return Ok(func);
    };
    let body = func.view();
    let mut rw = func.edit();
    for expr in body.post_order() {
        let View::Call { callee, args, attrs } = body.view(expr) else { continue };
        let (Some(op), &[x, w]) = (body.op_name(callee), &args.to_vec()[..]) else { continue };
        let made = match op {
            "matmul" | "nn.dense" => is_in_columns(&rw, op, attrs)
                .and_then(|is_in_columns| product(&mut rw, [x, w], is_in_columns, multiple)),
            "nn.conv2d" if has_fast_pairs(cx) => convolution(&mut rw, [x, w], attrs),
            _ => None,
        };
        if let Some(made) = made
            && rw.body().ty(made) == body.ty(expr)
        {
            rw.replace(expr, made);
        }
    }
    rw.finish()
}

#[derive(Options)]
struct Options {
    /// the floats that are asked for the whole compilation: with bf16 products are computed so
    #[option(default = "", one_of = ["", "f16", "bf16", "f32"])]
    precision: String,
}

/// What the depth of a product has to be a multiple of, where there are tiles of bf16 or fast instructions.
fn depth_of_dots(cx: &PassContext) -> Option<i64> {
    match cx.has_feature("amx-bf16") {
        true => Some(TILE),
        false => has_fast_pairs(cx).then_some(DEPTH),
    }
}

/// Whether `vdpbf16ps` takes no longer than a multiply-add of as many f32.
pub(crate) fn has_fast_pairs(cx: &PassContext) -> bool {
    let target = cx.target();
    let is_fast = target.str("cpu").is_some_and(|cpu| cpu.starts_with("znver"));
    is_fast && cx.has_feature("avx512bf16") && target.int("vector_bits") == Some(512)
}

/// Whether the right matrix of a product lies column by column; none where it is no plain product.
fn is_in_columns(rw: &Rewriter, op: &str, attrs: Attrs) -> Option<bool> {
    let read = rw.terms().attrs(attrs);
    let is_plain = read.bool("transpose_a") != Some(true)
        && read.str("weight_layout").is_none_or(|layout| layout == "NK")
        && read.int("units").is_none()
        && read.str("out_dtype").is_none_or(|dtype| dtype.is_empty() || dtype == "f32");
    is_plain.then(|| op == "nn.dense" || read.bool("transpose_b") == Some(true))
}

fn product(
    rw: &mut Rewriter,
    [x, weights]: [Expr; 2],
    is_in_columns: bool,
    multiple: i64,
) -> Option<Expr> {
    let (dtype, mut shape) = rw.tensor(x)?;
    let &[first, second] = rw.extents(weights)?.as_slice() else { return None };
    let dtypes = (dtype, rw.tensor(weights)?.0);
    let is_one =
        shape.iter().rev().nth(1).is_some_and(|&rows| rw.terms().dim_value(rows) == Some(1));
    let is_fit = match dtypes {
        (DType::F32, DType::F32) => true,
        (DType::BF16, DType::BF16) => !is_one,
        _ => false,
    };
    if !is_fit || !rw.is_constant(weights) || shape.len() < 2 || first * second == 0 {
        return None;
    }
    let [depth, columns] = if is_in_columns { [second, first] } else { [first, second] };
    let whole = [rounded_up(depth, multiple), rounded_up(columns, LANES)];
    let last = shape.len() - 1;
    let x = rw.in_dtype(x, DType::BF16);
    let x = with_rows(rw, x, &shape);
    let x = padded(rw, x, [0, whole[0] - depth]);
    let weights = if is_in_columns { rw.transpose(weights, &[1, 0]) } else { weights };
    let weights = rw.in_dtype(weights, DType::BF16);
    let weights = padded(rw, weights, [whole[0] - depth, whole[1] - columns]);
    let weights = packed(rw, weights, whole, DEPTH);
    let mut y = rw.apply_with("nn.bf16_dots", &[x, weights], &[("columns", whole[1].into())]);
    if whole[1] != columns {
        let axis = rw.rank(y)? as i64 - 1;
        y = rw.slice(y, axis, 0, columns);
    }
    shape[last] = rw.cx().dim(columns);
    Some(rw.reshape(y, &shape))
}

/// A convolution with a constant kernel whose channels fill half vectors; few inputs, as those of an image, are filled up.
fn convolution(rw: &mut Rewriter, [x, weight]: [Expr; 2], attrs: Attrs) -> Option<Expr> {
    let kernel = rw.extents(weight)?;
    let channels = Channels::of(rw, x, &kernel, attrs)?;
    let dtypes = [x, weight].map(|arg| rw.tensor(arg).map(|(dtype, _)| dtype));
    let is_fit = dtypes == [Some(DType::F32); 2] && !kernel.contains(&0) && rw.is_constant(weight);
    if !is_fit || !channels.fill(HALF) {
        return None;
    }
    let [x, weight] = [x, weight].map(|arg| rw.in_dtype(arg, DType::BF16));
    let attrs = rw.cx().with_attr(attrs, "out_dtype", "f32".into());
    channels
        .filled(rw, [x, weight], |rw, x, weight| Some(rw.call_op("nn.conv2d", &[x, weight], attrs)))
}
