//! What is computed where it is read.

use tenon_schedule::{Block, Schedule};

/// Operations of a value that is rather computed for each reader than kept.
const CHEAP: usize = 8;
/// How often an element that is padding, or is not, may be computed rather than kept.
const OVERLAP: f64 = 1.5;

/// A program of more blocks is left to the passes behind: each primitive looks at the whole program.
pub(crate) const MAX_BLOCKS: usize = 64;

/// Inlines each block whose readers read every element of it once, when it is cheap or has one reader.
pub(crate) fn inline_all(schedule: &mut Schedule) {
    inline_where(schedule, |_, _| true);
}

/// The same, but what a block reads is computed before it.
pub(crate) fn inline_all_but(schedule: &mut Schedule, reader: Block) {
    inline_where(schedule, |schedule, block| {
        schedule.consumers(block).is_ok_and(|consumers| !consumers.contains(&reader))
    });
}

fn inline_where(schedule: &mut Schedule, may: impl Fn(&mut Schedule, Block) -> bool) {
    let blocks = schedule.all_blocks();
    if blocks.len() > MAX_BLOCKS {
        return;
    }
    for block in blocks {
        if may(schedule, block) && is_worth_it(schedule, block) {
            let _ = schedule.inline(block);
        }
    }
}

fn is_worth_it(schedule: &mut Schedule, block: Block) -> bool {
    if schedule.is_reduction(block) || schedule.writes_result(block) {
        return false;
    }
    let Ok(consumers) = schedule.consumers(block) else { return false };
    let work = schedule.work(block);
    let is_cheap = work.functions == 0 && work.operations <= CHEAP;
    // A reader whose loops do not all say what it reads would compute the same again in each of their steps. Nor does padding go to
    // where each element is read several times.
    (is_cheap || consumers.len() == 1)
        && consumers.iter().all(|&consumer| {
            let Ok(loops) = schedule.loops(consumer) else { return false };
            loops.iter().all(|&each| {
                schedule.extent(each) == Some(1)
                    || schedule.says_what_is_read(each, block)
                        && (work.choices == 0 || schedule.overlap(each, block) <= OVERLAP)
            })
        })
}
