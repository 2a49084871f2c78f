//! Has products read constant weights as the integers that they are stored as.
//!
//! ```ir
//! %w = dequantize(const(u8[64, 256]), const(f32[64, 8]), const(u8[64, 8])) { axis = 1, block = 32 }
//! %y = matmul(%x, %w) { transpose_b = true }
//!                        =>
//! %y = nn.quantized_dense(%x, const(i8[4, 128, 16]), const(f32[8, 64])) { columns = 64, bits = 4 }
//! ```
//!
//! Where the data are bytes on a scale as well, a column has one scale, and the processor multiplies bytes, the product is one of integers, of
//! which `relax.ConvertToDots` packs the weights:
//!
//! ```ir
//! %a = subtract(cast(%x) { dtype = "i32" }, %z)
//! %y = matmul(multiply(cast(%a) { dtype = "f32" }, %s), dequantize(…))
//!                        =>
//! %y = multiply(cast(matmul(%a, const(i32[256, 64]))) { dtype = "f32" }, multiply(const(f32[64]), %s))
//! ```
//!
//! Folded, such weights would be floats of four or eight times the size, and a product of few rows takes as long as its weights take
//! to be read. Integers that all fit into four bits are packed by two. Zero points are subtracted here. What fits no signed byte is left
//! to `relax.FoldConstant`, as are blocks that do not divide the depth, and matrices so small that nothing is gained.
//!
//! With the option `weights` (`tenon compile --weights int4:32`) constant matrices of floats are quantized as well: to the nearest of 255
//! or of 15 numbers that are evenly spaced up to the largest magnitude of a column, or of so many neighbouring elements of it.

use std::collections::HashMap;

use tenon_plugin_api::prelude::*;

use crate::convert_to_dots::data_of_dots;
use crate::panels::Panels;
use crate::quantized::{Quantized, Width};

/// Elements of a matrix from which on its size matters.
const LEAST: i64 = 1 << 14;
/// Columns of a panel, at the least.
const LEAST_PANEL: i64 = 4;
/// Elements of a block below which scales take more room than is saved.
const LEAST_BLOCK: i64 = 8;

/// Has products read constant weights as the integers that they are stored as.
#[pass(
    name = "relax.KeepQuantizedWeights",
    opt_level = 1,
    phase = "optimize",
    before = ["relax.FoldConstant", "relax.KeepConstantLayout"]
)]
fn keep_quantized_weights(
    func: Function,
    _: &Module,
    cx: &PassContext,
    options: Options,
) -> Result<Function> {
    let width = width_of(&options.weights)?;
    if cx.keeps_floats() && width.is_none() {
        return Ok(func);
    }
    let body = func.view();
    let mut keep = Keep {
        rw: func.edit(),
        width,
        panels: Panels::of_target(cx).of_bytes(),
        has_dots: data_of_dots(cx).is_some(),
        made: HashMap::new(),
        integers: HashMap::new(),
        floats: Floats::default(),
    };
    for expr in body.post_order() {
        let View::Call { callee, args, attrs } = body.view(expr) else { continue };
        let Some(op @ ("matmul" | "nn.dense")) = body.op_name(callee) else { continue };
        let Some(is_in_columns) = is_in_columns(body.terms().attrs(attrs), op) else { continue };
        if cx.is_cancelled() {
            return Err(PassError::cancelled());
        }
        let &[data, weight] = args.to_vec().as_slice() else { continue };
        if let Some(product) = keep.product(data, weight, is_in_columns)
            && keep.rw.body().ty(product) == body.ty(expr)
        {
            keep.rw.replace(expr, product);
        }
    }
    keep.floats.tell(cx, &options.weights);
    keep.rw.finish()
}

/// Constant matrices of floats that were to be quantized.
#[derive(Default)]
struct Floats {
    quantized: usize,
    /// Those whose depth is no multiple of the block.
    uneven: usize,
    small: usize,
}

impl Floats {
    /// Says of those that were asked for in vain.
    fn tell(&self, cx: &PassContext, weights: &str) {
        let count = |count: usize| match count {
            1 => "1 constant matrix stays".to_owned(),
            count => format!("{count} constant matrices stay"),
        };
        if self.uneven > 0 {
            let count = count(self.uneven);
            cx.warn(&format!(
                "{count} in floats: `{weights}` needs a depth of whole blocks, and finite elements"
            ));
        } else if self.quantized == 0 && self.small > 0 {
            let count = count(self.small);
            cx.warn(&format!(
                "{count} in floats: below {LEAST} elements `{weights}` would gain nothing"
            ));
        }
    }
}

