//! What programs and targets are known by in a database.

use tenon_plugin_api::ir::{AttrsView, TermView, Terms};
use tenon_plugin_api::prelude::*;
use tenon_schedule::Schedule;
use tenon_tuning::{Keys, digest};

use crate::anchor::anchor_texts;
use crate::canonical::canonical_text;

/// What decides how fast code is on a target, besides the code.
const OF_TARGET: [&str; 9] = [
    "architecture",
    "cpu",
    "float",
    "vector_bits",
    "vector_registers",
    "l1_bytes",
    "l2_bytes",
    "threads",
    "fma_units",
];

/// The keys of a program that was not scheduled; nothing where it has no blocks, and so no schedule.
pub(crate) fn keys_of(program: &PrimFunc) -> Result<Option<Keys>> {
    let body = program.view();
    if !body.post_order().any(|expr| body.kind(expr) == Kind::BLOCK) {
        return Ok(None);
    }
    let [anchor, sizes] =
        anchor_texts(&mut Schedule::of(program)?).map(|text| match text.is_empty() {
            true => text,
            false => digest(text.as_bytes()),
        });
    Ok(Some(Keys { program: digest(canonical_text(body).as_bytes()), anchor, sizes }))
}

/// What a target is known by.
pub(crate) fn key_of_target(target: AttrsView<'_>, terms: Terms<'_>) -> String {
    let mut text = String::new();
    for key in OF_TARGET {
        let value = match target.get(key) {
            Some(TermView::Str(value)) => value.to_owned(),
            Some(TermView::Int(value)) => value.to_string(),
            _ => String::new(),
        };
        text.push_str(&format!("{key}={value};"));
    }
    if let Some(TermView::List(features)) = target.get("features") {
        let mut names: Vec<&str> = features.iter().map(|&feature| terms.str(feature)).collect();
        names.sort_unstable();
        text.push_str(&names.join(","));
    }
    digest(text.as_bytes())
}
