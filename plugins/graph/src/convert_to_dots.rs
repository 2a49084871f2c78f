//! Computes products and convolutions of bytes with constants by instructions for dot products, where the processor has them.
//!
//! ```ir
//! %a = subtract(cast(%x) { dtype = "i32" }, %z)          %x: u8[m, 64], %z: i32[]
//! %y = matmul(%a, const(i32[64, 30], …))
//!                        =>
//! %w = transpose(reshape(nn.pad(cast(const) { dtype = "i8" })))      packed in quads of 16 columns
//! %d = nn.byte_dots(%x, %w) { columns = 30 }
//! %y = subtract(%d, multiply(%z, sum(const) { axis = [0] }))
//! ```
//!
//! `(x - z) w` is `x w - z s` with the sums s of the columns of w, in integers to the last bit. `vpdpbusd` of x86-64 and `usdot` of Arm
//! (i8mm) read data of u8, `sdot` (dotprod) such of i8: others are moved by 128, and so is their zero point. What follows, scales and rounding, fuses with the product as it does with any other.
//! `relax.FoldConstant` packs the weights, which then take a byte each.
//!
//! Depths that are no multiple of four are filled with zeros, and so are columns. Numbers of a column that are no signed bytes, as unsigned
//! ones without their zero, become such by one that is added to all of them, which is multiplied with the sum of a row. Those that are
//! farther apart are left alone.

use tenon_plugin_api::prelude::*;

use self::weights::Weights;

pub(crate) use self::convolution::Channels;

mod convolution;
mod weights;

/// Columns that an instruction computes, and products in each.
pub(crate) const LANES: i64 = 16;
const DEPTH: i64 = 4;
/// Rows from which on tiles of them are next to all.
const MANY: i64 = 24;

/// Computes products and convolutions of bytes by dot products, where the processor has instructions for them.
#[pass(
    name = "relax.ConvertToDots",
    opt_level = 3,
    phase = "optimize",
    after = ["relax.FoldScaleAxis", "relax.RunCodegen"],
    before = ["relax.AlterOpLayout"],
    requires = ["relax.FoldConstant"]
)]
fn convert_to_dots(func: Function, _: &Module, cx: &PassContext) -> Result<Function> {
    let Some(data) = data_of_dots(cx) else { return Ok(func) };
    let body = func.view();
    let mut rw = func.edit();
    for expr in body.post_order() {
        let View::Call { callee, args, attrs } = body.view(expr) else { continue };
        let made = match (body.op_name(callee), &args.to_vec()[..]) {
            (Some("matmul"), &[a, b]) if attrs == Attrs::NONE => {
                Product::of(&mut rw, a, b).and_then(|product| product.made(&mut rw, data))
            }
            (Some("nn.conv2d" | "nn.conv3d"), &[x, weight]) => {
                convolution::made(&mut rw, [x, weight], attrs, data)
            }
            _ => continue,
        };
        if let Some(made) = made
            && rw.body().ty(made) == body.ty(expr)
        {
            rw.replace(expr, made);
        }
    }
    rw.finish()
}

/// The dtype of the data that instructions for dot products read, of vectors as long as the target wants them; none where it has none.
pub(crate) fn data_of_dots(cx: &PassContext) -> Option<DType> {
    let has = |features: &[&str]| features.iter().any(|feature| cx.has_feature(feature));
    match cx.target().int("vector_bits") {
        Some(512) if has(&["avx512vnni"]) => Some(DType::U8),
        Some(256) if has(&["avx512vnni", "avxvnni"]) => Some(DType::U8),
        Some(128) if has(&["i8mm"]) => Some(DType::U8),
        Some(128) if has(&["dotprod"]) => Some(DType::I8),
        _ => None,
    }
}

/// `(x - zero) w`, with bytes x and a constant w.
struct Product {
    x: Expr,
    zero: Option<Expr>,
    dtype: DType,
    weights: Weights,
    /// Depth and columns.
    extents: [i64; 2],
}

impl Product {
    fn of(rw: &mut Rewriter, a: Expr, b: Expr) -> Option<Self> {
        let (dtype, &[depth, columns]) = rw.terms().tensor(rw.body().ty(b)?)? else { return None };
        let extents = [rw.terms().dim_value(depth)?, rw.terms().dim_value(columns)?];
        if dtype != DType::I32 || extents.contains(&0) {
            return None;
        }
        let weights = Weights::of(rw, b, 1)?;
        let (cast, zero) = match rw.call_of(a, "subtract") {
            Some(difference) => (difference.args[0], Some(difference.args[1])),
            None => (a, None),
        };
        if let Some(zero) = zero {
            let (_, &[]) = rw.terms().tensor(rw.body().ty(zero)?)? else { return None };
        }
        let x = rw.call_of(cast, "cast")?.args[0];
        let (dtype, dims) = rw.terms().tensor(rw.body().ty(x)?)?;
        let is_bytes = matches!(dtype, DType::U8 | DType::I8) && dims.len() >= 2;
        is_bytes.then_some(Self { x, zero, dtype, weights, extents })
    }

