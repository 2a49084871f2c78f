//! Convolutions of bytes with constant kernels.
//!
//! ```ir
//! %y = nn.conv2d(subtract(cast(%x) { dtype = "i32" }, %z), const(i32[64, 64, 3, 3], …)) { padding = [1, 1, 1, 1] }
//!                        =>
//! %w = cast(const) { dtype = "i8" }
//! %d = nn.byte_conv2d(%x, %w, cast(%z) { dtype = "u8" }) { padding = [1, 1, 1, 1] }
//! %y = subtract(%d, multiply(%z, sum(const) { axis = [1, 2, 3] }))
//! ```
//!
//! What lies beyond the data is zero, for which `z` stands in bytes. `relax.AlterOpLayout` puts channels in blocks of quads.

use tenon_plugin_api::prelude::*;

use super::weights::Weights;
use super::{DEPTH, LANES, longer, moved, rounded_up};

/// Channels of a convolution that dot products compute.
pub(crate) struct Channels {
    inputs: i64,
    outputs: i64,
    groups: i64,
}

impl Channels {
    /// Those of a convolution in plain layouts whose channels fill quads and vectors, or do so with some more; in groups
    /// they have to fill them.
    pub(crate) fn of(rw: &Rewriter, data: Expr, kernel: &[i64], attrs: Attrs) -> Option<Self> {
        let attrs = rw.terms().attrs(attrs);
        let is_plain = |key: &str, plain: &str| attrs.str(key).is_none_or(|text| text == plain);
        let [layout, kernel_layout] = match kernel.len() {
            5 => ["NCDHW", "OIDHW"],
            _ => ["NCHW", "OIHW"],
        };
        let is_known = is_plain("data_layout", layout)
            && is_plain("kernel_layout", kernel_layout)
            && ["out_layout", "out_dtype"].iter().all(|key| is_plain(key, ""));
        let (_, dims) = rw.tensor(data)?;
        let (&[_, inputs, _, _, ..], &[outputs, per_group, _, _, ..]) = (dims.as_slice(), kernel)
        else {
            return None;
        };
        let (inputs, groups) = (rw.terms().dim_value(inputs)?, attrs.int("groups").unwrap_or(1));
        let is_full = per_group % DEPTH == 0 && (outputs / groups) % LANES == 0;
        let is_any = inputs > 0 && outputs > 0 && (groups == 1 || is_full);
        (is_known && is_any).then_some(Self { inputs, outputs, groups })
    }

    /// Whether they are multiples of a number, but for inputs that are fewer.
    pub(crate) fn fill(&self, size: i64) -> bool {
        self.outputs % size == 0 && (self.inputs % size == 0 || self.inputs < size)
    }

    /// How many outputs and inputs are added, so that they fill quads.
    fn more(&self) -> [i64; 2] {
        match self.groups {
            1 => [self.outputs, self.inputs].map(|channels| rounded_up(channels, DEPTH) - channels),
            _ => [0; 2],
        }
    }

    /// What is computed of data and a kernel with zeros in the channels that are added, without the results of those.
    pub(crate) fn filled(
        &self,
        rw: &mut Rewriter,
        [x, kernel]: [Expr; 2],
        computed: impl FnOnce(&mut Rewriter, Expr, Expr) -> Option<Expr>,
    ) -> Option<Expr> {
        let more = self.more();
        let x = padded(rw, x, [0, more[1]]);
        let kernel = padded(rw, kernel, more);
        let y = computed(rw, x, kernel)?;
        Some(if more[0] == 0 { y } else { rw.slice(y, 1, 0, self.outputs) })
    }
}

/// The convolution by dot products, which read data of `dtype`.
pub(super) fn made(
    rw: &mut Rewriter,
    [data, weight]: [Expr; 2],
    attrs: Attrs,
    dtype: DType,
) -> Option<Expr> {
    let kernel = rw.extents(weight)?;
    let channels = Channels::of(rw, data, &kernel, attrs)?;
    if rw.tensor(weight)?.0 != DType::I32 || kernel.contains(&0) {
        return None;
    }
    let weights = Weights::of(rw, weight, 0)?;
    if weights.more.is_some() && channels.groups > 1 {
        return None;
    }
    let is_padded = rw
        .terms()
        .attrs(attrs)
        .ints("padding")
        .is_some_and(|all| all.iter().any(|&width| width != 0));
    let bytes = Bytes::of(rw, data, is_padded, dtype)?;
    channels.filled(rw, [bytes.x, weights.bytes], |rw, x, whole| {
        let narrow = rw.in_dtype(whole, DType::I8);
        let mut y = rw.call_op(op_of(&kernel), &[x, narrow, bytes.beyond], attrs);
        let more = channels.more()[0];
        let mut dims = vec![rw.cx().dim(1); kernel.len() - 1];
        dims[0] = rw.cx().dim(channels.outputs + more);
        if let Some(zero) = bytes.zero {
            let axes: Vec<i64> = (1..kernel.len() as i64).collect();
            let attrs = [("axis", AttrValue::Ints(axes)), ("keepdims", false.into())];
            let sums = rw.apply_with("sum", &[whole], &attrs);
            let sums = rw.reshape(sums, &dims);
            let moved = rw.apply("multiply", &[sums, zero]);
            y = rw.apply("subtract", &[y, moved]);
        }
        if let Some(added) = weights.more {
            let sums = sums_of_windows(rw, x, &bytes, &kernel, attrs)?;
            let added = longer(rw, added, more);
            let added = rw.reshape(added, &dims);
            let moved = rw.apply("multiply", &[sums, added]);
            y = rw.apply("add", &[y, moved]);
        }
        Some(y)
    })
}

