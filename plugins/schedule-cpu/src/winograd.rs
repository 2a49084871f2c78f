//! Convolutions by Winograd's algorithm: what goes into the products and what comes out of them stays in caches.
//!
//! ```ir
//! block "rows" …           the data at points,               for %y_0 in 0..14 parallel {              chunks of rows of tiles
//! block "points" …         along columns, along rows           for %c … { block "rows" … block "points" … }
//! block "acc" …            products, one for each point   =>   for %o_0 in 0..2 {
//! block "half" …           the sums that come back,              for %p … { for %q … { for %tile … {
//! block "out" …            along columns, along rows               block "acc" … block "acc_local" … } } }
//!                                                                for %y_1 … { for %x_0 … { block "half" … block "out" … } } } }
//! ```
//!
//! A chunk is some rows of tiles of an image. What their data is at the points is computed once, and lies in a cache close by while the
//! products of all output channels read it; these take some output channels at a time, so that what comes back from them
//! is read while it is near (Lavin and Gray, 2016; the order is that of MNN, Jiang et al., 2020). Larger chunks read the weights less
//! often, which are four times those of the plain convolution; smaller ones leave more room to what they make. The
//! products are tiles of tiles by vectors of output channels, in registers.

use tenon_plugin_api::rule;
use tenon_schedule::{Block, Loop, Machine, Memory, Refusal, Result, Schedule, Tail, Task};

use crate::caches::bandwidth;
use crate::finish;
use crate::product::tile::Tile;
use crate::vectors::in_registers;
use crate::windows::without_borders;

/// Steps of a loop for each thread, so that none waits long for the last.
const STEPS: i64 = 4;

/// Chunks of rows of tiles, whose products are tiles in registers.
#[rule(schedule, key = "any", benefit = 5, knobs = [chunk = 1..=64, rows = 1..=64, vectors = 1..=32])]
fn winograd(task: &mut Task) -> Result<()> {
    if !task.is_for_cpu() {
        return no_match();
    }
    let machine = task.machine();
    let stages = Stages::of(&mut task.schedule)?;
    let sizes = Sizes::of(&mut task.schedule, &stages)?;
    let form = Form::best(&sizes, &machine, |form| {
        form.knobs().iter().all(|&(knob, value)| task.may_choose(knob, value))
    })?;
    in_chunks(&mut task.schedule, &stages, &sizes, &form, &machine)?;
    for &block in &stages.before {
        finish::alone(&mut task.schedule, block, machine.lanes(), machine.threads > 1);
    }
    for (knob, value) in form.knobs() {
        task.choose(knob, value)?;
    }
    task.because(format!(
        "products of Winograd's algorithm; of the chunks whose data and weights come from caches, {} rows of {} tiles take least time",
        form.chunk, sizes.across
    ));
    task.predict(form.cycles / sizes.threads(&form, &machine) as f64);
    Ok(())
}

fn no_match<T>() -> Result<T> {
    Err(Refusal::new("the program is no convolution by Winograd's algorithm"))
}

/// The blocks of the program, in order.
struct Stages {
    rows: Block,
    points: Block,
    sum: Block,
    half: Block,
    out: Block,
    /// What makes its data, before all of them.
    before: Vec<Block>,
}

impl Stages {
    /// A sum of products between two pairs of blocks each of which only the next one reads.
    fn of(schedule: &mut Schedule) -> Result<Self> {
        if schedule.has_loose_statements() {
            return no_match();
        }
        let blocks = schedule.all_blocks();
        let &[ref before @ .., rows, points, sum, half, out] = blocks.as_slice() else {
            return no_match();
        };
        let is_one = is_chain(schedule, &[rows, points, sum, half, out], sum)?
            && schedule.writes_result(out)
            && schedule.has_init(sum);
        let before = before.to_vec();
        if is_one { Ok(Self { rows, points, sum, half, out, before }) } else { no_match() }
    }
}

