//! Computes convolutions with constant kernels of three by three taps by Winograd's algorithm, where that takes less time.
//!
//! ```ir
//! %y = nn.conv2d(%x, const) { padding = [1, 1, 1, 1] }
//!                        =>
//! %u = nn.winograd_weights(const) { tile = 4 }
//! %y = nn.conv2d_winograd(%x, %u) { tile = 4, padding = [1, 1, 1, 1] }
//! ```
//!
//! Tiles of 4 by 4 places take a quarter of the multiplications, and weights four times as large; those of 2 by 2 four ninths, and
//! less than twice (Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2016). So it pays where images are large
//! enough for weights to be read less often than they are multiplied, and seldom where plain convolutions run by dot products of bf16.
//! Results are less exact, by up to some hundred-thousandths of the largest; `docs/numerics.md` says how much. Where floats are strict
//! nothing is done; with `--disable relax.ConvertToWinograd` neither.
//!
//! Kernels whose channels fill no vectors are left alone, and what is computed in steps, at distances or in groups.
//! `relax.AlterOpLayout` chooses layouts, `relax.FoldConstant` computes the weights.

use tenon_plugin_api::prelude::*;

use crate::convert_to_short_dots::has_fast_pairs;

/// Places along an axis that are computed together, the largest first.
const TILES: [i64; 2] = [4, 2];
/// Taps of a kernel along an axis.
const TAPS: i64 = 3;
/// Bytes that a core reads of memory in a cycle: of the order of today's servers.
const BYTES_PER_CYCLE: f64 = 5.0;
/// The share of the peak that products reach.
const SHARE: f64 = 0.9;
/// Vector operations of a tile on the data of a channel before the products and on its result behind them, by which they are
/// transformed.
const TRANSFORMS: f64 = 110.0;
/// Of two things that run beside each other the shorter one hides but for this.
const SEEN: f64 = 0.3;
/// What has to be gained: smaller differences are not worth larger weights.
const GAIN: f64 = 0.9;
/// The same beside dot products of bf16, whose weights are half as large, and which more threads share out better: with 0.9 densenet121
/// takes 8 % longer on two cores of a Zen 4, and nothing else is faster.
const GAIN_BESIDE_PAIRS: f64 = 0.7;
/// Rows and columns of images of which nobody knows how many they have: as deep in a network. What pays for them pays for larger ones.
const UNKNOWN: i64 = 14;

/// Computes convolutions of 3x3 taps by Winograd's algorithm, where that is faster.
#[pass(
    name = "relax.ConvertToWinograd",
    opt_level = 3,
    phase = "optimize",
    after = ["relax.FoldScaleAxis", "relax.RunCodegen"],
    before = ["relax.AlterOpLayout"],
    requires = ["relax.FoldConstant"],
    tolerance = 1e-4
)]
fn convert_to_winograd(
    func: Function,
    _: &Module,
    cx: &PassContext,
    options: Options,
) -> Result<Function> {
    let (Some(bits), false) = (cx.target().int("vector_bits"), cx.keeps_floats()) else {
        return Ok(func);
    };
    let machine = Machine {
        lanes: bits / 32,
        units: cx.target().int("fma_units").unwrap_or(2),
        has_pairs: options.precision == "bf16" && has_fast_pairs(cx),
    };
    let body = func.view();
    let mut rw = func.edit();
    for expr in body.post_order() {
        let View::Call { callee, args, attrs } = body.view(expr) else { continue };
        let (Some("nn.conv2d"), &[x, weight]) = (body.op_name(callee), &args.to_vec()[..]) else {
            continue;
        };
        let Some(sizes) = Sizes::of(&rw, [x, weight, expr], attrs) else { continue };
        if !rw.is_constant(weight) {
            continue;
        }
        let Some(tile) = sizes.best(machine) else { continue };
        let padding = body.terms().attrs(attrs).ints("padding").unwrap_or(vec![0; 4]);
        let [x, weight] = [x, weight].map(|it| rw.body().resolve(it));
        let of_tile = rw.cx().attrs(&[("tile", tile.into())]);
        let weight = rw.call_op("nn.winograd_weights", &[weight], of_tile);
        let attrs = rw.cx().with_attr(of_tile, "padding", padding.into());
        let product = rw.call_op("nn.conv2d_winograd", &[x, weight], attrs);
        rw.replace(expr, product);
    }
    rw.finish()
}

