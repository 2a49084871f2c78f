//! `MatMulNBits`: weights in blocks of integers of few bits.
//!
//! ```text
//! B: uint8[n, blocks, block * bits / 8]    y = a ((B - z) s)' + bias    a scale s and a zero point z for each block
//! ```

use tenon_plugin_api::rule::prelude::*;

use crate::steps::{cast_to, needed, plus_input, reshape_to, sliced};

/// `MatMulNBits`.
#[rule(import.onnx, domain = "com.microsoft", key = "MatMulNBits")]
fn matmul_n_bits(node: &mut Node<'_>) -> Outputs {
    // It allows other results; these are exact.
    node.ignore("accuracy_level");
    if node.int_or("weight_prepacked", 0)? != 0 {
        return unsupported("weights that are packed for one processor");
    }
    if node.optional(4).is_some() {
        return unsupported("groups of weights that are given by their places");
    }
    let (a, b, scales) = (node.input(0)?, node.input(1)?, node.input(2)?);
    let packing = Packing::of(node)?;
    let one = node.cx().dim(1);
    let [rows, blocks, block] =
        [packing.rows, packing.blocks(), packing.block].map(|count| node.cx().dim(count));
    let dtype = node.dtype(a)?;
    let weights = packing.unpacked(node, b, packing.blocks() * packing.block)?;
    if let Some(weights) = packing.on_scales(node, weights, scales)? {
        let weights = cast_to(node, weights, dtype)?;
        let y = node.call("matmul", &[a, weights], &[("transpose_b", true.into())])?;
        return Ok(vec![plus_input(node, y, 5)?]);
    }
    let weights = cast_to(node, weights, DType::F32)?;
    let weights = reshape_to(node, weights, &[rows, blocks, block])?;
    let zero = packing.zero_points(node)?;
    let zero = match zero {
        Some(zero) => reshape_to(node, zero, &[rows, blocks, one])?,
        None => node.scalar(DType::F32, 2f64.powi(packing.bits as i32 - 1))?,
    };
    let scales = cast_to(node, scales, DType::F32)?;
    let scales = reshape_to(node, scales, &[rows, blocks, one])?;
    let weights = node.apply("subtract", &[weights, zero])?;
    let weights = node.apply("multiply", &[weights, scales])?;
    let width = node.cx().dim(packing.blocks() * packing.block);
    let weights = reshape_to(node, weights, &[rows, width])?;
    let weights = sliced(node, weights, 1, [0, packing.columns])?;
    let weights = cast_to(node, weights, dtype)?;
    let y = node.call("matmul", &[a, weights], &[("transpose_b", true.into())])?;
    Ok(vec![plus_input(node, y, 5)?])
}

/// How weights lie in bytes.
struct Packing {
    rows: i64,
    columns: i64,
    block: i64,
    bits: i64,
}

impl Packing {
    fn of(node: &Node<'_>) -> Result<Self, Problem> {
        let (rows, columns) = (needed(node, "N")?, needed(node, "K")?);
        let (block, bits) = (needed(node, "block_size")?, node.int_or("bits", 4)?);
        if ![2, 4, 8].contains(&bits) {
            return unsupported(format!("weights of {bits} bits"));
        }
        if rows < 1 || columns < 1 || block < 16 || block & (block - 1) != 0 {
            return invalid(format!("blocks of {block} in {rows} times {columns} weights"));
        }
        Ok(Self { rows, columns, block, bits })
    }

    fn blocks(&self) -> i64 {
        (self.columns + self.block - 1) / self.block
    }

    /// As many integers for each row, which begins with a byte of its own.
    fn unpacked(&self, node: &mut Node<'_>, bytes: Value, count: i64) -> Result<Value, Problem> {
        let per_byte = 8 / self.bits;
        let of_row = (count + per_byte - 1) / per_byte;
        let all = node.cx().dim(self.rows * of_row);
        let bytes = reshape_to(node, bytes, &[all])?;
        let shape = [self.rows, of_row * per_byte].map(|extent| node.cx().dim(extent));
        if self.bits == 8 {
            return reshape_to(node, bytes, &shape);
        }
        let shape = node.shape(&shape)?;
        let dtype = format!("u{}", self.bits);
        let codes = node.call("storage.decode", &[bytes, shape], &[("dtype", dtype.into())])?;
        sliced(node, codes, 1, [0, count])
    }

    /// Weights as one call, which products know how to keep as it is; none where zero points are floats.
    fn on_scales(
        &self,
        node: &mut Node<'_>,
        weights: Value,
        scales: Value,
    ) -> Result<Option<Value>, Problem> {
        let zero = match node.optional(3) {
            Some(zero) if node.dtype(zero)? == DType::U8 => {
                self.unpacked(node, zero, self.blocks())?
            }
            Some(_) => return Ok(None),
            None => {
                let middle = vec![1 << (self.bits - 1); (self.rows * self.blocks()) as usize];
                node.constant(DType::U8, &[self.rows, self.blocks()], &middle)?
            }
        };
        let shape = [self.rows, self.blocks()].map(|extent| node.cx().dim(extent));
        let scales = cast_to(node, scales, DType::F32)?;
        let (scales, zero) = (reshape_to(node, scales, &shape)?, reshape_to(node, zero, &shape)?);
        let weights = sliced(node, weights, 1, [0, self.columns])?;
        let attrs = [("axis", 1.into()), ("block", self.block.into())];
        Ok(Some(node.call("dequantize", &[weights, scales, zero], &attrs)?))
    }

    /// A zero point for each block, packed as the weights or as floats.
    fn zero_points(&self, node: &mut Node<'_>) -> Result<Option<Value>, Problem> {
        let Some(zero) = node.optional(3) else { return Ok(None) };
        let zero = match node.dtype(zero)? {
            DType::U8 => self.unpacked(node, zero, self.blocks())?,
            _ => zero,
        };
        Ok(Some(cast_to(node, zero, DType::F32)?))
    }
}
