//! Convolutions by Winograd's algorithm of images whose size nobody knows: some groups of tiles at a time.
//!
//! ```ir
//! block "padded" …         data with zeros around it         block "padded" …
//! block "rows" …           the data at points,               for %g_0 in 0..(g + 7) // 8 {                  chunks of groups
//! block "points" …         along columns, along rows           for %g_1 … { for %s … { for %c … { block "rows" … block "points" … } } }
//! block "acc" …            products, one for each point   =>   for %o_0 in 0..2 {
//! block "half" …           the sums that come back,              for %p … { for %q … { for %g_1 … { block "acc" … block "acc_local" … } } }
//! block "tiles" …          along columns, along rows             for %g_1 … { for %s … { block "half" … block "tiles" … } } } }
//! block "out" …            where they belong                 block "out" …
//! ```
//!
//! It is the [rule](crate::winograd) for images of known sizes, where a row of tiles is a group: their number is known, the number of
//! groups is not. So products have no rows that are left over, and a chunk's memory is of a known size.

use tenon_plugin_api::rule;
use tenon_schedule::{Block, Loop, Machine, Memory, Refusal, Result, Schedule, Tail, Task};

use crate::finish;
use crate::vectors::in_registers;
use crate::winograd::{Form, Sizes, extents, is_chain, moved, products, rows_at};

/// Groups of an image of 64 by 64, by which chunks are chosen: larger ones would take memory for what small images do not have.
const GROUPS: i64 = 16;

/// Chunks of groups of tiles, whose products are tiles in registers.
#[rule(schedule, key = "any", benefit = 6, knobs = [chunk = 1..=64, rows = 1..=64, vectors = 1..=32])]
fn winograd_groups(task: &mut Task) -> Result<()> {
    if !task.is_for_cpu() {
        return no_match();
    }
    let machine = task.machine();
    let stages = Stages::of(&mut task.schedule)?;
    let sizes = sizes(&mut task.schedule, &stages)?;
    // A product over rows of several groups would have some that are left over.
    let form = Form::best(&sizes, &machine, |form| {
        form.rows <= sizes.across
            && form.knobs().iter().all(|&(knob, value)| task.may_choose(knob, value))
    })?;
    in_chunks(&mut task.schedule, &stages, &sizes, &form, &machine)?;
    for &block in stages.before.iter().chain([&stages.out]) {
        finish::alone(&mut task.schedule, block, machine.lanes(), machine.threads > 1);
    }
    for (knob, value) in form.knobs() {
        task.choose(knob, value)?;
    }
    task.because(format!(
        "products of Winograd's algorithm over images of any size; of the chunks whose data and weights come from caches, {} groups \
         of {} tiles take least time",
        form.chunk, sizes.across
    ));
    Ok(())
}

fn no_match<T>() -> Result<T> {
    Err(Refusal::new("the program is no convolution by Winograd's algorithm in groups of tiles"))
}

/// The blocks of the program, in order.
struct Stages {
    rows: Block,
    points: Block,
    sum: Block,
    half: Block,
    tiles: Block,
    out: Block,
    /// What makes its data, before all of them.
    before: Vec<Block>,
}

impl Stages {
    fn of(schedule: &mut Schedule) -> Result<Self> {
        if schedule.has_loose_statements() {
            return no_match();
        }
        let blocks = schedule.all_blocks();
        let &[ref before @ .., rows, points, sum, half, tiles, out] = blocks.as_slice() else {
            return no_match();
        };
        let is_one = is_chain(schedule, &[rows, points, sum, half, tiles, out], sum)?
            && schedule.writes_result(out)
            && schedule.has_init(sum);
        let before = before.to_vec();
        if is_one { Ok(Self { rows, points, sum, half, tiles, out, before }) } else { no_match() }
    }
}

/// The extents of the program, where a row of tiles is a group.
fn sizes(schedule: &mut Schedule, stages: &Stages) -> Result<Sizes> {
    let of_sum = extents(schedule, stages.sum)?;
    // Outputs, points down and across, groups, tiles, lanes; and what is summed over.
    let &[
        Some(outputs),
        Some(points),
        Some(_),
        None,
        Some(across),
        Some(lanes),
        Some(inputs),
        Some(depth),
    ] = of_sum.as_slice()
    else {
        return no_match();
    };
    match extents(schedule, stages.tiles)?.as_slice() {
        &[_, None, Some(_), Some(tile), Some(_), Some(_)] => Ok(Sizes {
            images: None,
            outputs,
            lanes,
            inputs,
            depth,
            points,
            tile,
            down: GROUPS,
            across,
        }),
        _ => no_match(),
    }
}

fn in_chunks(
    schedule: &mut Schedule,
    stages: &Stages,
    sizes: &Sizes,
    form: &Form,
    machine: &Machine,
) -> Result<()> {
    let copy = schedule.cache_write(stages.sum, "acc", Memory::Local)?;
    let &[blocks, group, tile, y, x, lane] = schedule.loops(stages.tiles)?.as_slice() else {
        return no_match();
    };
    let groups = schedule.split(group, &[None, Some(form.chunk)], Tail::Guard)?;
    let at_once = [None, Some(form.blocks(sizes, machine))];
    let blocks = schedule.split(blocks, &at_once, Tail::Perfect)?;
    schedule.reorder(&[groups[0], blocks[0], blocks[1], groups[1], tile, y, x, lane])?;
    in_registers(schedule, &[y, x, lane], machine.lanes())?;
    schedule.compute_at(stages.half, tile)?;
    let own = schedule.own_loops(stages.half)?;
    in_registers(schedule, &own, machine.lanes())?;
    schedule.compute_at(copy, blocks[0])?;
    products(schedule, [stages.sum, copy], sizes, form, machine)?;
    schedule.compute_at(stages.points, groups[0])?;
    let channels = at_points(schedule, stages, sizes, form, machine)?;
    if machine.threads > 1 {
        for each in [Some(blocks[0]), channels].into_iter().flatten() {
            schedule.parallel(each)?;
        }
    }
    Ok(())
}

/// What the data of a chunk is at the points, a tile after the other, so that where it lies is computed once for all channels; the
/// outermost loop.
fn at_points(
    schedule: &mut Schedule,
    stages: &Stages,
    sizes: &Sizes,
    form: &Form,
    machine: &Machine,
) -> Result<Option<Loop>> {
    let extents = [sizes.points, sizes.points, form.chunk, sizes.across, sizes.inputs, sizes.depth];
    let [p, q, group, tile, channels, lane] = moved(schedule, stages.points, extents)?;
    let order: Vec<Loop> = [group, tile, channels, p, q, lane].into_iter().flatten().collect();
    schedule.reorder(&order)?;
    in_registers(schedule, &[q, lane].into_iter().flatten().collect::<Vec<_>>(), machine.lanes())?;
    let Some(at) = channels.or(tile) else { return Ok(None) };
    let [_, points, lane] = rows_at(schedule, stages.rows, at)?;
    in_registers(schedule, &[points, lane], machine.lanes())?;
    Ok(group.or(tile))
}