#[derive(Options)]
struct Options {
    /// what constant floats become: int8 or int4, behind a colon the elements that share a scale
    #[option(default = "")]
    weights: String,
}

/// To what floats are quantized, if they are.
fn width_of(text: &str) -> Result<Option<Width>> {
    if text.is_empty() {
        return Ok(None);
    }
    let (kind, block) = text.split_once(':').unwrap_or((text, "0"));
    let bits = [("int8", 8), ("int4", 4)].into_iter().find(|(name, _)| *name == kind);
    match (bits, block.parse::<usize>()) {
        (Some((_, bits)), Ok(block)) if block.is_multiple_of(2) => Ok(Some(Width { bits, block })),
        _ => Err(PassError::new(format!(
            "weights = {text:?} is no way to store weights: int8, int4, or with an even number of elements that share a scale, int4:32"
        ))),
    }
}

/// Whether the right matrix of a product lies column by column; none where it is no plain product.
fn is_in_columns(attrs: AttrsView<'_>, op: &str) -> Option<bool> {
    let is_plain = attrs.bool("transpose_a") != Some(true)
        && attrs.str("weight_layout").is_none_or(|layout| layout == "NK")
        && attrs.int("units").is_none()
        && attrs.str("out_dtype").is_none_or(str::is_empty);
    is_plain.then(|| op == "nn.dense" || attrs.bool("transpose_b") == Some(true))
}

struct Keep {
    rw: Rewriter,
    width: Option<Width>,
    panels: Panels,
    /// Whether the processor multiplies bytes.
    has_dots: bool,
    /// What matrices have become in panels of so many columns, by their definition and whether it lies column by column.
    made: HashMap<((Expr, bool), i64), Option<Packed>>,
    /// Those that are multiplied with bytes.
    integers: HashMap<(Expr, bool), Option<Integers>>,
    floats: Floats,
}

/// A matrix of i32, row by row, and the scales of its columns.
#[derive(Clone, Copy)]
struct Integers {
    weights: Expr,
    scales: Expr,
}

/// A matrix as `nn.quantized_dense` reads it.
#[derive(Clone, Copy)]
struct Packed {
    weights: Expr,
    scales: Expr,
    columns: i64,
    bits: i64,
}

impl Keep {
    fn product(&mut self, data: Expr, weight: Expr, is_in_columns: bool) -> Option<Expr> {
        let (source, is_in_columns) = self.source(weight, is_in_columns)?;
        let matrix = (self.rw.definition(source), is_in_columns);
        if let Some(product) = self.of_bytes(data, source, matrix) {
            return Some(product);
        }
        let columns = self.rw.extents(source)?[!is_in_columns as usize];
        let wide = self.panels.wide(&self.rw, data, columns);
        let panel = wide.unwrap_or_else(|| self.panels.lanes.max(LEAST_PANEL));
        let key = (matrix, panel);
        let packed = match self.made.get(&key) {
            Some(&made) => made?,
            None => {
                let made = self.packed(source, is_in_columns, panel);
                self.made.insert(key, made);
                made?
            }
        };
        let data = self.rw.body().resolve(data);
        let attrs = [("columns", packed.columns.into()), ("bits", packed.bits.into())];
        let args = [data, packed.weights, packed.scales];
        Some(self.rw.apply_with("nn.quantized_dense", &args, &attrs))
    }

