//! Products of matrices and convolutions, in tiles of rows by vectors of columns that stay in registers.
//!
//! ```ir
//! for %i … { for %j … { for %r … {                     for %j_0 … parallel { for %i_0 … {            columns, then rows
//!   block "acc" … } } }                                  for %i_1 in 0..14 unrolled { … block "acc_init" … }
//! for %i … { for %j … {                                  for %r … { for %i_1 in 0..14 unrolled { for %j_1 in 0..2 unrolled {
//!   block "out" … } }                           =>         for %j_2 in 0..16 vectorized { block "acc" … } } } }
//!                                                        for %i_1 in 0..14 unrolled { … block "out" … } } }
//! ```
//!
//! *Columns* are where neighbours of one operand are neighbours in memory: at each step of the sum some vectors of it are loaded.
//! *Rows* move the other operand alone: each brings an element that is multiplied with all vectors. So a matrix that lies row by row
//! has its own, a convolution of channels in blocks has output channels for columns and pixels for rows, and one of pixels in rows
//! has it the other way round. Lines of rows that lie in memory as one are one. Rows are divided evenly, into tiles of two heights
//! where need be; columns that fill no tile have one of their own. Of rows and columns whose number is not known those that fill tiles
//! are computed so, then lower tiles and single vectors, and the few that are left one by one, or in a vector that leaves lanes out.
//! Columns stand outside of all rows, so that what is loaded in vectors stays near; where rows come from afar then, a *chunk* of them
//! stands inside, that stays near itself.
//! Whatever follows the sum is done to a tile while it is there.

use tenon_plugin_api::rule;
use tenon_schedule::{Block, Machine, Refusal, Result, Schedule, Tail, Task};

use self::chunks::Cut;
use self::operands::{Form, Operands};
use self::tile::{Shape, Tile, Wanted};
use crate::{attempt, finish, inlining};

pub(crate) use self::joined::as_one_row;
pub(crate) use self::nest::on_threads;
pub(crate) use self::operands::groups_apart;

mod bands;
mod chunks;
mod dots;
mod joined;
mod nest;
mod operands;
pub(crate) mod tile;
mod turned;

/// Rows of a tile from which on what fills none is computed in tiles of half of that, then of its square root, and only the rest row by
/// row: each goes over all columns once more, and one row takes as long as three.
const HIGH: i64 = 8;

/// Lanes of a vector from which on it holds several groups of channels: narrower ones are as a rule of processors whose loads leave no
/// lanes out.
const WIDE: i64 = 8;
/// Steps of a loop for each thread, so that none waits long for the last.
const STEPS: i64 = 4;

/// Tiles of rows by vectors of columns.
#[rule(schedule, key = "any", benefit = 2, knobs = [rows = 1..=64, vectors = 1..=32, chunk = 0..=64])]
fn product(task: &mut Task) -> Result<()> {
    if !task.is_for_cpu() {
        return no_product();
    }
    let machine = task.machine();
    let wanted = Wanted {
        rows: task.wanted("rows"),
        vectors: task.wanted("vectors"),
        chunk: task.wanted("chunk"),
        is_even: false,
    };
    let schedule = &mut task.schedule;
    if schedule.has_loose_statements() {
        return no_product();
    }
    inlining::inline_all(schedule);
    let (sum, out) = sum_and_result(schedule)?;
    attempt(schedule, |schedule| schedule.skip_zeros(sum));
    let mut before = schedule.producers(sum)?;
    let lanes = lanes_of(schedule, sum, machine.lanes());
    let wide = Some(lanes).filter(|&lanes| lanes >= WIDE);
    operands::groups_apart(schedule, sum, out, wide)?;
    before.extend(turned::columns_beside(schedule, [sum, out], lanes, &machine));
    let (apart, others) = (schedule.snapshot(), before.clone());
    let line = joined::join(schedule, [sum, out], lanes, &machine)?;
    let whole = Whole { blocks: [sum, out], lanes, line: line.flatten() };
    let made = match whole.computed(schedule, &machine, wanted, &mut before) {
        // Parts of a row that is a number times an unknown one are not always known to lie apart.
        Err(_) if line == Some(None) => {
            schedule.restore(apart);
            before = others;
            whole.computed(schedule, &machine, wanted, &mut before)
        }
        made => made,
    };
    let (operands, shape) = made?;
    for block in before {
        finish::alone(schedule, block, lanes, machine.threads > 1);
    }
    tell(task, &operands, &shape)
}

/// A sum and its result.
struct Whole {
    blocks: [Block; 2],
    lanes: i64,
    /// Rows that are a line, where lines of a known length were made one.
    line: Option<i64>,
}

