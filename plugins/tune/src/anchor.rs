//! What the block that costs most does, apart from what surrounds it.

use std::fmt::Write;

use tenon_schedule::{Block, Loop, Result, Schedule};

/// The anchor of a program, with its extents as they are and with those rounded up to powers of two. Both are empty where there is none.
pub(crate) fn anchor_texts(schedule: &mut Schedule) -> [String; 2] {
    texts(schedule).unwrap_or_default()
}

fn texts(schedule: &mut Schedule) -> Result<[String; 2]> {
    let block = schedule.anchor()?;
    let loops = schedule.loops(block)?;
    let work = schedule.work(block);
    let head = format!(
        "{} bits, {} operations, {} functions, {} choices, init {}",
        schedule.bits(block),
        work.operations,
        work.functions,
        work.choices,
        schedule.has_init(block),
    );
    let mut texts = [head.clone(), head];
    for each in loops {
        let extent = schedule.extent(each);
        let rounded = extent.map(|extent| extent.max(1).unsigned_abs().next_power_of_two() as i64);
        for (text, (extent, is_exact)) in texts.iter_mut().zip([(extent, true), (rounded, false)]) {
            describe(text, schedule, block, each, extent, is_exact);
        }
    }
    Ok(texts)
}

/// A loop: whether it is reduced, its extent, and how far accesses move with it; of rounded extents, whether they do.
fn describe(
    text: &mut String,
    schedule: &Schedule,
    block: Block,
    each: Loop,
    extent: Option<i64>,
    is_exact: bool,
) {
    let kind = if schedule.is_reduced(block, each) { "reduced" } else { "spatial" };
    let extent = extent.map_or("?".to_owned(), |extent| extent.to_string());
    let _ = write!(text, "\n{kind} {extent}");
    for stride in schedule.strides(each) {
        let far = match stride.elements {
            None => "?".to_owned(),
            Some(elements @ 0..=1) => elements.to_string(),
            Some(elements) if is_exact => elements.to_string(),
            Some(_) => "far".to_owned(),
        };
        let _ = write!(text, " {}{far}", if stride.is_store { "store " } else { "" });
    }
}
