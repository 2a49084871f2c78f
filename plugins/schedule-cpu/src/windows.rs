//! Sums over windows of few elements, as a pooling's.
//!
//! ```ir
//! for %x in 0..56 {                                            for %x_0 in 0..1 { … }
//!   for %ky in 0..3 { for %kx in 0..3 {                        for %x_1 in 0..54 {
//!     for %c in 0..16 vectorized {                       =>      for %ky in 0..3 unrolled { for %kx in 0..3 unrolled {
//!       … select(%x + %kx >= 1 && …, …) } } } }                    for %c in 0..16 vectorized { … } } } }
//!                                                              for %x_2 in 0..1 { … }
//! ```
//!
//! The windows that reach over the border have loops of their own, so that the others need no conditions; these are written out.

use tenon_schedule::{Block, Loop, Result, Schedule};

use crate::attempt;

/// Elements of a window that are written out, at most.
const TAPS: i64 = 32;
/// Elements of a window along one axis, at most, where there are no conditions; longer ones are added in vectors.
const WIDTH: i64 = 7;

/// Cuts the borders off the innermost loop around each result and its windows, and writes small windows out.
pub(crate) fn write_out(schedule: &mut Schedule) {
    for block in schedule.all_blocks() {
        if schedule.writes_result(block) {
            attempt(schedule, |schedule| of_result(schedule, block));
        }
    }
}

fn of_result(schedule: &mut Schedule, result: Block) -> Result<()> {
    let loops = schedule.loops(result)?;
    let mut of_windows = None;
    for &each in loops.iter().rev() {
        // With conditions even a long one is better written out: they are constants then.
        let width = if schedule.interior(each).is_some() { TAPS } else { WIDTH };
        if !windows(schedule, each, width)?.is_empty() {
            of_windows = Some((each, width));
            break;
        }
    }
    let Some((pixels, width)) = of_windows else { return Ok(()) };
    for part in without_borders(schedule, pixels)? {
        for each in windows(schedule, part, width)? {
            schedule.unroll(each)?;
        }
    }
    Ok(())
}

/// The parts of a loop in whose middle all conditions hold.
pub(crate) fn without_borders(schedule: &mut Schedule, pixels: Loop) -> Result<Vec<Loop>> {
    match (schedule.extent(pixels), schedule.interior(pixels)) {
        (Some(extent), Some([first, end])) if first > 0 || end < extent => {
            let lengths = [first, end - first, extent - end];
            let lengths: Vec<Option<i64>> =
                lengths.into_iter().filter(|&length| length > 0).map(Some).collect();
            schedule.partition(pixels, &lengths[..lengths.len() - 1])
        }
        _ => Ok(vec![pixels]),
    }
}

/// The loops over the elements of windows inside of a loop, none longer than `width`; of windows of many elements the innermost ones.
fn windows(schedule: &mut Schedule, pixels: Loop, width: i64) -> Result<Vec<Loop>> {
    let mut loops = Vec::new();
    for block in schedule.children(pixels)? {
        let mut taps = 1;
        let own = schedule.own_loops(block)?;
        let (reduced, _) = schedule.reduced_and_kept(block, &own);
        for each in reduced.into_iter().rev() {
            let Some(extent) = schedule.extent(each) else { break };
            taps *= extent;
            if !(1..=width).contains(&extent) || taps > TAPS {
                break;
            }
            loops.push(each);
        }
    }
    Ok(loops)
}
