//! Operators of Acme, how some of ours run, and an instruction for tiles.

mod dense_schedule;
mod moments;
mod pairs;

tenon_plugin_api::plugin! {
    id = "acme.operators",
    summary = "Operators of Acme"
}
