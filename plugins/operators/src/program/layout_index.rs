//! Indices of tensors whose layout splits axes into blocks.

use tenon_plugin_api::ir::{Context, Dim};
use tenon_plugin_api::op::Layout;
use tenon_plugin_api::program::{Extent, Program, Scalar};

/// An index along an axis: whole, or as a block and a place in it.
#[derive(Clone, Copy)]
pub(crate) struct Coordinate<'p> {
    outer: Scalar<'p>,
    inner: Option<(Scalar<'p>, i64)>,
}

impl<'p> Coordinate<'p> {
    /// A whole index.
    pub(crate) fn whole(index: Scalar<'p>) -> Self {
        Self { outer: index, inner: None }
    }

    /// Place `inner` of block `outer`, in blocks of `size`.
    pub(crate) fn split(outer: Scalar<'p>, inner: Scalar<'p>, size: i64) -> Self {
        Self { outer, inner: Some((inner, size)) }
    }

    /// The whole index.
    pub(crate) fn index(self) -> Scalar<'p> {
        match self.inner {
            Some((inner, size)) => self.outer * size + inner,
            None => self.outer,
        }
    }

    /// Which part of `extent` elements it lies in. Where these are whole blocks, the block says it.
    pub(crate) fn part_of(self, extent: Dim) -> Scalar<'p> {
        let program = self.outer.program();
        match (self.inner, program.dim_value(extent)) {
            (Some((_, size)), Some(extent)) if extent % size == 0 => self.outer / (extent / size),
            _ => self.index() / extent.index(program),
        }
    }

    /// The same place behind so many parts of `extent` elements.
    pub(crate) fn behind(self, parts: Scalar<'p>, extent: Dim) -> Self {
        let program = self.outer.program();
        match (self.inner, program.dim_value(extent)) {
            (Some((inner, size)), Some(extent)) if extent % size == 0 => {
                Self::split(parts * (extent / size) + self.outer, inner, size)
            }
            _ => Self::whole(parts * extent.index(program) + self.index()),
        }
    }

    /// Block and place in it, in blocks of `size`.
    pub(crate) fn in_blocks(self, size: i64) -> (Scalar<'p>, Scalar<'p>) {
        match self.inner {
            Some((inner, own)) if own == size => (self.outer, inner),
            _ => (self.index() / size, self.index() % size),
        }
    }
}

/// The indices of a tensor of layout `layout` at the coordinates of its axes.
pub(crate) fn place<'p>(
    layout: &Layout,
    coordinate: impl Fn(u8) -> Coordinate<'p>,
) -> Vec<Scalar<'p>> {
    let outer = layout.axes().iter().map(|&axis| match layout.block(axis) {
        Some(size) => coordinate(axis).in_blocks(size).0,
        None => coordinate(axis).index(),
    });
    let inner = layout.blocks().iter().map(|&(axis, size)| coordinate(axis).in_blocks(size).1);
    outer.chain(inner).collect()
}

/// The coordinates that the indices of a tensor of layout `layout` stand for.
pub(crate) fn coordinate<'p>(
    layout: &Layout,
    indices: &[Scalar<'p>],
    axis: u8,
) -> Option<Coordinate<'p>> {
    let outer = *indices.get(layout.position(axis)?)?;
    Some(match (layout.block(axis), layout.block_position(axis)) {
        (Some(size), Some(position)) => Coordinate::split(outer, *indices.get(position)?, size),
        _ => Coordinate::whole(outer),
    })
}

/// The whole extent of `axis` in a tensor of layout `layout`, which may be a symbol.
pub(crate) fn dim_extent(program: &Program, layout: &Layout, shape: &[Dim], axis: u8) -> Dim {
    let cx = program.cx();
    let outer = layout.position(axis).map_or(cx.dim(1), |position| shape[position]);
    cx.dim_mul(outer, cx.dim(layout.block(axis).unwrap_or(1)))
}