    /// The product of bytes on a scale with a matrix whose columns have one scale each, in integers.
    fn of_bytes(&mut self, data: Expr, source: Expr, key: (Expr, bool)) -> Option<Expr> {
        if !self.has_dots {
            return None;
        }
        let scaled = self.rw.call_of(data, "multiply")?;
        let &[value, scale] = scaled.args.as_slice() else { return None };
        let cast = self.rw.call_of(value, "cast")?;
        let value = *cast.args.first()?;
        let moved = self.rw.call_of(value, "subtract");
        let bytes = moved.as_ref().map_or(value, |moved| moved.args[0]);
        let bytes = self.rw.call_of(bytes, "cast")?;
        let (dtype, dims) = self.rw.tensor(*bytes.args.first()?)?;
        let is_i32 = self.rw.tensor(value)?.0 == DType::I32;
        let is_of_bytes = [DType::I8, DType::U8].contains(&dtype) && dims.len() >= 2;
        if !is_of_bytes || !is_i32 || self.rw.tensor(scale)? != (DType::F32, Vec::new()) {
            return None;
        }
        let of_matrix = match self.integers.get(&key) {
            Some(&made) => made?,
            None => {
                let made = self.integers_of(source, key.1);
                self.integers.insert(key, made);
                made?
            }
        };
        let product = self.rw.apply("matmul", &[value, of_matrix.weights]);
        let product = self.rw.in_dtype(product, DType::F32);
        let scales = self.rw.apply("multiply", &[of_matrix.scales, scale]);
        Some(self.rw.apply("multiply", &[product, scales]))
    }

    fn integers_of(&mut self, source: Expr, is_in_columns: bool) -> Option<Integers> {
        let extents = self.rw.extents(source)?;
        let call = self.rw.call_of(source, "dequantize")?;
        let quantized = self.stored(&call, &extents, is_in_columns)?;
        if quantized.blocks() != 1 {
            return None;
        }
        let (depth, columns) = (quantized.depth as i64, quantized.columns as i64);
        let ty = self.rw.cx().static_tensor_type(DType::I32, &[depth, columns]);
        let weights = self.rw.constant(ty, &quantized.in_rows());
        let ty = self.rw.cx().static_tensor_type(DType::F32, &[columns]);
        let scales = self.rw.constant(ty, &quantized.scales_by_block());
        Some(Integers { weights, scales })
    }

    /// What a matrix is behind conversions and transposes, and whether that lies column by column.
    fn source(&mut self, weight: Expr, mut is_in_columns: bool) -> Option<(Expr, bool)> {
        let mut source = weight;
        loop {
            if self.rw.rank(source)? != 2 {
                return None;
            }
            if let Some(cast) = self.rw.call_of(source, "cast") {
                source = cast.args[0];
            } else if let Some(transpose) = self.rw.call_of(source, "transpose") {
                let axes = self.rw.terms().attrs(transpose.attrs).ints("axes");
                is_in_columns ^= axes.is_none_or(|axes| axes.first() != Some(&0));
                source = transpose.args[0];
            } else {
                return Some((source, is_in_columns));
            }
        }
    }

    fn packed(&mut self, source: Expr, is_in_columns: bool, lanes: i64) -> Option<Packed> {
        let extents = self.rw.extents(source)?;
        if extents.iter().product::<i64>() < LEAST {
            self.floats.small += usize::from(self.floats_of(source).is_some());
            return None;
        }
        let quantized = match self.rw.call_of(source, "dequantize") {
            Some(call) => self.stored(&call, &extents, is_in_columns)?,
            None => self.rounded(source, &extents, is_in_columns)?,
        };
        let (columns, bits) = (quantized.columns as i64, quantized.bits() as i64);
        let elements = quantized.depth as i64 * bits / 8;
        let blocks = (columns + lanes - 1) / lanes;
        let mut constant = |dtype, shape: &[i64], bytes: &[u8]| {
            let ty = self.rw.cx().static_tensor_type(dtype, shape);
            self.rw.constant(ty, bytes)
        };
        let bytes = quantized.packed(lanes as usize, bits as usize);
        let weights = constant(DType::I8, &[blocks, elements, lanes], &bytes);
        let shape = [quantized.blocks() as i64, columns];
        let scales = constant(DType::F32, &shape, &quantized.scales_by_block());
        Some(Packed { weights, scales, columns, bits })
    }

