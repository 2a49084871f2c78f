//! Which loops of a sum of products move which operand.

use tenon_schedule::{Block, Loop, Machine, Result, Schedule, Tail};

use super::no_product;
use crate::attempt;
use crate::threads::WORK_FOR_THREADS;
use crate::vectors::has_masks;

/// Steps that a loop is taken to have of which the number is not known: many, so that tiles are as high as registers allow, and a
/// multiple of every small height.
pub(super) const MANY: i64 = 840;
/// Taps of a row that are written out where each channel has a filter of its own, so that an element that neighbouring pixels see is
/// loaded once.
pub(super) const UNROLLED_TAPS: i64 = 3;
/// Vectors of a sum along which both operands lie, for which narrower ones take less than zeros behind them would.
const SHORT: i64 = 8;
/// Operations of a step of a sum: a load, a multiplication, an addition.
const STEP: i64 = 3;

/// A sum of products, and which of its loops are rows and columns. Loops are told by their place among those of the result, outermost
/// first; those of one step are in neither list.
#[derive(Clone)]
pub(super) struct Operands {
    pub(super) sum: Block,
    pub(super) out: Block,
    /// Steps of the loops over the result; [`MANY`] where the number is not known.
    pub(super) extents: Vec<i64>,
    /// Loops of which the number of steps is not known.
    pub(super) unknown: Vec<usize>,
    /// The loop over neighbours of the operand that is loaded in vectors.
    pub(super) column: usize,
    /// The loop around it that moves this operand alone, as that over blocks of channels.
    pub(super) blocks: Option<usize>,
    /// Which of the two operands this is.
    pub(super) vector: usize,
    /// The loops that do not move it, outermost first.
    pub(super) rows: Vec<usize>,
    /// Bytes from one row to the next, of the operand that comes element by element; zero where there are no rows.
    pub(super) row_bytes: i64,
    pub(super) form: Form,
    /// Whether steps of the sum are left out for lines of the last loop over rows but one.
    pub(super) skips_zeros: bool,
    /// Whether a third operand scales what is loaded in vectors.
    pub(super) is_scaled: bool,
    /// Whether steps of the last loop of the sum see the same element of the operand that is loaded in vectors, of which each takes a
    /// part.
    pub(super) is_packed: bool,
    /// What neighbouring rows see of the data in a step of the sum, where each channel has a filter of its own.
    pub(super) window: Option<Window>,
    /// Elements of a vector that lie side by side.
    pub(super) lanes: i64,
    /// Columns after which those of the next panel begin, where panels are of several vectors; zero elsewhere.
    pub(super) panel: i64,
    /// Steps of the sum.
    pub(super) depth: i64,
    /// Whether columns that fill no vector can be lanes of one that leaves the others out.
    pub(super) has_masks: bool,
}

/// How operands come into registers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Form {
    /// Both in vectors of columns, as where each channel has a filter of its own; or few channels have, of whose elements each then
    /// stands in the lanes of all of them.
    Depthwise,
    /// One in vectors of columns, the other element by element.
    Columns,
    /// Both in vectors along the sum: the second matrix lies column by column.
    Dots,
}

/// The taps of a row that are written out, so that vectors of data which several rows see are loaded once and stay in registers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Window {
    /// Taps.
    pub(super) taps: i64,
    /// By how many of them neighbouring rows lie apart.
    pub(super) step: i64,
}

impl Window {
    /// Vectors of data, for each vector of columns, that so many neighbouring rows see.
    pub(super) fn seen(self, rows: i64) -> i64 {
        ((rows - 1) * self.step + self.taps).min(rows * self.taps)
    }
}

/// How far a step of a loop moves the two operands; none where it is no constant.
pub(super) type Moves = [Option<i64>; 2];

