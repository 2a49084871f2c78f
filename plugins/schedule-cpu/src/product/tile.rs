//! How much of a product is computed in registers at once.
//!
//! A tile is some rows by some vectors of the result. At each step of the sum, the vectors of one operand are loaded, and each row
//! brings one element of the other that is multiplied with all of them. So more rows save loads of vectors, more vectors save loads
//! of elements, and all of it must stay in registers: the sums, the loaded vectors, and one register for an element.

use tenon_schedule::{Machine, Result};

use super::no_product;
use super::operands::{Form, Operands};
use crate::caches::{SAME_SET, places};

/// Sums that must be in flight for the multiply-add units to be busy: their latency times their number.
const SUMS_IN_FLIGHT: i64 = 8;
/// Vectors of a column that is left in one piece.
const MAX_VECTORS: i64 = 4;
/// Registers for the taps of a window, where each channel has a filter of its own.
const FOR_TAPS: i64 = 3;
/// Blocks of columns in a tile.
const MAX_BLOCKS: i64 = 8;
/// A narrow image is cut into several whole rows, up to so many.
const MAX_ROWS: i64 = 8;

/// Rows of a tile of dot products.
const DOTS: i64 = 4;
/// What it costs an element to come from the second cache rather than from the nearest, in multiply-adds.
const EVICTED: f64 = 0.5;
/// What each further size of tiles costs, which is another piece of code.
const UNEVEN: f64 = 1.02;

/// Rows and vectors of a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tile {
    pub(crate) rows: i64,
    pub(crate) vectors: i64,
}

/// What tiles are wanted.
#[derive(Clone, Copy)]
pub(super) struct Wanted {
    pub(super) rows: Option<i64>,
    pub(super) vectors: Option<i64>,
    /// Steps of a chunk, zero for none.
    pub(super) chunk: Option<i64>,
    /// Whether tiles of one size alone will do.
    pub(super) is_even: bool,
}

impl Wanted {
    /// Any tiles of the same chunks.
    pub(super) fn of_chunk(self) -> Self {
        Self { rows: None, vectors: None, is_even: false, ..self }
    }

    /// Whether a shape is as wanted: none of its tiles goes from one chunk into the next.
    fn is(self, shape: &Shape, operands: &Operands) -> bool {
        let tile = shape.tile(operands);
        self.rows.is_none_or(|rows| rows == tile.rows)
            && self.vectors.is_none_or(|vectors| vectors == tile.vectors)
            && self.chunk.is_none_or(|steps| steps % shape.outer == 0)
    }
}

impl Tile {
    /// Whether it stays in registers; one register is left for what else comes up. What is loaded stays until all rows have had it; a
    /// single row takes it at once.
    pub(crate) fn fits(self, registers: i64) -> bool {
        let loaded = if self.rows == 1 { self.vectors.min(2) } else { self.vectors };
        self.rows * self.vectors + loaded + 1 < registers
    }

    /// Time of one step of the sum, in multiply-adds.
    pub(crate) fn cost(self) -> f64 {
        let Tile { rows, vectors } = self;
        let work = (rows * vectors).max(rows + vectors).max(SUMS_IN_FLIGHT);
        // What is left of a step beside its arithmetic: the loop, and vectors from a farther cache.
        work as f64 + 0.25 + 0.25 * vectors as f64
    }
}

/// The tiles of a product. Each list has the sizes of tiles, and over how many elements of the loop they go; the last is what is
/// left.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Shape {
    /// Rows of the loop outside of `rows` that are in a tile as a whole; one where that loop is cut.
    pub(super) outer: i64,
    /// Heights of tiles.
    pub(super) rows: Vec<Part>,
    /// Steps of the loop over blocks of columns.
    pub(super) blocks: i64,
    /// Widths of tiles, in columns.
    pub(super) columns: Vec<Part>,
    /// Steps of the last loop over rows but one that stand inside of the loops over columns; zero for all rows.
    pub(super) chunk: i64,
}

/// Tiles of `size` over `count` elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) size: i64,
    pub(super) count: i64,
}

impl Shape {
    /// The shape whose tiles take least time, of those that are as wanted.
    pub(super) fn best(operands: &Operands, machine: &Machine, wanted: Wanted) -> Result<Self> {
        let registers = match operands.form {
            // The data has its share of the registers.
            Form::Depthwise => machine.registers * 3 / 4,
            _ => machine.registers,
        };
        let all = match operands.form {
            Form::Dots => Self::of_dots(operands),
            _ => Self::in_columns(operands, registers),
        };
        let mut best: Option<(f64, Self)> = None;
        for shape in all.into_iter().filter(|shape| wanted.is(shape, operands)) {
            if wanted.is_even && shape.rows.len() * shape.columns.len() > 1 {
                continue;
            }
            let cost = shape.cost(operands, registers, machine);
            if cost.is_finite() && best.as_ref().is_none_or(|(least, _)| cost < *least) {
                best = Some((cost, shape));
            }
        }
        best.map_or_else(no_product, |(_, shape)| Ok(shape))
    }