    /// The matrix that a call of `dequantize` has.
    fn stored(&mut self, call: &Call, extents: &[i64], is_in_columns: bool) -> Option<Quantized> {
        let attrs = self.rw.terms().attrs(call.attrs);
        let (axis, size) = (attrs.int("axis")? as usize, attrs.int("block")?);
        let &[data, scale, zero] = call.args.as_slice() else { return None };
        let shapes = [self.rw.extents(scale)?, self.rw.extents(zero)?];
        let deep = is_in_columns as usize;
        let depth = extents[deep];
        // Along the depth there is one for all, one for each block, or one for each element.
        let block = match shapes.iter().all(|shape| shape[deep] == 1) {
            true => depth,
            false if axis == deep => size,
            false => 1,
        };
        if block < LEAST_BLOCK || depth % block != 0 {
            return None;
        }
        let index = |column, k| if deep == 1 { [column, k] } else { [k, column] };
        let place = |shape: &[i64], column: usize, k: usize| {
            let mut i = index(column, k);
            i[axis] /= size as usize;
            let [row, column] = [0, 1].map(|at| if shape[at] == 1 { 0 } else { i[at] });
            row * shape[1] as usize + column
        };
        let [data, scale, zero] = [data, scale, zero].map(|each| self.constant_of(each));
        let (data, scale, zero) = (data?, scale?, zero?);
        let is_signed = self.rw.tensor(data)?.0 == DType::I8;
        let number = |byte: u8| match is_signed {
            true => i16::from(byte.cast_signed()),
            false => i16::from(byte),
        };
        let [data, scale, zero] = [data, scale, zero].map(|each| bytes_of(&self.rw, each));
        let (data, scale, zero) = (data?, scale?.as_chunks::<4>().0, zero?);
        let code = |column, k| {
            let [row, at]: [usize; 2] = index(column, k);
            let code = number(data[row * extents[1] as usize + at]);
            code - number(zero[place(&shapes[1], column, k)])
        };
        let scale = |column, k| f32::from_le_bytes(scale[place(&shapes[0], column, k)]);
        let extents = [extents[1 - deep], depth, block].map(|extent| extent as usize);
        Quantized::read(extents, code, scale)
    }

    /// A constant matrix of floats in integers, where that is wanted.
    fn rounded(&mut self, source: Expr, extents: &[i64], is_in_columns: bool) -> Option<Quantized> {
        let (width, definition) = self.floats_of(source)?;
        let bytes = bytes_of(&self.rw, definition)?.as_chunks::<4>().0;
        let [rows, columns] = [extents[0] as usize, extents[1] as usize];
        let value = |column: usize, k: usize| {
            let [row, column] = if is_in_columns { [column, k] } else { [k, column] };
            f32::from_le_bytes(bytes[row * columns + column])
        };
        let extents = if is_in_columns { [rows, columns] } else { [columns, rows] };
        let quantized = Quantized::rounded(extents, width, value);
        match quantized {
            Some(_) => self.floats.quantized += 1,
            None => self.floats.uneven += 1,
        }
        quantized
    }

    /// The definition of a constant matrix of floats, and to what it is quantized, where that is wanted.
    fn floats_of(&mut self, source: Expr) -> Option<(Width, Expr)> {
        let definition = self.rw.definition(source);
        let is_f32 = self.rw.tensor(definition)?.0 == DType::F32;
        let is_meant = is_f32 && self.rw.is_constant(definition);
        Some((self.width.filter(|_| is_meant)?, definition))
    }

    /// The constant that an expression is, or becomes when a chain of calls is evaluated, each of the one before and of what is
    /// constant besides.
    fn constant_of(&mut self, expr: Expr) -> Option<Expr> {
        const STEPS: [&str; 6] =
            ["reshape", "broadcast_to", "cast", "strided_slice", "storage.bytes", "storage.decode"];
        let mut chain = Vec::new();
        let mut at = self.rw.definition(expr);
        while !self.rw.is_constant(at) {
            let (op, call) = STEPS.iter().find_map(|&op| Some((op, self.rw.call_of(at, op)?)))?;
            at = self.rw.definition(*call.args.first()?);
            chain.push((op, call));
        }
        for (op, call) in chain.into_iter().rev() {
            let args: Vec<Expr> =
                std::iter::once(at).chain(call.args.iter().skip(1).copied()).collect();
            let call = self.rw.call_op(op, &args, call.attrs);
            at = self.rw.evaluate(call).ok()?;
        }
        Some(at)
    }
}

/// The elements of a constant.
fn bytes_of(rw: &Rewriter, expr: Expr) -> Option<&[u8]> {
    match rw.view(expr) {
        View::Constant(constant) => Some(constant.bytes),
        _ => None,
    }
}
