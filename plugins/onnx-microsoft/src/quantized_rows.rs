//! `GatherBlockQuantized`: parts of a table that is stored as integers of few bits, each block of them on a scale.
//!
//! ```text
//! y = ((data - zero) scale)[indices]      what is taken are integers, scales and zero points, and the rest is done on these
//! ```

use tenon_plugin_api::rule::prelude::*;

use crate::steps::{cast_to, extent_of, reshape_to, sliced};

/// `GatherBlockQuantized`.
#[rule(import.onnx, domain = "com.microsoft", key = "GatherBlockQuantized")]
fn gather_blocks(node: &mut Node<'_>) -> Outputs {
    let (data, indices, scales) = (node.input(0)?, node.input(1)?, node.input(2)?);
    let stored = node.dims(data)?;
    let along = node.axis(node.int_or("quantize_axis", 1)?, stored.len())?;
    let gathered = node.axis(node.int_or("gather_axis", 0)?, stored.len())?;
    let bits = node.int_or("bits", 4)?;
    let is_bytes = node.dtype(data)? == DType::U8;
    if is_bytes && ![2, 4, 8].contains(&bits) {
        return unsupported(format!("integers of {bits} bits"));
    }
    let packed = if is_bytes && bits < 8 { 8 / bits } else { 1 };
    if packed > 1 && along + 1 != stored.len() {
        return invalid("bytes of several integers, whose blocks do not lie along the last axis");
    }
    let extent = packed * extent_of(node, stored[along], "size of what is in blocks")?;
    let count = node.dims(scales)?;
    if count.len() != stored.len() || gathered == along {
        return unsupported("scales that are not those of what is taken");
    }
    let count = extent_of(node, count[along], "number of blocks")?;
    let block = node.int_or("block_size", 128)?;
    if block < 1 || (extent + block - 1) / block != count {
        return invalid(format!("{count} blocks of {block} for {extent} elements"));
    }

    // The axis is behind those of the indices, or before them.
    let rank = node.dims(indices)?.len();
    let blocks = Blocks { axis: if along > gathered { along + rank - 1 } else { along }, block };
    let take = |node: &mut Node<'_>, x: Value| {
        node.call("take", &[x, indices], &[("axis", (gathered as i64).into())])
    };
    let whole = |node: &mut Node<'_>, x: Value, length: i64| match packed {
        1 => {
            let wide = if node.dtype(x)?.is_signed() { DType::I8 } else { DType::U8 };
            cast_to(node, x, wide)
        }
        _ => unpacked(node, x, bits, length),
    };
    let codes = whole(node, data, extent)?;
    let codes = take(node, codes)?;
    let mut y = cast_to(node, codes, DType::F32)?;
    let zero = match node.optional(3) {
        Some(zero) => {
            let zero = whole(node, zero, count)?;
            let zero = take(node, zero)?;
            let zero = cast_to(node, zero, DType::F32)?;
            Some(blocks.spread(node, zero, extent)?)
        }
        None if is_bytes => Some(node.scalar(DType::F32, 2f64.powi(bits as i32 - 1))?),
        None => None,
    };
    if let Some(zero) = zero {
        y = node.apply("subtract", &[y, zero])?;
    }
    let dtype = node.dtype(scales)?;
    let scale = take(node, scales)?;
    let scale = cast_to(node, scale, DType::F32)?;
    let scale = blocks.spread(node, scale, extent)?;
    let y = node.apply("multiply", &[y, scale])?;
    Ok(vec![cast_to(node, y, dtype)?])
}

/// Integers that lie several in a byte, the first in its lowest bits; so many stand along the last axis.
fn unpacked(node: &mut Node<'_>, bytes: Value, bits: i64, length: i64) -> Result<Value, Problem> {
    let mut dims = node.dims(bytes)?;
    let all = node.cx().dim_product(&dims);
    let Some(last) = dims.last_mut() else { return invalid("a table without dimensions") };
    let per_byte = node.cx().dim(8 / bits);
    *last = node.cx().dim_mul(*last, per_byte);
    let axis = dims.len() as i64 - 1;
    let bytes = reshape_to(node, bytes, &[all])?;
    let shape = node.shape(&dims)?;
    let dtype = format!("u{bits}");
    let codes = node.call("storage.decode", &[bytes, shape], &[("dtype", dtype.into())])?;
    sliced(node, codes, axis, [0, length])
}

/// Blocks of elements along an axis.
struct Blocks {
    axis: usize,
    block: i64,
}

impl Blocks {
    /// What there is of each block for each of its elements, of which there are `extent`.
    fn spread(&self, node: &mut Node<'_>, value: Value, extent: i64) -> Result<Value, Problem> {
        let mut dims = node.dims(value)?;
        let [one, block] = [1, self.block].map(|extent| node.cx().dim(extent));
        let all = node.cx().dim_mul(dims[self.axis], block);
        dims.insert(self.axis + 1, one);
        let value = reshape_to(node, value, &dims)?;
        dims[self.axis + 1] = block;
        let shape = node.shape(&dims)?;
        let value = node.apply("broadcast_to", &[value, shape])?;
        dims.remove(self.axis + 1);
        dims[self.axis] = all;
        let value = reshape_to(node, value, &dims)?;
        sliced(node, value, self.axis as i64, [0, extent])
    }
}
