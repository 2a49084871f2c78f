//! How wide the panels are in which the weights of products are packed.

use tenon_plugin_api::prelude::*;

use crate::convert_to_dots::rounded_up;

/// Vectors of sums in a tile of one row, which are enough for the multiply-add units to be busy.
const SUMS_IN_FLIGHT: i64 = 8;
/// Of processors with few registers, which are of fewer bits: a tile is then read at four places of memory at once. On a Zen 3 that
/// takes two thirds of the time for f32 and three quarters for bf16.
const FEW_IN_FLIGHT: i64 = 2;
/// Registers from which on there are many.
const MANY: i64 = 32;
/// Of so many columns one may be added to fill the last panel.
const FILLED: i64 = 16;

/// The panels that a target's registers want.
#[derive(Clone, Copy)]
pub(crate) struct Panels {
    /// f32 lanes of a vector.
    pub(crate) lanes: i64,
    /// Columns of the widest panel, where there is one row of them.
    widest: i64,
}

impl Panels {
    /// Those of what is compiled.
    pub(crate) fn of_target(cx: &PassContext) -> Self {
        let number = |key, least| cx.target().int(key).unwrap_or(least);
        let lanes = number("vector_bits", 128) / 32;
        let vectors = match number("vector_registers", 16) {
            ..MANY => FEW_IN_FLIGHT,
            MANY.. => SUMS_IN_FLIGHT,
        };
        Self { lanes, widest: vectors * lanes }
    }

    /// Those of bytes, with each line of which a product does so much that memory is asked early for the next ones: as wide as the tile
    /// of sums.
    pub(crate) fn of_bytes(self) -> Self {
        Self { widest: SUMS_IN_FLIGHT * self.lanes, ..self }
    }

    /// How many of so many columns lie side by side, in the product of some data with their matrix: as many as a vector holds, which
    /// fits every tile, or a part of that into which the columns divide; more where there is one row.
    pub(crate) fn of(self, rw: &Rewriter, data: Expr, columns: i64) -> Option<i64> {
        match has_one_row(rw, data) {
            true => self.wide(rw, data, columns).or_else(|| self.narrow(columns)),
            // Rows that share the weights compute longer than these take to be read, and half a vector takes as long as a whole one.
            false if columns > self.lanes => Some(self.lanes),
            false => self.narrow(columns),
        }
    }

    /// Columns of a panel of several vectors, for data of one row.
    ///
    /// Such a product takes as long as its weights take to be read. Narrow panels are read at as many places at once as there are vectors
    /// in a tile; where a panel is as wide as the tile of sums, memory is read from one end to the other.
    pub(crate) fn wide(self, rw: &Rewriter, data: Expr, columns: i64) -> Option<i64> {
        if !has_one_row(rw, data) {
            return None;
        }
        let panels = std::iter::successors(Some(self.widest), |panel| Some(panel / 2));
        let mut panels = panels.take_while(|&panel| panel > self.lanes);
        panels.find(|&panel| self.is_worth_it(panel, columns))
    }

    /// Whether the last panel has not to be filled up by much.
    fn is_worth_it(self, panel: i64, columns: i64) -> bool {
        (rounded_up(columns, panel) - columns) * FILLED <= columns
    }

    /// A vector or a part of one into which the columns divide; or a vector that is filled up.
    fn narrow(self, columns: i64) -> Option<i64> {
        let is_worth_it = self.is_worth_it(self.lanes, columns);
        self.block_of(columns).or_else(|| is_worth_it.then_some(self.lanes))
    }

    /// The largest block, down to a quarter of a vector, into which `channels` divide.
    pub(crate) fn block_of(self, channels: i64) -> Option<i64> {
        [self.lanes, self.lanes / 2, self.lanes / 4]
            .into_iter()
            .find(|&block| block > 1 && channels % block == 0)
    }
}

/// Whether all axes of data but the last are of one element.
fn has_one_row(rw: &Rewriter, data: Expr) -> bool {
    let Some((_, shape)) = rw.tensor(data) else { return false };
    let is_one = |&dim: &Dim| rw.terms().dim_value(dim) == Some(1);
    shape.split_last().is_some_and(|(_, rows)| rows.iter().all(is_one))
}