impl Operands {
    pub(super) fn of(schedule: &mut Schedule, sum: Block, out: Block, lanes: i64) -> Result<Self> {
        let (own, of_out) = (schedule.loops(sum)?, schedule.loops(out)?);
        let (kept, depth) = own.split_at(of_out.len().min(own.len()));
        let is_apart = schedule.reduced_and_kept(sum, &own) == (depth.to_vec(), kept.to_vec());
        if depth.is_empty() || !is_apart {
            return no_product();
        }
        let [kept_extents, extents, steps] =
            [kept, &of_out, depth].map(|loops| extents(schedule, loops));
        if kept_extents != extents || extents.contains(&Some(0)) {
            return no_product();
        }
        let steps = steps.into_iter().map(|steps| steps.unwrap_or(MANY));
        let unknown: Vec<usize> = (0..extents.len()).filter(|&at| extents[at].is_none()).collect();
        let extents: Vec<i64> = extents.into_iter().map(|steps| steps.unwrap_or(MANY)).collect();
        let steps: i64 = steps.product();
        let is_scaled = kept.first().is_some_and(|&each| reads(schedule, each).len() > 2);
        let moves: Option<Vec<Moves>> = kept.iter().map(|&each| moves(schedule, each)).collect();
        let Some(moves) = moves else { return no_product() };
        if let &[depth] = depth
            && let Some(lanes) =
                schedule.extent(depth).and_then(|steps| lanes_of_dots(steps, lanes))
            && self::moves(schedule, depth) == Some([Some(1); 2])
        {
            let dots = Self::dots([sum, out], extents, &moves, lanes, steps)?;
            return Ok(Self { unknown, ..dots });
        }
        let is_beside = |at: &usize| stores_beside(schedule, of_out[*at]);
        let Some(column) = (0..extents.len()).rev().filter(|&at| extents[at] > 1).find(is_beside)
        else {
            return no_product();
        };
        let panel = panel(schedule, kept[column], extents[column], lanes);
        let (beside, lanes) = beside(schedule, kept[column], extents[column], lanes)?;
        let in_groups = [0, 1].map(|operand| {
            let is_one = beside[operand].is_none() && extents[column] == lanes;
            is_one && group(schedule, kept[column], operand).is_some()
        });
        let has_masks = [sum, out].iter().all(|&block| has_masks(schedule, block, lanes));
        let found = [0, 1].map(|vector| {
            let is_vector = beside[vector] == Some(1)
                && (matches!(beside[1 - vector], Some(0 | 1)) || in_groups[1 - vector])
                && (vector == 1 || !is_scaled);
            let others = || (0..extents.len()).filter(|&at| at != column && extents[at] > 1);
            let rows: Vec<usize> = others().filter(|&at| moves[at][vector] == Some(0)).collect();
            let is_block = |at: &usize| {
                let [of_vector, of_element] = [vector, 1 - vector].map(|each| moves[*at][each]);
                // Columns that fill no vectors are cut into parts, which no block is made of.
                *at < column
                    && (extents[column] % lanes == 0 || extents[column] < lanes)
                    && of_vector != Some(0)
                    && of_element == Some(0)
                    && !unknown.contains(at)
            };
            let blocks = others().rfind(is_block);
            let form = match beside[1 - vector] {
                Some(1) | None => Form::Depthwise,
                Some(_) => Form::Columns,
            };
            let is_packed = depth.len() > 1
                && depth.last().is_some_and(|&last| {
                    schedule.extent(last) != Some(1)
                        && self::moves(schedule, last).is_some_and(|last| last[vector] == Some(0))
                });
            let (extents, unknown) = (extents.clone(), unknown.clone());
            let row = rows.last().and_then(|&at| moves[at][1 - vector]).unwrap_or(0);
            let row_bytes = row * schedule.bits(sum) / 8;
            let is_loop = |each: &&Loop| schedule.extent(**each) != Some(1);
            let window = match (form, depth.iter().rfind(is_loop)) {
                (Form::Depthwise, Some(&last)) => window(schedule, last, row, 1 - vector),
                _ => None,
            };
            is_vector.then_some(Self {
                sum,
                out,
                extents,
                unknown,
                column,
                blocks,
                vector,
                rows,
                row_bytes,
                form,
                skips_zeros: schedule.skips_zeros(sum),
                is_scaled,
                is_packed,
                window,
                lanes,
                panel,
                depth: steps,
                has_masks,
            })
        });
        let most = found.into_iter().flatten().max_by_key(|found| (found.form, found.rows.len()));
        most.map_or_else(no_product, Ok)
    }

    /// The same as if all numbers were known.
    pub(super) fn of_many(&self) -> Self {
        Self { unknown: Vec::new(), ..self.clone() }
    }

    /// The same, but for the steps of a loop.
    pub(super) fn with_extent(&self, at: usize, extent: i64) -> Self {
        let mut changed = self.clone();
        changed.extents[at] = extent;
        changed
    }

    /// Whether the number of steps of a loop is not known.
    pub(super) fn is_unknown(&self, at: usize) -> bool {
        self.unknown.contains(&at)
    }

    /// With rows that move one operand alone, and columns the other.
    /// Whether neighbouring steps of a loop over rows see some of the same elements, in other steps of the sum.
    pub(super) fn sees_the_same(&self, schedule: &mut Schedule, at: usize) -> Result<bool> {
        let loops = schedule.loops(self.sum)?;
        let (kept, depth) = loops.split_at(self.extents.len());
        let moved = |each| Some(moves(schedule, each)?[1 - self.vector]?.abs());
        let Some(step) = moved(kept[at]) else { return Ok(false) };
        Ok(depth.iter().any(|&each| {
            let (tap, taps) = (moved(each).unwrap_or(0), schedule.extent(each).unwrap_or(1));
            tap > 0 && step % tap == 0 && step < tap * taps
        }))
    }

