//! Passes that measure schedules, and use what was measured: `docs/tuning.md`.

mod apply_database;
mod mark_tasks;
mod mutate_schedule;
mod tune_programs;

mod anchor;
mod canonical;
mod keys;

tenon_plugin_api::plugin! {
    id = "tenon.tune",
    summary = "Passes that measure schedules, and use what was measured",
    license = "Apache-2.0 OR MIT"
}