#[derive(Options)]
struct Options {
    /// the floats that are asked for the whole compilation: with bf16 plain convolutions take half the time where there are fast dot
    /// products of these
    #[option(default = "", one_of = ["", "f16", "bf16", "f32"])]
    precision: String,
}

#[derive(Clone, Copy)]
struct Machine {
    /// f32 lanes of a vector.
    lanes: i64,
    /// Multiply-adds of vectors in a cycle.
    units: i64,
    /// Whether plain convolutions run by dot products of bf16, which do twice as much.
    has_pairs: bool,
}

/// The extents of a convolution.
struct Sizes {
    inputs: i64,
    outputs: i64,
    /// Rows and columns of the result, or as many as are expected.
    image: [i64; 2],
}

impl Sizes {
    /// Those of a convolution of 3x3 taps in f32 and in plain layouts, in steps of one and without groups.
    fn of(rw: &Rewriter, [x, weight, out]: [Expr; 3], attrs: Attrs) -> Option<Self> {
        let read = rw.terms().attrs(attrs);
        let is_plain = |key: &str, plain: &str| read.str(key).is_none_or(|text| text == plain);
        let is_one = |key: &str| read.ints(key).is_none_or(|steps| steps == [1, 1]);
        let is_simple = is_plain("data_layout", "NCHW")
            && is_plain("kernel_layout", "OIHW")
            && ["out_layout", "out_dtype"].iter().all(|key| is_plain(key, ""))
            && is_one("strides")
            && is_one("dilation")
            && read.int("groups").is_none_or(|groups| groups == 1);
        let tensor = |expr| rw.terms().tensor(rw.body().ty(expr)?);
        let (dtype, _) = tensor(x)?;
        if !is_simple || dtype != DType::F32 {
            return None;
        }
        let known = |dim: Dim| rw.terms().dim_value(dim);
        let (_, &[outputs, inputs, taps_h, taps_w]) = tensor(weight)? else { return None };
        let (_, &[_, _, height, width]) = tensor(out)? else { return None };
        let sizes = Self {
            inputs: known(inputs)?,
            outputs: known(outputs)?,
            image: [height, width].map(|extent| known(extent).unwrap_or(UNKNOWN)),
        };
        ([taps_h, taps_w].map(known) == [Some(TAPS); 2]).then_some(sizes)
    }

    /// The tile that takes least time, if one is worth it.
    fn best(&self, machine: Machine) -> Option<i64> {
        let lanes = machine.lanes;
        if lanes < 2 || self.inputs % lanes != 0 || self.outputs % lanes != 0 {
            return None;
        }
        let costs = TILES.map(|tile| (tile, self.cycles(tile, machine)));
        let (tile, least) = costs.into_iter().min_by(|(_, a), (_, b)| a.total_cmp(b))?;
        let plain = self.products((TAPS * TAPS * self.image[0] * self.image[1]) as f64, machine);
        let (plain, gain) =
            if machine.has_pairs { (plain / 2.0, GAIN_BESIDE_PAIRS) } else { (plain, GAIN) };
        (least < gain * plain).then_some(tile)
    }

    /// Cycles of the algorithm with tiles of so many places along an axis.
    fn cycles(&self, tile: i64, machine: Machine) -> f64 {
        let points = ((tile + TAPS - 1) * (tile + TAPS - 1)) as f64;
        let tiles = self.image.map(|extent| ((extent + tile - 1) / tile) as f64);
        let tiles = tiles[0] * tiles[1];
        let products = self.products(points * tiles, machine);
        let weights = 4.0 * points * (self.inputs * self.outputs) as f64 / BYTES_PER_CYCLE;
        let vectors = (self.inputs + self.outputs) as f64 / machine.lanes as f64;
        // Of the larger tile: those of smaller ones are as many for the same places.
        let transforms = tiles * vectors * TRANSFORMS * points / 36.0;
        products.max(weights) + SEEN * products.min(weights) + transforms
    }

    /// Cycles of so many products of a row of input channels with all output channels.
    fn products(&self, count: f64, machine: Machine) -> f64 {
        let elements = count * (self.inputs * self.outputs) as f64;
        elements / (machine.lanes * machine.units) as f64 / SHARE
    }
}
