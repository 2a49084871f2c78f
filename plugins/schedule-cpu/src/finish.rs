//! A block in loops of its own: its borders apart, on threads and in vectors.
//!
//! ```ir
//! for %c … { for %y in 0..58 { for %x in 0..58 {              for %c … parallel {
//!   … select(%y >= 1 && %y < 57 && …, …) } } }         =>       for %y_0 in 0..1 { … }
//!                                                               for %y_1 in 0..56 { for %x_0 in 0..1 { … }  for %x_1 in 0..56 { … }  … }
//!                                                               for %y_2 in 0..1 { … } }
//! ```

use tenon_schedule::{Block, Result, Schedule};

use crate::{threads, vectors, windows};

/// Runs the loops around a block on threads, where there is enough to do, and in vectors.
pub(crate) fn alone(schedule: &mut Schedule, block: Block, lanes: i64, has_threads: bool) {
    let before = schedule.snapshot();
    let blocks = borders_apart(schedule, block).unwrap_or_else(|_| {
        schedule.restore(before);
        vec![block]
    });
    for &block in &blocks {
        vectors::join_rows(schedule, block);
    }
    if has_threads {
        for &block in &blocks {
            threads::parallelize(schedule, block, lanes);
        }
    }
    for block in blocks {
        vectors::vectorize(schedule, block, lanes);
    }
}

/// Cuts the steps off each loop that only a block has for which a condition does not hold; the blocks that are made of one.
fn borders_apart(schedule: &mut Schedule, block: Block) -> Result<Vec<Block>> {
    let (mut inside, mut blocks) = (block, Vec::new());
    let (all, own) = (schedule.loops(block)?.len(), schedule.own_loops(block)?.len());
    for at in all - own..all {
        let each = schedule.loops(inside)?[at];
        let Some([first, end]) = schedule.interior(each) else { continue };
        if schedule.extent(each).is_none_or(|extent| end - first == extent) {
            continue;
        }
        for part in windows::without_borders(schedule, each)? {
            let is_inside = schedule.extent(part) == Some(end - first);
            for block in schedule.children(part)? {
                if is_inside { inside = block } else { blocks.push(block) }
            }
        }
    }
    blocks.push(inside);
    Ok(blocks)
}