impl Whole {
    /// Computes a product in tiles; those of the first piece are given.
    fn computed(
        &self,
        schedule: &mut Schedule,
        machine: &Machine,
        mut wanted: Wanted,
        before: &mut Vec<Block>,
    ) -> Result<(Operands, Shape)> {
        let &Self { blocks: [sum, out], lanes, line } = self;
        known_rows_inside(schedule, [sum, out], lanes)?;
        windows_inside(schedule, [sum, out], lanes)?;
        let operands = Operands::of(schedule, sum, out, lanes)?;
        if operands.form == Form::Dots {
            before.extend(dots::whole_vectors(schedule, sum, operands.lanes)?);
        }
        let cut_first = chunks_first(schedule, &operands, machine, wanted, line)?;
        if cut_first.is_some() {
            wanted.chunk = Some(1);
        }
        let pieces = whole_tiles(schedule, [sum, out], lanes, machine, wanted)?;
        let mut first = None;
        for [sum, out] in pieces {
            let operands = Operands::of(schedule, sum, out, lanes)?;
            let wanted = if first.is_none() { wanted } else { wanted.of_chunk() };
            let shape = in_tiles(schedule, &operands, machine, wanted, before)?;
            first.get_or_insert((operands, shape));
        }
        let Some((operands, mut shape)) = first else { return no_product() };
        shape.chunk = cut_first.unwrap_or(shape.chunk);
        Ok((operands, shape))
    }
}

/// Cuts the last loop over rows into chunks before tiles are cut of it, where it is of lines or the only one. How many steps a chunk has
/// is given; nothing where there are none.
fn chunks_first(
    schedule: &mut Schedule,
    operands: &Operands,
    machine: &Machine,
    wanted: Wanted,
    line: Option<i64>,
) -> Result<Option<i64>> {
    let Some(cut) = Cut::of(operands, line).filter(|cut| cut.is_of_last()) else { return Ok(None) };
    let steps = match wanted.chunk {
        Some(steps) => steps,
        None if line.is_some() => cut.best(schedule, operands, machine, wanted)?,
        None => 0,
    };
    if steps == 0 {
        return Ok(None);
    }
    cut.into_chunks(schedule, operands, steps)?;
    Ok(Some(steps))
}

/// Lets rows whose number is known stand inside of those whose number is not, where they are many enough for tiles.
fn known_rows_inside(schedule: &mut Schedule, blocks: [Block; 2], lanes: i64) -> Result<()> {
    let [sum, out] = blocks;
    let operands = Operands::of(schedule, sum, out, lanes)?;
    let Some(&last) = operands.rows.last().filter(|&&last| operands.is_unknown(last)) else {
        return Ok(());
    };
    let mut rows = operands.rows.iter().copied();
    let is_good = |&at: &usize| !operands.is_unknown(at) && operands.extent(at) >= HIGH;
    let Some(known) = rows.rfind(is_good) else { return Ok(()) };
    for block in blocks {
        let mut loops = schedule.loops(block)?[known..=last].to_vec();
        loops.rotate_left(1);
        schedule.reorder(&loops)?;
    }
    Ok(())
}

/// Lets a loop over lines whose neighbours see the same data, as the images of a window that reaches over several do, stand inside of one
/// whose neighbours do not: what they share then stays near.
fn windows_inside(schedule: &mut Schedule, blocks: [Block; 2], lanes: i64) -> Result<()> {
    let [sum, out] = blocks;
    let operands = Operands::of(schedule, sum, out, lanes)?;
    let &[.., outer, inner, _] = operands.rows.as_slice() else { return Ok(()) };
    let [is_shared, is_inner_shared] =
        [outer, inner].map(|at| operands.sees_the_same(schedule, at));
    if outer + 1 != inner || !is_shared? || is_inner_shared? {
        return Ok(());
    }
    for block in blocks {
        let loops = schedule.loops(block)?;
        schedule.reorder(&[loops[inner], loops[outer]])?;
    }
    Ok(())
}

/// Cuts rows and columns whose number is not known into those that fill the best tiles and those that are left: in lower tiles and
/// single vectors first, the few others one by one. Sum and result of each piece are given, that of whole tiles first.
fn whole_tiles(
    schedule: &mut Schedule,
    whole: [Block; 2],
    lanes: i64,
    machine: &Machine,
    wanted: Wanted,
) -> Result<Vec<[Block; 2]>> {
    let mut pieces = vec![whole];
    for is_row in [true, false] {
        for [sum, out] in pieces.clone() {
            let operands = Operands::of(schedule, sum, out, lanes)?;
            let at = if is_row { operands.rows.last().copied() } else { Some(operands.column) };
            let Some(at) = at.filter(|&at| operands.is_unknown(at)) else { continue };
            let shape = Shape::best(&operands.of_many(), machine, wanted)?;
            let size = if is_row { shape.rows[0].size } else { shape.columns[0].size };
            let lower = match is_row {
                true if size >= HIGH => [Some(size / 2), Some(size.isqrt())],
                false if operands.form != Form::Dots && size > lanes => [Some(lanes), None],
                _ => [None, None],
            };
            let mut rest = [sum, out];
            for size in std::iter::once(size).chain(lower.into_iter().flatten()) {
                rest = cut_off(schedule, &rest, at, size)?;
                pieces.push(rest);
            }
        }
    }
    Ok(pieces)
}

