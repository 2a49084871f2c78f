//! How much of a convolution or matrix product is computed in registers at once.
//!
//! A tile is some rows by some vectors of the result. At each step of the sum, the vectors of one operand
//! are loaded, and each row brings one element of the other that is multiplied with all of them. So more
//! rows save loads of vectors, more vectors save loads of elements, and all of it must stay in registers:
//! the sums, the loaded vectors, and one register for an element.

/// Sums that must be in flight for the multiply-add units to be busy: their latency times their number.
pub(crate) const SUMS_IN_FLIGHT: i64 = 8;

/// Rows and vectors of a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tile {
    pub(crate) rows: i64,
    pub(crate) vectors: i64,
}

impl Tile {
    /// Whether it stays in registers; one register is left for what else comes up.
    pub(crate) fn fits(self, registers: i64) -> bool {
        self.rows * self.vectors + self.vectors + 1 < registers
    }

    /// Time of one step of the sum, in multiply-adds.
    pub(crate) fn cost(self) -> f64 {
        let Tile { rows, vectors } = self;
        let work = (rows * vectors).max(rows + vectors).max(SUMS_IN_FLIGHT);
        // What is left of a step beside its arithmetic: the loop, and vectors from a farther cache.
        work as f64 + 0.25 + 0.25 * vectors as f64
    }

    /// The best tile for `rows` by `vectors` vectors. The last tile along the rows may overlap the one
    /// before; the vectors come in groups of `group` that stay together, and are divided evenly.
    pub(crate) fn best(rows: i64, vectors: i64, group: i64, registers: i64) -> Tile {
        let groups = vectors / group;
        let mut best = (f64::INFINITY, Tile { rows: 1, vectors: group });
        for tile_groups in (1..=groups.min(registers)).filter(|count| groups % count == 0) {
            for tile_rows in 1..=rows.min(registers) {
                let tile = Tile { rows: tile_rows, vectors: tile_groups * group };
                let count = tiles(rows, tile_rows) * (groups / tile_groups);
                let cost = count as f64 * tile.cost();
                if tile.fits(registers) && cost < best.0 {
                    best = (cost, tile);
                }
            }
        }
        best.1
    }
}

/// How many vectors a row of `extent` elements takes: as many of `lanes` lanes as go in, then shorter ones,
/// down to four lanes, then single elements. Beyond four of the longest, a row is a loop over vectors.
pub(crate) fn vectors_of(extent: i64, lanes: i64) -> i64 {
    let (mut rest, mut width, mut vectors) = (extent, lanes, 0);
    while rest > 0 {
        vectors += rest / width;
        rest %= width;
        width = if width > 4 { width / 2 } else { 1 };
    }
    vectors
}

/// How many tiles of `size` cover `extent`.
pub(crate) fn tiles(extent: i64, size: i64) -> i64 {
    (extent + size - 1) / size
}

#[cfg(test)]
mod tests {
    use super::*;

    fn best(rows: i64, vectors: i64) -> (i64, i64) {
        let Tile { rows, vectors } = Tile::best(rows, vectors, 1, 32);
        (rows, vectors)
    }

    #[test]
    fn rows_are_divided_evenly_where_that_is_as_good() {
        assert_eq!(best(56, 4), (14, 2));
        assert_eq!(best(28, 8), (14, 2));
        assert_eq!(best(14, 16), (14, 2));
        assert_eq!(best(7, 32), (7, 2));
        assert_eq!(best(13, 16), (13, 2));
        assert_eq!(best(55, 4), (11, 2));
    }

    #[test]
    fn few_rows_take_more_vectors() {
        assert_eq!(best(1, 8), (1, 8));
        assert_eq!(best(2, 16), (2, 8));
    }

    #[test]
    fn rows_are_cut_into_falling_widths() {
        assert_eq!(vectors_of(28, 16), 3);
        assert_eq!(vectors_of(56, 16), 4);
        assert_eq!(vectors_of(7, 16), 4);
        assert_eq!(vectors_of(3, 4), 3);
    }

    #[test]
    fn every_tile_fits() {
        for registers in [16, 32] {
            for rows in 1..130 {
                for vectors in 1..70 {
                    assert!(Tile::best(rows, vectors, 1, registers).fits(registers));
                }
            }
        }
    }
}