    /// All shapes of tiles whose vectors are of columns.
    fn in_columns(operands: &Operands, registers: i64) -> Vec<Self> {
        let width = operands.extent(operands.column);
        let columns = match width <= MAX_VECTORS * operands.lanes {
            _ if operands.is_unknown(operands.column) => {
                let size = if operands.has_masks { operands.lanes } else { 1 };
                vec![vec![Part { size, count: width }]]
            }
            true => vec![vec![Part { size: width, count: width }]],
            false => pieces(width, operands.lanes, operands.panel),
        };
        let blocks = match (columns.as_slice(), operands.blocks) {
            ([whole], Some(at)) if whole[0].size == width && operands.form == Form::Columns => {
                operands.extent(at)
            }
            _ => 1,
        };
        let mut shapes = Vec::new();
        for columns in columns {
            for blocks in (1..=blocks.min(MAX_BLOCKS)).filter(|part| blocks % part == 0) {
                let vectors = blocks * vectors_of(columns[0].size, operands.lanes);
                let rows = rows(operands, registers, vectors).into_iter();
                shapes.extend(rows.map(|(outer, rows)| Self {
                    outer,
                    rows,
                    blocks,
                    columns: columns.clone(),
                    chunk: 0,
                }));
            }
        }
        shapes
    }

    /// Few of both, so that sums and what they are made of stay in registers: first those that are best.
    fn of_dots(operands: &Operands) -> Vec<Self> {
        let rows = operands.rows.last().map_or(1, |&at| operands.extent(at));
        let width = operands.extent(operands.column);
        let most = match operands.rows.last() {
            Some(&at) if operands.is_unknown(at) => 1,
            _ => rows.min(DOTS),
        };
        let widest = match operands.is_unknown(operands.column) {
            true => 1,
            false => width,
        };
        let heights = (1..=most).rev();
        let tiles = heights.flat_map(|height| {
            (1..=widest.min(SUMS_IN_FLIGHT / height.min(2))).rev().map(move |width| (height, width))
        });
        let shape = |(height, size)| Self {
            outer: 1,
            rows: evenly(rows, height),
            blocks: 1,
            columns: evenly(width, size),
            chunk: 0,
        };
        tiles.map(shape).collect()
    }

    /// Rows and vectors of its first tile.
    pub(super) fn tile(&self, operands: &Operands) -> Tile {
        self.tile_of(operands, self.rows[0].size, self.columns[0].size)
    }

    /// How many tiles lie beside each other over all columns.
    pub(super) fn tiles_of_columns(&self, operands: &Operands) -> i64 {
        let blocks = operands.blocks.map_or(1, |at| operands.extent(at)) / self.blocks;
        blocks * self.columns.iter().map(|part| part.count / part.size).sum::<i64>()
    }

    /// A tile of so many rows and columns; where vectors lie along the sum, each column has one.
    fn tile_of(&self, operands: &Operands, rows: i64, columns: i64) -> Tile {
        let vectors = match operands.form {
            Form::Dots => columns,
            _ => vectors_of(columns, operands.lanes) * self.blocks,
        };
        Tile { rows: rows * self.outer, vectors }
    }

    /// Cycles that the sums take on one core: those of a step of the sum, in multiply-adds, for each of its steps.
    pub(super) fn cycles(&self, operands: &Operands, machine: &Machine) -> f64 {
        let cost = self.cost(operands, machine.registers, machine);
        let kept: f64 = operands.extents.iter().map(|&extent| extent as f64).product();
        let rows = operands.rows.iter().rev().take(2).map(|&at| operands.extent(at));
        let blocks = operands.blocks.map(|at| operands.extent(at));
        let column = operands.extent(operands.column);
        let counted: f64 = rows.chain(blocks).chain([column]).map(|extent| extent as f64).product();
        let steps = match operands.form {
            Form::Dots => operands.depth / operands.lanes,
            _ => operands.depth,
        };
        cost * (kept / counted.max(1.0)) * steps as f64 / machine.fma_units as f64
    }