    fn dots(
        [sum, out]: [Block; 2],
        extents: Vec<i64>,
        moves: &[Moves],
        lanes: i64,
        depth: i64,
    ) -> Result<Self> {
        let alone = |one: usize| {
            let is_moved =
                move |&at: &usize| moves[at][one] != Some(0) && moves[at][1 - one] == Some(0);
            (0..moves.len()).filter(is_moved)
        };
        let columns = [0, 1].map(|one| alone(one).rfind(|&at| extents[at] > 1));
        let Some(vector) = (0..2).max_by_key(|&one| columns[one]) else { return no_product() };
        let Some(column) = columns[vector] else { return no_product() };
        let rows = alone(1 - vector).filter(|&at| extents[at] > 1).collect();
        let (blocks, window, unknown, row_bytes) = (None, None, Vec::new(), 0);
        let form = Form::Dots;
        Ok(Self {
            sum,
            out,
            extents,
            unknown,
            column,
            blocks,
            vector,
            rows,
            row_bytes,
            form,
            skips_zeros: false,
            is_scaled: false,
            is_packed: false,
            window,
            lanes,
            panel: 0,
            depth,
            has_masks: false,
        })
    }

    /// On how many threads it runs: on one, where others had not begun before it was done.
    pub(super) fn threads(&self, machine: &Machine) -> i64 {
        let kept = self.extents.iter();
        let steps = kept.fold(self.depth, |steps, &extent| steps.saturating_mul(extent));
        let is_long = steps.saturating_mul(STEP) >= WORK_FOR_THREADS;
        if is_long { machine.threads } else { 1 }
    }

    /// Whether bytes are loaded in vectors and read but once, as weights are where there is one row. A step does much with each line of
    /// memory then, so the processor does not see far ahead; of wider elements it does.
    pub(super) fn is_stream(&self, schedule: &Schedule) -> bool {
        self.form == Form::Columns && self.rows.is_empty() && schedule.bits_read(self.sum) <= 8
    }

    /// The extent of a loop.
    pub(super) fn extent(&self, at: usize) -> i64 {
        self.extents[at]
    }
}

/// Lanes of a vector along a sum of so many steps, of which it takes two at least: as many as divide a short sum, which is padded with
/// zeros else.
fn lanes_of_dots(steps: i64, lanes: i64) -> Option<i64> {
    let narrower = || [lanes, lanes / 2, lanes / 4].into_iter().filter(|&lanes| lanes >= 4);
    let mut halves = narrower().filter(|lanes| 2 * lanes <= steps);
    let whole = narrower().find(|lanes| steps % lanes == 0 && 2 * lanes <= steps);
    let is_short = steps < SHORT * lanes;
    whole.filter(|_| is_short).or_else(|| halves.next())
}

/// The steps of loops, as far as they are known.
fn extents(schedule: &Schedule, loops: &[Loop]) -> Vec<Option<i64>> {
    loops.iter().map(|&each| schedule.extent(each)).collect()
}

/// What rows that lie `row` elements of `data` apart see of it, where the last loop of the sum is over taps that are written out. Of
/// data that is padded where it is read nothing is known, and so nothing shared.
fn window(schedule: &Schedule, last: Loop, row: i64, data: usize) -> Option<Window> {
    let taps = schedule.extent(last).filter(|taps| (2..=UNROLLED_TAPS).contains(taps))?;
    let tap = moves(schedule, last)?[data].unwrap_or(0);
    let step = if tap > 0 && row > 0 && row % tap == 0 { row / tap } else { taps };
    Some(Window { taps, step })
}

/// How a loop around a sum moves its operands. A third one scales the second: it stays where that stays, and lies beside it.
pub(super) fn moves(schedule: &Schedule, each: Loop) -> Option<Moves> {
    match *reads(schedule, each).as_slice() {
        [first, second] => Some([first, second]),
        [first, second, scale] => {
            let fits = match second {
                Some(0) => scale == Some(0),
                Some(1) => matches!(scale, Some(0 | 1)),
                _ => true,
            };
            fits.then_some([first, second])
        }
        _ => None,
    }
}

/// How far a step of a loop around a sum moves what is read.
fn reads(schedule: &Schedule, each: Loop) -> Vec<Option<i64>> {
    let strides = schedule.strides(each).into_iter();
    strides.filter(|stride| !stride.is_written).map(|stride| stride.elements).collect()
}

