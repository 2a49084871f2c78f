//! Buffers, by their elements.

use crate::ir::{BuildPrim, DType, Dim, Expr};

use super::{Program, Scalar, Stmt, compute_dtype};

/// A buffer of a program.
#[derive(Clone)]
pub struct Buffer<'p> {
    pub(super) program: &'p Program,
    pub(super) expr: Expr,
    pub(super) dtype: DType,
    pub(super) shape: Vec<Dim>,
    /// Of what is reduced: whether there is nothing to reduce, and what its elements are then.
    pub(super) empty: Option<(Expr, Expr)>,
}

impl<'p> Buffer<'p> {
    /// The program it belongs to.
    pub fn program(&self) -> &'p Program {
        self.program
    }

    /// Its node.
    pub fn expr(&self) -> Expr {
        self.expr
    }

    /// Its element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The dtype that arithmetic on its elements is done in.
    pub fn compute_dtype(&self) -> DType {
        compute_dtype(self.dtype)
    }

    /// The extents of its axes.
    pub fn shape(&self) -> &[Dim] {
        &self.shape
    }

    /// The element at `indices`, one for each axis, each within its extent.
    ///
    /// # Panics
    /// When there are not as many indices as axes.
    pub fn at(&self, indices: &[Scalar<'p>]) -> Scalar<'p> {
        let indices = self.indices(indices);
        self.program.scalar(|writer| {
            let element = writer.load(self.expr, &indices);
            match self.empty {
                Some((is_empty, identity)) => writer.select(is_empty, identity, element),
                None => element,
            }
        })
    }

    /// The element at `indices` in the dtype that arithmetic on it is done in.
    ///
    /// # Panics
    /// As [`Buffer::at`].
    pub fn wide(&self, indices: &[Scalar<'p>]) -> Scalar<'p> {
        self.at(indices).cast(self.compute_dtype())
    }

    /// Writes the element at `indices`, converted to the dtype of the buffer.
    ///
    /// # Panics
    /// As [`Buffer::at`].
    pub fn set(&self, indices: &[Scalar<'p>], value: Scalar<'p>) -> Stmt {
        let value = value.cast(self.dtype);
        let indices = self.indices(indices);
        self.program.stmt(|writer| writer.store(self.expr, value.expr, &indices))
    }

    fn indices(&self, indices: &[Scalar<'p>]) -> Vec<Expr> {
        let (found, rank) = (indices.len(), self.shape.len());
        assert_eq!(found, rank, "{found} indices of a buffer of {rank} axes");
        indices.iter().map(|index| index.expr).collect()
    }
}
