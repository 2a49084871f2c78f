//! Products of bytes among statements in turn, as the steps of a recurrence are, by instructions for dot products.
//!
//! ```ir
//! for %step … { …                                    for %step … { …
//!   for %i … { for %b … { for %l in 0..16 {            for %i … unrolled { for %b … unrolled { for %l … vectorized { block "sums_init" … } } }
//!     for %r … { for %s in 0..4 {              =>      for %r … { for %i … unrolled { for %b … unrolled {
//!       block "sums" … } } } } }                         for %l … { for %s … } } with vpdpbusd } }
//!   … }                                                … }
//! ```
//!
//! The program says how many sums there are at a time, and they stay in registers. All else is left as it is written.

use tenon_plugin_api::rule;
use tenon_schedule::{Refusal, Result, Task};

use crate::byte_dots::Dots;

/// Sums of quads that stand in loops with other statements.
#[rule(schedule, key = "any", benefit = 10)]
fn dots_in_turn(task: &mut Task) -> Result<()> {
    let mut count = 0;
    if task.schedule.has_loose_statements() {
        for block in task.schedule.all_blocks() {
            let own = task.schedule.own_loops(block)?;
            let Some(&last) = own.last().filter(|_| task.schedule.has_init(block)) else {
                continue;
            };
            let products = task.schedule.extent(last);
            let Some(dots) = Dots::of(task, block, products) else { continue };
            if own.len() > 2 {
                dots.tile_of_sums(&mut task.schedule, block, 0)?;
                count += 1;
            }
        }
    }
    if count == 0 {
        return Err(Refusal::new("no products of bytes stand among statements in turn"));
    }
    task.because(format!("{count} products of bytes by instructions for dot products"));
    Ok(())
}