/// Whether only the next block reads what each writes, and only `sum` is a sum.
pub(crate) fn is_chain(schedule: &mut Schedule, blocks: &[Block], sum: Block) -> Result<bool> {
    for pair in blocks.windows(2) {
        if schedule.is_reduction(pair[0]) != (pair[0] == sum)
            || schedule.consumers(pair[0])? != [pair[1]]
        {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The extents of the program.
pub(crate) struct Sizes {
    /// Images, where their number is known.
    pub(crate) images: Option<i64>,
    /// Blocks of output channels, and output channels in one.
    pub(crate) outputs: i64,
    pub(crate) lanes: i64,
    /// Blocks of input channels, and input channels in one.
    pub(crate) inputs: i64,
    pub(crate) depth: i64,
    /// Points along an axis, and results of a tile along an axis.
    pub(crate) points: i64,
    pub(crate) tile: i64,
    /// Tiles of an image, down and across.
    pub(crate) down: i64,
    pub(crate) across: i64,
}

impl Sizes {
    fn of(schedule: &mut Schedule, stages: &Stages) -> Result<Self> {
        let [of_sum, of_half, of_out] =
            [stages.sum, stages.half, stages.out].map(|block| extents(schedule, block));
        let (of_sum, of_half) = (of_sum?, of_half?);
        // Images, outputs, points down and across, tiles down and across, lanes; and what is summed over.
        let &[
            images,
            Some(outputs),
            Some(points),
            Some(_),
            Some(down),
            Some(across),
            Some(lanes),
            Some(inputs),
            Some(depth),
        ] = of_sum.as_slice()
        else {
            return no_match();
        };
        let &[_, _, _, _, _, Some(tile), _] = of_half.as_slice() else { return no_match() };
        match of_out?.as_slice() {
            &[_, Some(blocks), Some(_), Some(_), Some(channels)]
                if (blocks, channels) == (outputs, lanes) =>
            {
                Ok(Self { images, outputs, lanes, inputs, depth, points, tile, down, across })
            }
            _ => no_match(),
        }
    }

    /// How many chunks of so many rows there are, where that is known.
    fn chunks(&self, form: &Form) -> Option<i64> {
        self.images.map(|images| images * (self.down / form.chunk))
    }

    /// On how many threads it runs.
    fn threads(&self, form: &Form, machine: &Machine) -> i64 {
        let inside = self.inputs.min(self.outputs * self.lanes / (form.vectors * machine.lanes()));
        machine.threads.min(self.chunks(form).unwrap_or(1).max(inside)).max(1)
    }
}

/// The extents of the loops around a block.
pub(crate) fn extents(schedule: &mut Schedule, block: Block) -> Result<Vec<Option<i64>>> {
    Ok(schedule.loops(block)?.into_iter().map(|each| schedule.extent(each)).collect())
}

/// How the products are cut.
pub(crate) struct Form {
    /// Rows of tiles in a chunk.
    pub(crate) chunk: i64,
    /// Tiles and vectors of output channels that are in registers at once.
    pub(crate) rows: i64,
    pub(crate) vectors: i64,
    /// Cycles of all of it, on one core.
    pub(crate) cycles: f64,
}

impl Form {
    /// What the rule's knobs are.
    pub(crate) fn knobs(&self) -> [(&'static str, i64); 3] {
        [("chunk", self.chunk), ("rows", self.rows), ("vectors", self.vectors)]
    }

    /// The form that takes least time, of those that may be.
    pub(crate) fn best(
        sizes: &Sizes,
        machine: &Machine,
        may_be: impl Fn(&Self) -> bool,
    ) -> Result<Self> {
        let divisors = |of: i64| (1..=of).filter(move |part| of % part == 0);
        let vectors_of_block = (sizes.lanes / machine.lanes()).max(1);
        let mut best: Option<Self> = None;
        for chunk in divisors(sizes.down) {
            // Parts of a row of tiles, or whole rows.
            let whole = divisors(chunk).map(|down| down * sizes.across);
            for rows in divisors(sizes.across).chain(whole) {
                for vectors in divisors(sizes.outputs).map(|blocks| blocks * vectors_of_block) {
                    let form = Self { chunk, rows, vectors, cycles: 0.0 };
                    if !may_be(&form) || !(Tile { rows, vectors }).fits(machine.registers) {
                        continue;
                    }
                    let cycles = form.cycles(sizes, machine);
                    if best.as_ref().is_none_or(|best| cycles < best.cycles) {
                        best = Some(Self { cycles, ..form });
                    }
                }
            }
        }
        best.map_or_else(no_match, Ok)
    }

    /// Blocks of output channels that are computed at once.
    pub(crate) fn blocks(&self, sizes: &Sizes, machine: &Machine) -> i64 {
        (self.vectors * machine.lanes() / sizes.lanes).max(1)
    }

    /// Cycles of one step of a tile's sum. Where the weights that all steps read are more than half of the nearest cache, each tile reads
    /// them from the second one again.
    fn step(&self, channels: f64, machine: &Machine) -> f64 {
        let Self { rows, vectors, .. } = *self;
        let multiplied = Tile { rows, vectors }.cost() / machine.fma_units as f64;
        let bytes = (4 * vectors * machine.lanes()) as f64;
        let is_near = channels * bytes <= 0.5 * machine.caches[0] as f64;
        if is_near { multiplied } else { multiplied.max(bytes / bandwidth(machine, 0.0)) }
    }

    /// Cycles of the products, and half of those in which what they read comes: the other half hides behind them.
    fn cycles(&self, sizes: &Sizes, machine: &Machine) -> f64 {
        let Self { chunk, rows, .. } = *self;
        let points = (sizes.points * sizes.points) as f64;
        let channels = (sizes.inputs * sizes.depth) as f64;
        let (tiles, outputs) =
            ((chunk * sizes.across) as f64, (sizes.outputs * sizes.lanes) as f64);
        let groups = (sizes.outputs / self.blocks(sizes, machine)) as f64;
        let steps = points * tiles / rows as f64 * groups * channels;
        let products = steps * self.step(channels, machine);
        let bytes = |elements: f64| 4.0 * points * elements;
        let [weights, data] = [bytes(channels * outputs), bytes(tiles * channels)];
        let near = data + bytes(tiles * outputs / groups);
        let read = weights / bandwidth(machine, weights)
            + (groups + 1.0) * data / bandwidth(machine, near);
        let chunks = (sizes.images.unwrap_or(1) * sizes.down / chunk) as f64;
        chunks * (products + read / 2.0)
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
    let around = loops_of_result(schedule, stages, sizes, form, machine)?;
    schedule.compute_at(stages.half, around.across)?;
    let own = schedule.own_loops(stages.half)?;
    in_registers(schedule, &own, machine.lanes())?;
    schedule.compute_at(copy, around.outputs)?;
    products(schedule, [stages.sum, copy], sizes, form, machine)?;
    schedule.compute_at(stages.points, around.chunk)?;
    let channels = at_points(schedule, stages, sizes, form, machine)?;
    if around.is_parallel || machine.threads == 1 {
        return Ok(());
    }
    for each in [Some(around.outputs), channels].into_iter().flatten() {
        schedule.parallel(each)?;
    }
    Ok(())
}

/// Loops around the result.
struct Around {
    /// Over chunks; whether they run on threads.
    chunk: Loop,
    is_parallel: bool,
    /// Over blocks of output channels.
    outputs: Loop,
    /// Over tiles across.
    across: Loop,
}

fn loops_of_result(
    schedule: &mut Schedule,
    stages: &Stages,
    sizes: &Sizes,
    form: &Form,
    machine: &Machine,
) -> Result<Around> {
    let &[image, blocks, y, x, lane] = schedule.loops(stages.out)?.as_slice() else {
        return no_match();
    };
    let down = schedule.split(y, &[None, Some(form.chunk), Some(sizes.tile)], Tail::Guard)?;
    let across = schedule.split(x, &[None, Some(sizes.tile)], Tail::Guard)?;
    let blocks =
        schedule.split(blocks, &[None, Some(form.blocks(sizes, machine))], Tail::Perfect)?;
    let order =
        [image, down[0], blocks[0], blocks[1], down[1], across[0], down[2], across[1], lane];
    schedule.reorder(&order)?;
    in_registers(schedule, &[down[2], across[1], lane], machine.lanes())?;
    let (chunk, is_parallel) = on_threads(schedule, [image, down[0]], sizes, form, machine)?;
    Ok(Around { chunk, is_parallel, outputs: blocks[0], across: across[0] })
}

/// Spreads chunks over threads where there are enough of them: some tasks, each of which has memory for one chunk.
fn on_threads(
    schedule: &mut Schedule,
    [image, chunk]: [Loop; 2],
    sizes: &Sizes,
    form: &Form,
    machine: &Machine,
) -> Result<(Loop, bool)> {
    let is_enough = |count: &i64| machine.threads > 1 && *count >= 2 * machine.threads;
    let (Some(images), Some(count)) = (sizes.images, sizes.chunks(form).filter(is_enough)) else {
        return Ok((chunk, false));
    };
    let all = schedule.fuse(&[image, chunk])?;
    let most = STEPS * machine.threads;
    // A task is of one image, or of whole ones: what it reads could not be told otherwise.
    let is_apart = |tasks: i64| tasks % images == 0 || images % tasks == 0;
    let is_even = |tasks: &i64| count % tasks == 0 && is_apart(*tasks);
    let tasks = (1..=most.min(count)).rev().find(is_even).unwrap_or(1);
    if tasks < machine.threads || tasks == count {
        schedule.parallel(all)?;
        return Ok((all, true));
    }
    let parts = schedule.split(all, &[Some(tasks), None], Tail::Perfect)?;
    schedule.parallel(parts[0])?;
    Ok((parts[1], true))
}

/// The products of a chunk with some output channels, in tiles.
pub(crate) fn products(
    schedule: &mut Schedule,
    [sum, copy]: [Block; 2],
    sizes: &Sizes,
    form: &Form,
    machine: &Machine,
) -> Result<()> {
    let blocks = form.blocks(sizes, machine);
    let extents = [blocks, sizes.points, sizes.points, form.chunk, sizes.across, sizes.lanes];
    let [blocks, p, q, down, across, lane] = moved(schedule, copy, extents)?;
    let (Some(p), Some(q), Some(lane)) = (p, q, lane) else { return no_match() };
    // Whole rows of tiles, or parts of one.
    let (down_at_once, across_at_once) = if form.rows > sizes.across {
        (form.rows / sizes.across, sizes.across)
    } else {
        (1, form.rows)
    };
    let mut over = vec![p, q];
    let mut within = Vec::new();
    for (tiles, at_once) in [(down, down_at_once), (across, across_at_once)] {
        let Some(tiles) = tiles else { continue };
        let parts = schedule.split(tiles, &[None, Some(at_once)], Tail::Perfect)?;
        over.push(parts[0]);
        within.push(parts[1]);
    }
    let at = over[over.len() - 1];
    let inner: Vec<Loop> = within.into_iter().chain(blocks).chain([lane]).collect();
    schedule.reorder(&[over, inner.clone()].concat())?;
    in_registers(schedule, &inner, machine.lanes())?;
    schedule.compute_at(sum, at)?;
    let own = schedule.own_loops(sum)?;
    let (depth, kept) = schedule.reduced_and_kept(sum, &own);
    let extents = [form.blocks(sizes, machine), down_at_once, across_at_once, sizes.lanes];
    let [blocks, rest @ ..] = each_of(schedule, &kept, extents)?;
    let [down, across, lane] = rest;
    let kept: Vec<Loop> = [down, across, blocks, lane].into_iter().flatten().collect();
    let Some(&first) = depth.first() else { return no_match() };
    schedule.reorder(&[depth.as_slice(), &kept].concat())?;
    let start = schedule.decompose_reduction(sum, first)?;
    let of_start = schedule.own_loops(start)?;
    in_registers(schedule, &of_start, machine.lanes())?;
    in_registers(schedule, &kept, machine.lanes())
}

/// What the data of a chunk is at the points, channels outermost: the loop over their blocks.
fn at_points(
    schedule: &mut Schedule,
    stages: &Stages,
    sizes: &Sizes,
    form: &Form,
    machine: &Machine,
) -> Result<Option<Loop>> {
    let extents = [sizes.points, sizes.points, form.chunk, sizes.across, sizes.inputs, sizes.depth];
    let [p, q, down, across, channels, lane] = moved(schedule, stages.points, extents)?;
    let order: Vec<Loop> = [channels, down, p, across, q, lane].into_iter().flatten().collect();
    schedule.reorder(&order)?;
    in_registers(schedule, &[q, lane].into_iter().flatten().collect::<Vec<_>>(), machine.lanes())?;
    let Some(at) = down.or(channels) else { return Ok(None) };
    let [columns, ..] = rows_at(schedule, stages.rows, at)?;
    for part in without_borders(schedule, columns)? {
        for block in schedule.children(part)? {
            let own = schedule.own_loops(block)?;
            let inner = &own[own.len().saturating_sub(2)..];
            in_registers(schedule, inner, machine.lanes())?;
        }
    }
    Ok(channels)
}

/// Computes what columns of data are at the points inside a loop; the loops over columns, points and lanes.
pub(crate) fn rows_at(schedule: &mut Schedule, rows: Block, at: Loop) -> Result<[Loop; 3]> {
    schedule.compute_at(rows, at)?;
    let &[points, columns, lane] = schedule.own_loops(rows)?.as_slice() else {
        return no_match();
    };
    let order = [columns, points, lane];
    schedule.reorder(&order)?;
    Ok(order)
}

/// The loops of a block that was moved, one for each of these extents; none for those of one step, which are left out.
pub(crate) fn moved<const N: usize>(
    schedule: &mut Schedule,
    block: Block,
    extents: [i64; N],
) -> Result<[Option<Loop>; N]> {
    let own = schedule.own_loops(block)?;
    each_of(schedule, &own, extents)
}

/// The loop for each of these extents; none for those of one step.
fn each_of<const N: usize>(
    schedule: &Schedule,
    loops: &[Loop],
    extents: [i64; N],
) -> Result<[Option<Loop>; N]> {
    let mut left = loops.iter().copied();
    let found = extents.map(|extent| if extent == 1 { None } else { left.next() });
    let is_right = |(each, extent): (&Option<Loop>, i64)| match each {
        Some(each) => schedule.extent(*each) == Some(extent),
        None => extent == 1,
    };
    match left.next().is_none() && found.iter().zip(extents).all(is_right) {
        true => Ok(found),
        false => no_match(),
    }
}
