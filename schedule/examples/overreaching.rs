//! Rules of `schedule` that set their knobs to what they do not declare.

use tenon_plugin_api::rule;
use tenon_schedule::{Result, Task};

tenon_plugin_api::plugin! {
    id = "test.overreaching",
    summary = "Schedules with knobs that they do not declare"
}

/// Declares a knob up to 2, and sets it to 3.
#[rule(schedule, key = "nn.relu", knobs = [side = 1..=2])]
fn beyond(task: &mut Task) -> Result<()> {
    on_threads(task)?;
    task.choose("side", 3)
}

/// Sets a knob that it does not declare.
#[rule(schedule, key = "abs")]
fn unknown(task: &mut Task) -> Result<()> {
    on_threads(task)?;
    task.choose("side", 1)
}

fn on_threads(task: &mut Task) -> Result<()> {
    let block = task.schedule.anchor()?;
    let loops = task.schedule.loops(block)?;
    task.schedule.parallel(loops[0])
}