    /// Time of a step of the sum over the last two loops over rows and those over columns; infinite where a tile does not stay in
    /// registers.
    fn cost(&self, operands: &Operands, registers: i64, machine: &Machine) -> f64 {
        let outer = match operands.rows.as_slice() {
            [.., outer, _] => operands.extent(*outer) / self.outer,
            _ => 1,
        };
        let blocks = operands.blocks.map_or(1, |at| operands.extent(at)) / self.blocks;
        let mut cost = 0.0;
        for rows in &self.rows {
            for columns in &self.columns {
                let tile = self.tile_of(operands, rows.size, columns.size);
                // Scales stay in registers beside what they scale.
                let free = registers - if operands.is_scaled { tile.vectors } else { 0 };
                if !tile.fits(free) || !self.window_fits(operands, rows.size, tile, machine) {
                    return f64::INFINITY;
                }
                let count = rows.count / rows.size * (columns.count / columns.size);
                let step = tile.cost() + evicted(tile.rows, operands.row_bytes, machine);
                cost += (outer * blocks * count) as f64 * step;
            }
        }
        let pieces = (self.rows.len() * self.columns.len()) as i32;
        cost * UNEVEN.powi(pieces - 1)
    }
}

impl Shape {
    /// Whether the sums of a tile and all that they see of the data in a step stay in registers, since the compiler loads it first; or
    /// the sums are so few that fewer would wait for each other.
    fn window_fits(&self, operands: &Operands, rows: i64, tile: Tile, machine: &Machine) -> bool {
        operands.window.is_none_or(|window| {
            let sums = tile.rows * tile.vectors;
            let data = window.seen(rows) * self.outer * tile.vectors;
            sums <= SUMS_IN_FLIGHT || sums + data + FOR_TAPS <= machine.registers
        })
    }
}

/// What a step of the sum costs because rows evict each other: where they lie so many bytes apart, lines of more of them meet in a set
/// than it has room for, beside one of the columns.
fn evicted(rows: i64, row_bytes: i64, machine: &Machine) -> f64 {
    let ways = machine.caches[0] / SAME_SET;
    let sets = places(row_bytes);
    let meet = (rows + sets - 1) / sets;
    if row_bytes > 0 && meet >= ways { EVICTED * rows as f64 } else { 0.0 }
}

/// The ways to cut long columns: tiles of some whole vectors, and what is left in a tile of its own, or the vectors of that and its
/// rest. No tile goes from one panel into the next.
fn pieces(width: i64, lanes: i64, panel: i64) -> Vec<Vec<Part>> {
    let most = (width / lanes).min(2 * MAX_VECTORS);
    let cut = |sizes: &[i64]| -> Vec<Part> {
        let mut left = width;
        let parts = sizes.iter().filter(|&&size| size > 0).map(|&size| {
            let count = left / size * size;
            left -= count;
            Part { size, count }
        });
        parts.filter(|part| part.count > 0).collect()
    };
    let mut ways = Vec::new();
    for size in (1..=most).map(|vectors| vectors * lanes).filter(|size| panel % size == 0) {
        let rest = width % size;
        ways.push(cut(&[size, rest / lanes * lanes, rest % lanes]));
        if rest <= MAX_VECTORS * lanes && rest > lanes && rest % lanes > 0 {
            ways.push(cut(&[size, rest]));
        }
    }
    ways
}

/// The ways to cut the last two loops over rows.
fn rows(operands: &Operands, registers: i64, vectors: i64) -> Vec<(i64, Vec<Part>)> {
    let Some(&inner) = operands.rows.last() else {
        return vec![(1, vec![Part { size: 1, count: 1 }])];
    };
    let width = operands.extent(inner);
    if operands.is_unknown(inner) {
        return vec![(1, vec![Part { size: 1, count: width }])];
    }
    let most = (registers / vectors).max(1);
    let mut ways: Vec<(i64, Vec<Part>)> =
        (1..=most.min(width)).map(|size| (1, evenly(width, size))).collect();
    // Lines of a tile would each be asked whether to leave a step out.
    if let [.., outer, _] = operands.rows.as_slice()
        && !operands.is_unknown(*outer)
        && !operands.skips_zeros
    {
        let height = operands.extent(*outer);
        let heights = (2..=height.min(MAX_ROWS)).filter(|rows| height % rows == 0);
        ways.extend(heights.map(|rows| (rows, vec![Part { size: width, count: width }])));
    }
    ways
}

/// As many tiles as those of `size` that cover `extent`, as even as they can be.
fn evenly(extent: i64, size: i64) -> Vec<Part> {
    let tiles = (extent + size - 1) / size;
    let (low, more) = (extent / tiles, extent % tiles);
    let parts = [
        Part { size: low + 1, count: more * (low + 1) },
        Part { size: low, count: (tiles - more) * low },
    ];
    parts.into_iter().filter(|part| part.count > 0).collect()
}

/// How many vectors a row of `extent` elements takes: as many of `lanes` lanes as go in, then shorter ones, down to four lanes, then
/// single elements.
fn vectors_of(extent: i64, lanes: i64) -> i64 {
    let (mut rest, mut width, mut vectors) = (extent, lanes, 0);
    while rest > 0 {
        vectors += rest / width;
        rest %= width;
        width = if width > 4 { width / 2 } else { 1 };
    }
    vectors
}