/// The convolution of bytes with a kernel of these extents.
fn op_of(kernel: &[i64]) -> &'static str {
    match kernel.len() {
        5 => "nn.byte_conv3d",
        _ => "nn.byte_conv2d",
    }
}

/// The sums of all that each window of a kernel sees, without zeros: one channel of a convolution with ones.
fn sums_of_windows(
    rw: &mut Rewriter,
    x: Expr,
    bytes: &Bytes,
    kernel: &[i64],
    attrs: Attrs,
) -> Option<Expr> {
    let count: i64 = kernel[1..].iter().product();
    let ones = vec![1u8; usize::try_from(LANES * count).ok()?];
    let ty = [&[LANES], &kernel[1..]].concat();
    let ty = rw.cx().static_tensor_type(DType::I8, &ty);
    let ones = rw.constant(ty, &ones);
    let ones = padded(rw, ones, [0, rounded_up(kernel[1], DEPTH) - kernel[1]]);
    let sums = rw.call_op(op_of(kernel), &[x, ones, bytes.beyond], attrs);
    let sums = rw.slice(sums, 1, 0, 1);
    let Some(zero) = bytes.zero else { return Some(sums) };
    let count = rw.number(DType::I32, count as f64)?;
    let zeros = rw.apply("multiply", &[zero, count]);
    Some(rw.apply("subtract", &[sums, zeros]))
}

/// Data that stand for `x - zero`.
struct Bytes {
    /// Of the dtype that is wanted.
    x: Expr,
    /// In i32; none where it is zero.
    zero: Option<Expr>,
    /// Of the same.
    beyond: Expr,
}

impl Bytes {
    fn of(rw: &mut Rewriter, data: Expr, is_padded: bool, wanted: DType) -> Option<Self> {
        // Lines are images of one row.
        let (data, shape) = match rw.call_of(data, "reshape") {
            Some(call) => (call.args[0], Some(call.args[1])),
            None => (data, None),
        };
        let (cast, zero) = match rw.call_of(data, "subtract") {
            Some(difference) => (difference.args[0], Some(difference.args[1])),
            None => (data, None),
        };
        let zero = zero.filter(|&zero| rw.splat(zero) != Some(0.0));
        let mut x = rw.call_of(cast, "cast")?.args[0];
        let (dtype, _) = rw.tensor(x)?;
        if !matches!(dtype, DType::U8 | DType::I8) {
            return None;
        }
        if let Some(zero) = zero
            && (!rw.tensor(zero)?.1.is_empty() || (is_padded && !is_of_type(rw, zero, dtype)))
        {
            return None;
        }
        let mut zero = zero;
        if dtype != wanted {
            (x, zero) = moved(rw, x, zero, wanted)?;
        }
        if let Some(shape) = shape {
            x = rw.apply("reshape", &[x, shape]);
        }
        let beyond = match zero {
            Some(zero) if is_padded => rw.in_dtype(zero, wanted),
            _ => rw.number(wanted, 0.0)?,
        };
        Some(Self { x, zero, beyond })
    }
}

/// Whether a number of i32 is one of a type of bytes: a constant, or a conversion from that type.
fn is_of_type(rw: &mut Rewriter, number: Expr, dtype: DType) -> bool {
    let (least, most) = dtype.int_bounds();
    if let Some(value) = rw.splat(number) {
        return (least as f64..=most as f64).contains(&value);
    }
    let source = rw.call_of(number, "cast").and_then(|cast| cast.args.first().copied());
    source.and_then(|source| rw.tensor(source)).is_some_and(|(own, _)| own == dtype)
}

/// A tensor with so many zeros behind the first two axes.
fn padded(rw: &mut Rewriter, x: Expr, [first, second]: [i64; 2]) -> Expr {
    let Some(rank) = rw.rank(x).filter(|_| [first, second] != [0, 0]) else { return x };
    let mut widths = vec![0; 2 * rank];
    [widths[1], widths[3]] = [first, second];
    rw.apply_with("nn.pad", &[x], &[("pad_width", AttrValue::Ints(widths))])
}
