//! Operators of Acme, and how some of ours run.

mod dense_schedule;
mod moments;

tenon_plugin_api::plugin! {
    id = "acme.operators",
    summary = "Operators of Acme"
}
