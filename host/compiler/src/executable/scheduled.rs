//! How a tensor program was scheduled, as its attribute `scheduled` says.

use tenon_plugin_api::ir::{AttrsView, TermView};

use crate::ir::{Context, Function};

/// What is told of a program by whoever scheduled it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scheduled {
    /// The rule, with the module that it stands in.
    pub rule: String,
    /// What it chose, by the names of its knobs.
    pub knobs: Vec<(String, i64)>,
    /// Why; empty where it does not say.
    pub because: String,
    /// Operations of a run; a multiply-add is two.
    pub operations: Option<i64>,
    /// Bytes that it reads and writes, each once.
    pub bytes: Option<i64>,
    /// Cycles of the target that a run is thought to take, on all of its threads.
    pub cycles: Option<i64>,
}

impl Scheduled {
    /// How a program was scheduled, if a rule did it.
    pub fn of(function: &Function) -> Option<Self> {
        let body = function.view();
        let attrs = function.cx().terms().attrs(body.attrs(body.root()));
        let Some(TermView::Dict(told)) = attrs.get("scheduled") else { return None };
        let knobs = match told.get("knobs") {
            Some(TermView::Dict(knobs)) => numbers(knobs),
            _ => Vec::new(),
        };
        Some(Self {
            rule: told.str("rule").unwrap_or_default().to_owned(),
            knobs,
            because: told.str("because").unwrap_or_default().to_owned(),
            operations: told.int("operations"),
            bytes: told.int("bytes"),
            cycles: told.int("cycles"),
        })
    }

    /// The knobs as they stand on a program.
    pub fn knobs_text(&self) -> String {
        let knobs = self.knobs.iter().map(|(name, value)| format!("{name} = {value}"));
        knobs.collect::<Vec<_>>().join(", ")
    }
}

fn numbers(attrs: AttrsView<'_>) -> Vec<(String, i64)> {
    attrs.iter().filter_map(|(name, _)| Some((name.to_owned(), attrs.int(name)?))).collect()
}
