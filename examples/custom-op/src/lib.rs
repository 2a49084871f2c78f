//! Operators of Acme.

mod moments;

tenon_plugin_api::plugin! {
    id = "acme.operators",
    summary = "Operators of Acme"
}
