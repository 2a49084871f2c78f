//! Passes of Acme.

mod double_negation;

tenon_plugin_api::plugin! {
    id = "acme.passes",
    summary = "Passes of Acme"
}
