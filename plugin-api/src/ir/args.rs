//! Lists of operands.

use crate::ir::Expr;

/// Operands of a node, with the transaction's replacements applied.
#[derive(Clone, Copy, Debug)]
pub struct Args<'a> {
    pub(super) ids: &'a [u32],
    pub(super) replaced: &'a [u32],
}

impl<'a> Args<'a> {
    /// Number of operands.
    #[inline]
    pub fn len(self) -> usize {
        self.ids.len()
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.ids.is_empty()
    }

    /// Operand `index`, if there is one.
    #[inline]
    pub fn get(self, index: usize) -> Option<Expr> {
        self.ids.get(index).map(|&id| resolve(self.replaced, id))
    }

    /// Operand `index`.
    ///
    /// # Panics
    /// When there is no such operand.
    #[inline]
    pub fn at(self, index: usize) -> Expr {
        match self.get(index) {
            Some(expr) => expr,
            None => panic!("operand {index} of {}", self.ids.len()),
        }
    }

    /// The operands in order.
    #[inline]
    pub fn iter(self) -> impl DoubleEndedIterator<Item = Expr> + ExactSizeIterator {
        (0..self.ids.len()).map(move |index| self.at(index))
    }

    /// All but the first `count`.
    pub fn skip(self, count: usize) -> Args<'a> {
        Args { ids: self.ids.get(count..).unwrap_or(&[]), ..self }
    }

    /// The first `count`.
    pub fn take(self, count: usize) -> Args<'a> {
        Args { ids: self.ids.get(..count).unwrap_or(self.ids), ..self }
    }

    /// The operands as a vector.
    pub fn to_vec(self) -> Vec<Expr> {
        self.iter().collect()
    }
}

/// What node `id` is replaced by, over any number of replacements.
#[inline]
pub(super) fn resolve(replaced: &[u32], mut id: u32) -> Expr {
    while let Some(&next) = replaced.get(id as usize)
        && next != id
    {
        id = next;
    }
    Expr(id)
}