/// Cuts loops that move an operand only from group to group, as channels do where each group has inputs of its own, into one over
/// groups and one within; but for a loop of so many lanes whose groups a vector holds.
pub(crate) fn groups_apart(
    schedule: &mut Schedule,
    sum: Block,
    out: Block,
    lanes: Option<i64>,
) -> Result<()> {
    let of_out = schedule.loops(out)?;
    let count = of_out.len();
    let loops = schedule.loops(sum)?;
    let mut cuts = Vec::new();
    for (at, &each) in loops.iter().enumerate().take(count) {
        let Some(found) = moves(schedule, each) else { return Ok(()) };
        if let Some(operand) = found.iter().position(Option::is_none)
            && let Some(steps) = group(schedule, each, operand)
        {
            let is_vector = lanes.is_some()
                && schedule.extent(each) == lanes
                && found[1 - operand] == Some(1)
                && stores_beside(schedule, of_out[at]);
            if !(is_vector && taps_inside(schedule, sum, count, operand)?) {
                cuts.push((at, steps));
            }
        }
    }
    for (at, steps) in cuts.into_iter().rev() {
        for block in [sum, out] {
            let each = schedule.loops(block)?[at];
            schedule.split(each, &[None, Some(steps)], Tail::Perfect)?;
        }
    }
    Ok(())
}

/// Lets the taps of a row stand inside of the other loops of a sum, which begin behind so many; whether there are few of them. What
/// neighbours see is then put into lanes once.
fn taps_inside(schedule: &mut Schedule, sum: Block, kept: usize, data: usize) -> Result<bool> {
    let depth = schedule.loops(sum)?[kept..].to_vec();
    let is_of_taps = |&each: &Loop| {
        let taps = schedule.extent(each).is_some_and(|taps| (2..=UNROLLED_TAPS).contains(&taps));
        taps && moves(schedule, each).is_some_and(|moved| !matches!(moved[data], Some(0 | 1)))
    };
    let Some(taps) = depth.iter().rposition(is_of_taps) else { return Ok(false) };
    let mut loops = depth;
    loops[taps..].rotate_left(1);
    schedule.reorder(&loops)?;
    // Where the sum is moved, its loops are made anew in the order of its iterators.
    let mut order: Vec<i64> = (0..(kept + loops.len()) as i64).collect();
    order[kept + taps..].rotate_left(1);
    Ok(attempt(schedule, |schedule| schedule.reorder_iterators(sum, &order)))
}

/// The most neighbouring steps of a loop, from a multiple of them on, that see the same elements of an operand.
fn group(schedule: &mut Schedule, each: Loop, operand: usize) -> Option<i64> {
    let extent = schedule.extent(each)?;
    let mut sizes = (2..=extent / 2).rev().filter(|steps| extent % steps == 0);
    sizes.find(|&steps| {
        let before = schedule.snapshot();
        let inner = schedule.split(each, &[None, Some(steps)], Tail::Perfect).map(|parts| parts[1]);
        let found = inner.ok().and_then(|inner| moves(schedule, inner));
        schedule.restore(before);
        found.is_some_and(|found| found[operand] == Some(0))
    })
}

/// Whether neighbouring steps of a loop write neighbours.
fn stores_beside(schedule: &Schedule, each: Loop) -> bool {
    let mut stores = schedule.strides(each).into_iter().filter(|stride| stride.is_store);
    stores.all(|stride| stride.elements == Some(1))
}

/// How neighbouring columns of a vector lie, and how many there are in it: columns in blocks may jump from one block to the next.
fn beside(schedule: &mut Schedule, column: Loop, extent: i64, lanes: i64) -> Result<(Moves, i64)> {
    if let Some(found) = moves(schedule, column).filter(|found| found.contains(&Some(1))) {
        return Ok((found, lanes));
    }
    let narrower = [lanes, lanes / 2, lanes / 4];
    let mut sizes = narrower.into_iter().filter(|&lanes| 1 < lanes && lanes < extent);
    let found = sizes.find_map(|size| Some((within(schedule, column, extent, size)?, size)));
    found.map_or_else(no_product, Ok)
}

/// How many columns lie side by side, where columns lie in panels of several vectors.
fn panel(schedule: &mut Schedule, column: Loop, extent: i64, lanes: i64) -> i64 {
    let is_plain = moves(schedule, column).is_some();
    let mut sizes = [8, 4, 2].into_iter().map(|vectors| vectors * lanes);
    let found = sizes.find(|&size| {
        !is_plain && size < extent && within(schedule, column, extent, size).is_some()
    });
    found.unwrap_or(0)
}

/// How columns lie within `size` of them from a multiple of that on, where they lie side by side.
fn within(schedule: &mut Schedule, column: Loop, extent: i64, size: i64) -> Option<Moves> {
    let before = schedule.snapshot();
    let parts = schedule.partition(column, &[Some(extent / size * size)]);
    let whole = parts.map_or(column, |parts| parts[0]);
    let inner = schedule.split(whole, &[None, Some(size)], Tail::Perfect);
    let found = inner.ok().and_then(|parts| moves(schedule, parts[1]));
    schedule.restore(before);
    found.filter(|found| found.contains(&Some(1)))
}