    /// The product of data of `dtype`.
    fn made(&self, rw: &mut Rewriter, dtype: DType) -> Option<Expr> {
        let [depth, columns] = self.extents;
        let mut shape = rw.terms().tensor(rw.body().ty(self.x)?)?.1.to_vec();
        let last = shape.len() - 1;
        let whole = [rounded_up(depth, DEPTH), rounded_up(columns, LANES)];
        let (mut x, mut zero) = (self.x, self.zero);
        if self.dtype != dtype {
            (x, zero) = moved(rw, x, zero, dtype)?;
        }
        let rows = with_rows(rw, x, &shape);
        let x = padded(rw, rows, [0, whole[0] - depth]);
        let packed = self.packed(rw, whole);
        let mut y = rw.apply_with("nn.byte_dots", &[x, packed], &[("columns", whole[1].into())]);
        if let Some(zero) = zero {
            let axes = AttrValue::from(rw.cx().int_list(&[0]));
            let attrs = [("axis", axes), ("keepdims", false.into())];
            let weights = padded(rw, self.weights.bytes, [0, whole[1] - columns]);
            let sums = rw.apply_with("sum", &[weights], &attrs);
            let moved = rw.apply("multiply", &[sums, zero]);
            y = rw.apply("subtract", &[y, moved]);
        }
        if let Some(more) = self.weights.more {
            let more = longer(rw, more, whole[1] - columns);
            let sums = sums_of_rows(rw, rows, zero, depth)?;
            let moved = rw.apply("multiply", &[sums, more]);
            y = rw.apply("add", &[y, moved]);
        }
        if whole[1] != columns {
            let axis = rw.rank(y)? as i64 - 1;
            y = rw.slice(y, axis, 0, columns);
        }
        shape[last] = rw.cx().dim(columns);
        Some(rw.reshape(y, &shape))
    }

    /// The weights in quads of rows of 16 columns, with zeros beyond the last column.
    fn packed(&self, rw: &mut Rewriter, [depth, columns]: [i64; 2]) -> Expr {
        let w = rw.apply_with("cast", &[self.weights.bytes], &[("dtype", "i8".into())]);
        let w = padded(rw, w, [depth - self.extents[0], columns - self.extents[1]]);
        packed(rw, w, [depth, columns], DEPTH)
    }
}

/// A matrix of whole steps and columns in so many rows together of 16 columns.
pub(crate) fn packed(
    rw: &mut Rewriter,
    w: Expr,
    [depth, columns]: [i64; 2],
    together: i64,
) -> Expr {
    let shape = [depth / together, together, columns / LANES, LANES];
    let shape = shape.map(|extent| rw.cx().dim(extent));
    let w = rw.reshape(w, &shape);
    rw.transpose(w, &[2, 0, 3, 1])
}

/// Data of a shape as a product with packed weights reads them: as one matrix where the last two axes have few rows of what there
/// are, since a tile has some at once; otherwise as they are, so that what follows fuses with the product.
pub(crate) fn with_rows(rw: &mut Rewriter, x: Expr, shape: &[Dim]) -> Expr {
    let &[ref outer @ .., rows, depth] = shape else { return x };
    let value = |dim: &Dim| rw.terms().dim_value(*dim);
    if outer.iter().all(|dim| value(dim) == Some(1)) || value(&rows).is_none_or(|rows| rows >= MANY)
    {
        return x;
    }
    let rows = rw.cx().dim_product(&shape[..shape.len() - 1]);
    rw.reshape(x, &[rows, depth])
}

/// Matrices with so many rows and columns of zeros behind their own.
pub(crate) fn padded(rw: &mut Rewriter, x: Expr, [rows, columns]: [i64; 2]) -> Expr {
    if [rows, columns] == [0, 0] {
        return x;
    }
    let mut widths = vec![0; 2 * rw.rank(x).unwrap_or(2)];
    let last = widths.len() - 1;
    (widths[last - 2], widths[last]) = (rows, columns);
    rw.apply_with("nn.pad", &[x], &[("pad_width", AttrValue::Ints(widths))])
}

/// A vector with so many zeros behind its elements.
fn longer(rw: &mut Rewriter, x: Expr, zeros: i64) -> Expr {
    let widths = AttrValue::Ints(vec![0, zeros]);
    if zeros == 0 { x } else { rw.apply_with("nn.pad", &[x], &[("pad_width", widths)]) }
}

/// The sums of rows of so many bytes, without their zeros.
fn sums_of_rows(rw: &mut Rewriter, x: Expr, zero: Option<Expr>, depth: i64) -> Option<Expr> {
    let wide = rw.in_dtype(x, DType::I32);
    let attrs = [("axis", AttrValue::Ints(vec![-1])), ("keepdims", true.into())];
    let sums = rw.apply_with("sum", &[wide], &attrs);
    let Some(zero) = zero else { return Some(sums) };
    let count = rw.number(DType::I32, depth as f64)?;
    let zeros = rw.apply("multiply", &[zero, count]);
    Some(rw.apply("subtract", &[sums, zeros]))
}

pub(crate) fn rounded_up(value: i64, multiple: i64) -> i64 {
    (value + multiple - 1) / multiple * multiple
}

/// Bytes as those of the other dtype, which are greater or less by 128, and what is zero among these.
fn moved(
    rw: &mut Rewriter,
    x: Expr,
    zero: Option<Expr>,
    dtype: DType,
) -> Option<(Expr, Option<Expr>)> {
    let as_bytes = |rw: &mut Rewriter, x, dtype: DType| {
        rw.apply_with("reinterpret", &[x], &[("dtype", dtype.to_string().as_str().into())])
    };
    let half = rw.number(DType::U8, 128.0)?;
    let (x, distance) = match dtype {
        DType::U8 => {
            let x = as_bytes(rw, x, DType::U8);
            (rw.apply("bitwise_xor", &[x, half]), 128.0)
        }
        _ => {
            let x = rw.apply("bitwise_xor", &[x, half]);
            (as_bytes(rw, x, DType::I8), -128.0)
        }
    };
    let distance = rw.number(DType::I32, distance)?;
    let zero = match zero {
        Some(zero) => rw.apply("add", &[zero, distance]),
        None => distance,
    };
    Some((x, Some(zero)))
}
