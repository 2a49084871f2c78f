//! Matrices of integers on scales.

/// To what floats are quantized.
#[derive(Clone, Copy)]
pub(crate) struct Width {
    pub(crate) bits: u32,
    /// Elements that share a scale; 0 for a whole column.
    pub(crate) block: usize,
}

/// The columns of a matrix as integers, with a scale for each block of a column.
pub(crate) struct Quantized {
    pub(crate) columns: usize,
    pub(crate) depth: usize,
    /// Elements of a block, which divide the depth.
    block: usize,
    /// Column by column.
    codes: Vec<i8>,
    scales: Vec<f32>,
}

impl Quantized {
    /// Of codes and scales that are read one by one, by column and place in it; none where a code fits no byte.
    pub(crate) fn read(
        [columns, depth, block]: [usize; 3],
        code: impl Fn(usize, usize) -> i16,
        scale: impl Fn(usize, usize) -> f32,
    ) -> Option<Self> {
        let places = (0..columns).flat_map(|column| (0..depth).map(move |k| (column, k)));
        let codes = places.map(|(column, k)| i8::try_from(code(column, k)).ok());
        let codes = codes.collect::<Option<Vec<i8>>>()?;
        let starts = (0..columns)
            .flat_map(|column| (0..depth).step_by(block).map(move |start| (column, start)));
        let scales = starts.map(|(column, start)| scale(column, start)).collect();
        Some(Self { columns, depth, block, codes, scales })
    }

    /// Of floats, each to the nearest of the numbers that are evenly spaced up to the largest magnitude of its block; none where
    /// blocks do not divide the depth, or something is no number.
    pub(crate) fn rounded(
        [columns, depth]: [usize; 2],
        width: Width,
        value: impl Fn(usize, usize) -> f32,
    ) -> Option<Self> {
        let block = if width.block == 0 { depth } else { width.block };
        if !depth.is_multiple_of(block) {
            return None;
        }
        let largest = ((1 << (width.bits - 1)) - 1) as f32;
        let (mut codes, mut scales) = (Vec::with_capacity(columns * depth), Vec::new());
        for column in 0..columns {
            for start in (0..depth).step_by(block) {
                let values = (start..start + block).map(|k| value(column, k));
                let most = values.clone().map(f32::abs).fold(0.0, f32::max);
                if !values.clone().all(f32::is_finite) {
                    return None;
                }
                let scale = most / largest;
                // Of nothing but zeros any scale will do; a scale below all normal numbers would make infinities.
                let inverse = if scale.is_normal() { scale.recip() } else { 0.0 };
                codes.extend(values.map(|value| (value * inverse).round_ties_even() as i8));
                scales.push(scale);
            }
        }
        Some(Self { columns, depth, block, codes, scales })
    }

    /// Blocks of a column.
    pub(crate) fn blocks(&self) -> usize {
        self.depth / self.block
    }

    /// Bits that hold any of the integers: 4 or 8.
    pub(crate) fn bits(&self) -> usize {
        let is_short = |code: &i8| (-8..8).contains(code);
        if self.block.is_multiple_of(2) && self.codes.iter().all(is_short) { 4 } else { 8 }
    }

    /// The integers of `bits` bits as `nn.quantized_dense` reads them: blocks of so many columns, in each all elements of the
    /// depth, for each its columns side by side. Columns beyond the last are zeros.
    pub(crate) fn packed(&self, lanes: usize, bits: usize) -> Vec<u8> {
        let of_byte = 8 / bits;
        let bytes = self.depth / of_byte;
        let mut packed = vec![0; self.columns.div_ceil(lanes) * bytes * lanes];
        for (column, codes) in self.codes.chunks(self.depth).enumerate() {
            let start = column / lanes * bytes * lanes + column % lanes;
            for (at, codes) in codes.chunks(of_byte).enumerate() {
                packed[start + at * lanes] = match codes {
                    &[low, high] => low.cast_unsigned() & 15 | high.cast_unsigned() << 4,
                    codes => codes[0].cast_unsigned(),
                };
            }
        }
        packed
    }

    /// The integers as i32, row by row.
    pub(crate) fn in_rows(&self) -> Vec<u8> {
        let places = (0..self.depth)
            .flat_map(|k| (0..self.columns).map(move |column| column * self.depth + k));
        places.flat_map(|at| i32::from(self.codes[at]).to_le_bytes()).collect()
    }

    /// The scales of the first blocks of all columns, then of the second ones, …
    pub(crate) fn scales_by_block(&self) -> Vec<u8> {
        let blocks = self.blocks();
        let of_block = |block| self.scales.iter().skip(block).step_by(blocks);
        (0..blocks).flat_map(of_block).flat_map(|scale| scale.to_le_bytes()).collect()
    }
}