/// Cuts the loop with the number `at` of a sum and its result into steps of `size` and those that are left, whose sum and result are
/// given. What are steps of a tile stand where the loop stood, and so do those that are left.
pub(crate) fn cut_off(
    schedule: &mut Schedule,
    piece: &[Block; 2],
    at: usize,
    size: i64,
) -> Result<[Block; 2]> {
    let mut rest = *piece;
    for (block, left_over) in piece.iter().zip(&mut rest) {
        // Outermost, so that no loop holds both.
        let mut outer = schedule.loops(*block)?[..=at].to_vec();
        outer.rotate_right(1);
        if at > 0 {
            schedule.reorder(&outer)?;
        }
        let parts = schedule.split(outer[0], &[None, Some(size)], Tail::Cut)?;
        let &[_, within, left] = parts.as_slice() else { return no_product() };
        match schedule.children(left)?.as_slice() {
            &[left] => *left_over = left,
            _ => return no_product(),
        }
        if at > 0 {
            schedule.reorder(&[&outer[1..], &[within]].concat())?;
            let mut others = schedule.loops(*left_over)?[..=at].to_vec();
            others.rotate_left(1);
            schedule.reorder(&others)?;
        }
    }
    Ok(rest)
}

/// Computes a product in the best tiles, or in those of one size where others cannot be told apart, as in groups of channels.
fn in_tiles(
    schedule: &mut Schedule,
    operands: &Operands,
    machine: &Machine,
    wanted: Wanted,
    before: &mut Vec<Block>,
) -> Result<Shape> {
    let best = |schedule: &mut Schedule, wanted| {
        let shape = Shape::best(operands, machine, wanted)?;
        let cut = Cut::of(operands, None).filter(|cut| !cut.is_of_last());
        let chunk = match (wanted.chunk, cut) {
            (Some(steps), _) => steps,
            (None, Some(cut)) => cut.best(schedule, operands, machine, wanted)?,
            (None, None) => 0,
        };
        Ok(Shape { chunk, ..shape })
    };
    let start = schedule.snapshot();
    let shape = best(schedule, wanted)?;
    let Err(refusal) = nest::in_tiles(schedule, operands, &shape, machine, before) else {
        return Ok(shape);
    };
    schedule.restore(start);
    match best(schedule, Wanted { is_even: true, ..wanted }) {
        Ok(even) if even != shape => {
            nest::in_tiles(schedule, operands, &even, machine, before).map(|()| even)
        }
        _ => Err(refusal),
    }
}

/// Says which tiles these are, and what they cost.
fn tell(task: &mut Task, operands: &Operands, shape: &Shape) -> Result<()> {
    let machine = task.machine();
    let Tile { rows, vectors } = shape.tile(operands);
    task.choose("rows", rows)?;
    task.choose("vectors", vectors)?;
    task.choose("chunk", shape.chunk)?;
    let form = match operands.form {
        Form::Depthwise => "both operands lie along the columns",
        Form::Columns => "one operand lies along the columns",
        Form::Dots => "both operands lie along the sum",
    };
    task.because(format!(
        "{form}; of the tiles that stay in {} registers, {rows} rows by {vectors} vectors take least time",
        machine.registers
    ));
    task.predict(shape.cycles(operands, &machine) / operands.threads(&machine) as f64);
    Ok(())
}

/// How many sums a vector holds that holds so many elements of 32 bits.
fn lanes_of(schedule: &Schedule, sum: Block, lanes: i64) -> i64 {
    (lanes * 32 / schedule.bits(sum).max(8)).max(1)
}

fn no_product<T>() -> Result<T> {
    Err(Refusal::new("the program is no product of operands one of which lies in rows"))
}

/// The sum of products, and the block that writes what becomes of it; all other blocks stand before them.
pub(crate) fn sum_and_result(schedule: &mut Schedule) -> Result<(Block, Block)> {
    let (blocks, sum) = (schedule.all_blocks(), schedule.anchor()?);
    let &[.., first, out] = blocks.as_slice() else { return no_product() };
    let is_one = first == sum
        && schedule.is_reduction(sum)
        && schedule.has_init(sum)
        && schedule.writes_result(out)
        && schedule.consumers(sum)? == [out]
        && !blocks.iter().any(|&block| block != sum && schedule.is_reduction(block));
    if is_one { Ok((sum, out)) } else { no_product() }
}
