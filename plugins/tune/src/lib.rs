//! Passes that use what was measured of schedules: `docs/tuning.md`.

mod apply_database;
mod mark_tasks;
mod mutate_schedule;

mod anchor;
mod canonical;
mod keys;

tenon_plugin_api::plugin! {
    id = "tenon.tune",
    summary = "Passes that use what was measured of schedules",
    license = "Apache-2.0 OR MIT"
}
