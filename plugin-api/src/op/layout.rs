//! Layouts of tensors: `NCHW`, `NCHW16c`, `OIHW16i16o`.
//!
//! A capital letter is an axis. A number with a small letter splits that axis: the capital counts blocks,
//! and the block itself is an axis at the end. `NCHW16c` has the shape `[N, C/16, H, W, 16]`.

use thiserror::Error;

use crate::ir::{Context, Dim};

/// Why a text is no layout, or a tensor does not have one.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum LayoutError {
    #[error("a layout is like NCHW or NCHW16c")]
    Form,
    #[error("it names {axis} twice")]
    AxisTwice { axis: char },
    #[error("it splits {axis} twice")]
    SplitTwice { axis: char },
    #[error("it splits {axis}, which it lacks")]
    SplitOfNoAxis { axis: char },
    #[error("a size is missing before {letter}")]
    NoSize { letter: char },
    #[error("it has a block of more than {LARGEST_BLOCK}")]
    LargeBlock,
    #[error("a tensor of layout {layout} has {rank} dimensions")]
    Rank { layout: String, rank: usize },
    #[error("layout {layout} has blocks of {size} along {axis}")]
    BlockSize { layout: String, size: i64, axis: char },
    #[error("{axis} = {extent} is no multiple of {size}, the block of layout {layout}")]
    NoMultiple { axis: char, extent: String, size: i64, layout: String },
}

/// No vector and no tile comes near it, and products of blocks stay far from overflow.
const LARGEST_BLOCK: i64 = 65536;

/// An order of axes, some of them split into blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    text: String,
    outer: Vec<u8>,
    blocks: Vec<(u8, i64)>,
}

impl Layout {
    /// Reads a layout; the error says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, LayoutError> {
        let mut layout = Self { text: text.to_owned(), outer: Vec::new(), blocks: Vec::new() };
        let mut size: Option<i64> = None;
        for letter in text.bytes() {
            match letter {
                b'A'..=b'Z' if size.is_none() && layout.blocks.is_empty() => {
                    if layout.outer.contains(&letter) {
                        return Err(LayoutError::AxisTwice { axis: letter as char });
                    }
                    layout.outer.push(letter);
                }
                b'0'..=b'9' => {
                    let digits = size.unwrap_or(0) * 10 + (letter - b'0') as i64;
                    if digits > LARGEST_BLOCK {
                        return Err(LayoutError::LargeBlock);
                    }
                    size = Some(digits);
                }
                b'a'..=b'z' => {
                    let axis = letter.to_ascii_uppercase();
                    match size.take() {
                        Some(1..) if layout.block(axis).is_some() => {
                            return Err(LayoutError::SplitTwice { axis: axis as char });
                        }
                        Some(size @ 1..) if layout.outer.contains(&axis) => {
                            layout.blocks.push((axis, size));
                        }
                        Some(1..) => {
                            return Err(LayoutError::SplitOfNoAxis { axis: axis as char });
                        }
                        _ => return Err(LayoutError::NoSize { letter: letter as char }),
                    }
                }
                _ => return Err(LayoutError::Form),
            }
        }
        match layout.outer.is_empty() || size.is_some() {
            true => Err(LayoutError::Form),
            false => Ok(layout),
        }
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Number of axes of a tensor of this layout.
    pub fn rank(&self) -> usize {
        self.outer.len() + self.blocks.len()
    }

    /// The axes as capital letters, in the order of the tensor, blocks not counted.
    pub fn axes(&self) -> &[u8] {
        &self.outer
    }

    /// The blocks: the axis they split and their size, in the order of the tensor.
    pub fn blocks(&self) -> &[(u8, i64)] {
        &self.blocks
    }

    /// The size of the blocks of `axis`, if it is split.
    pub fn block(&self, axis: u8) -> Option<i64> {
        self.blocks.iter().find(|&&(letter, _)| letter == axis).map(|&(_, size)| size)
    }

    /// Where `axis` stands in the tensor.
    pub fn position(&self, axis: u8) -> Option<usize> {
        self.outer.iter().position(|&letter| letter == axis)
    }

    /// Where the blocks of `axis` stand in the tensor.
    pub fn block_position(&self, axis: u8) -> Option<usize> {
        let block = self.blocks.iter().position(|&(letter, _)| letter == axis)?;
        Some(self.outer.len() + block)
    }

    /// Whether the axes are those of `axes`, in any order.
    pub fn has_axes(&self, axes: &str) -> bool {
        self.outer.len() == axes.len() && axes.bytes().all(|axis| self.outer.contains(&axis))
    }

    /// The whole extent of each axis, in the order of [`Layout::axes`], of a tensor of this layout with
    /// these dimensions. The error says which dimension cannot be.
    pub fn extents(&self, cx: &dyn Context, dims: &[Dim]) -> Result<Vec<Dim>, LayoutError> {
        if dims.len() != self.rank() {
            return Err(LayoutError::Rank { layout: self.text.clone(), rank: self.rank() });
        }
        for (&(axis, size), &dim) in self.blocks.iter().zip(&dims[self.outer.len()..]) {
            if cx.terms().dim_value(dim).is_some_and(|value| value != size) {
                let (layout, axis) = (self.text.clone(), axis as char);
                return Err(LayoutError::BlockSize { layout, size, axis });
            }
        }
        let whole = |(&axis, &dim): (&u8, &Dim)| match self.block(axis) {
            Some(size) => cx.dim_mul(dim, cx.dim(size)),
            None => dim,
        };
        Ok(self.outer.iter().zip(dims).map(whole).collect())
    }

    /// The dimensions of a tensor of this layout whose axes have these whole extents. The error says
    /// which extent is no multiple of its block.
    pub fn dims(
        &self,
        cx: &dyn Context,
        extent: impl Fn(u8) -> Dim,
    ) -> Result<Vec<Dim>, LayoutError> {
        let mut dims = Vec::with_capacity(self.rank());
        for &axis in &self.outer {
            let whole = extent(axis);
            dims.push(match self.block(axis) {
                None => whole,
                Some(size) => {
                    let rest = cx.dim_floor_mod(whole, cx.dim(size));
                    if cx.terms().dim_value(rest).is_some_and(|rest| rest != 0) {
                        return Err(LayoutError::NoMultiple {
                            axis: axis as char,
                            extent: cx.terms().dim_text(whole),
                            size,
                            layout: self.text.clone(),
                        });
                    }
                    cx.dim_floor_div(whole, cx.dim(size))
                }
            });
        }
        dims.extend(self.blocks.iter().map(|&(_, size)| cx.dim(size)));
        Ok(dims)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_read() {
        let layout = Layout::parse("OIHW16i8o").unwrap();
        assert_eq!(layout.rank(), 6);
        assert_eq!(layout.block(b'O'), Some(8));
        assert_eq!(layout.block_position(b'O'), Some(5));
        assert_eq!(layout.block(b'H'), None);
    }

    #[test]
    fn nonsense_is_refused() {
        for text in
            ["", "nchw", "NN", "NCHW16", "NCHWc", "NCHW4c4c", "NHW4c", "NC4cH", "NC0c", "N-C"]
        {
            assert!(Layout::parse(text).is_err(), "{text}");
        }
    }
}
