//! Who runs passes that are written in Python: `docs/python.md`.

mod interpreter;

tenon_plugin_api::plugin! {
    id = "tenon.python",
    summary = "Who runs passes that are written in Python",
    license = "Apache-2.0 OR MIT"
}
