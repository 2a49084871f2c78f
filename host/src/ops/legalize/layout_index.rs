//! Indices of tensors whose layout splits axes into blocks.

use crate::ops::Layout;

use super::scalar::Scalar;

/// An index along an axis: whole, or as a block and a place in it.
#[derive(Clone, Copy)]
pub(super) struct Coordinate<'k> {
    outer: Scalar<'k>,
    inner: Option<(Scalar<'k>, i64)>,
}

impl<'k> Coordinate<'k> {
    /// A whole index.
    pub(super) fn whole(index: Scalar<'k>) -> Self {
        Self { outer: index, inner: None }
    }

    /// Place `inner` of block `outer`, in blocks of `size`.
    pub(super) fn split(outer: Scalar<'k>, inner: Scalar<'k>, size: i64) -> Self {
        Self { outer, inner: Some((inner, size)) }
    }

    /// The whole index.
    pub(super) fn index(self) -> Scalar<'k> {
        match self.inner {
            Some((inner, size)) => self.outer * size + inner,
            None => self.outer,
        }
    }

    /// Block and place in it, in blocks of `size`.
    fn in_blocks(self, size: i64) -> (Scalar<'k>, Scalar<'k>) {
        match self.inner {
            Some((inner, own)) if own == size => (self.outer, inner),
            _ => (self.index() / size, self.index() % size),
        }
    }
}

/// The indices of a tensor of layout `layout` at the coordinates of its axes.
pub(super) fn place<'k>(
    layout: &Layout,
    coordinate: impl Fn(u8) -> Coordinate<'k>,
) -> Vec<Scalar<'k>> {
    let outer = layout.axes().iter().map(|&axis| match layout.block(axis) {
        Some(size) => coordinate(axis).in_blocks(size).0,
        None => coordinate(axis).index(),
    });
    let inner = layout.blocks().iter().map(|&(axis, size)| coordinate(axis).in_blocks(size).1);
    outer.chain(inner).collect()
}

/// The coordinates that the indices of a tensor of layout `layout` stand for.
pub(super) fn coordinate<'k>(
    layout: &Layout,
    indices: &[Scalar<'k>],
    axis: u8,
) -> Option<Coordinate<'k>> {
    let outer = *indices.get(layout.position(axis)?)?;
    Some(match (layout.block(axis), layout.block_position(axis)) {
        (Some(size), Some(position)) => Coordinate::split(outer, *indices.get(position)?, size),
        _ => Coordinate::whole(outer),
    })
}

/// The whole extent of `axis` in a tensor of layout `layout`.
pub(super) fn extent(layout: &Layout, shape: &[i64], axis: u8) -> i64 {
    let outer = layout.position(axis).map_or(1, |position| shape[position]);
    outer * layout.block(axis).unwrap_or(1)
}
